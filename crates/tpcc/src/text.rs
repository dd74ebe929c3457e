//! Last names of syllables (clause 4.3.2.3), and random texts of letters and digits (clause 4.3.2.2).

use plinth_script::Prng;

use crate::scaled;

const SYLLABLES: [&[u8]; 10] = [
    b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING",
];

/// Appends the last name with this number, of 0 to 999: a syllable for each of its three digits.
pub fn append_last_name(number: u64, out: &mut Vec<u8>) {
    for place in [100, 10, 1] {
        out.extend_from_slice(SYLLABLES[(number / place % 10) as usize]);
    }
}

const CHARACTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const PAIRS: usize = CHARACTERS.len() * CHARACTERS.len();
/// Two characters are drawn at once, which takes half as many multiplications.
static PAIR: [[u8; 2]; PAIRS] = pairs();
/// Characters that one random number is enough for: the last pair still has 28 bits.
const AT_ONCE: usize = 8;

const fn pairs() -> [[u8; 2]; PAIRS] {
    let mut pairs = [[0; 2]; PAIRS];
    let mut number = 0;
    while number < PAIRS {
        pairs[number] = [
            CHARACTERS[number / CHARACTERS.len()],
            CHARACTERS[number % CHARACTERS.len()],
        ];
        number += 1;
    }
    pairs
}

/// Appends `length` random letters and digits.
pub fn append_text(random: &mut Prng, length: usize, out: &mut Vec<u8>) {
    let mut left = length;
    while left > 0 {
        let count = left.min(AT_ONCE);
        let mut drawn = random.next_u64();
        let mut characters = [0; AT_ONCE];
        for pair in characters.chunks_exact_mut(2) {
            pair.copy_from_slice(&PAIR[scaled(drawn, PAIRS as u64) as usize]);
            drawn = drawn.wrapping_mul(PAIRS as u64);
        }
        out.extend_from_slice(&characters[..count]);
        left -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_name(number: u64) -> String {
        let mut out = Vec::new();
        append_last_name(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
        let mut all: Vec<_> = (0..1_000).map(last_name).collect();
        assert!(all.iter().all(|name| name.len() <= 16));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 1_000);
    }

    #[test]
    fn texts_have_their_length_and_every_character_as_often_in_every_place() {
        let mut random = Prng::seeded(1);
        let mut counts = vec![[0_u32; 256]; 13];
        for _ in 0..60_000 {
            let mut text = b"x".to_vec();
            append_text(&mut random, 13, &mut text);
            assert_eq!(text.len(), 14);
            for (count, &character) in counts.iter_mut().zip(&text[1..]) {
                count[usize::from(character)] += 1;
            }
        }
        let expected = 60_000.0 / 62.0;
        for (place, count) in counts.iter().enumerate() {
            let of = |&character: &u8| f64::from(count[usize::from(character)]) - expected;
            let chi_squared: f64 = CHARACTERS
                .iter()
                .map(|character| of(character).powi(2) / expected)
                .sum();
            // 61 degrees of freedom: mean 61, standard deviation 11.
            assert!(chi_squared < 61.0 + 5.0 * 11.0, "{place}: {chi_squared}");
        }
    }
}
