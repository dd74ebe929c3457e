//! Scripts dealt as cards: without replacement, so that each is chosen exactly as often as its weight says.

use plinth_script::Prng;

/// Cards of a deck at most; each takes two bytes a thread.
pub(crate) const MOST_CARDS: u64 = 100_000;

/// A deck with as many cards of each script as its weight says. It is shuffled again whenever all have been dealt.
#[derive(Debug)]
pub(crate) struct Deck {
    cards: Vec<u16>,
    dealt: usize,
}

impl Deck {
    pub(crate) fn new(weights: &[u64]) -> Self {
        let scripts = weights.iter().enumerate();
        let of_script =
            |(script, &weight): (usize, &u64)| std::iter::repeat_n(script as u16, weight as usize);
        Self {
            cards: scripts.flat_map(of_script).collect(),
            dealt: 0,
        }
    }

    /// The next card: any of those left, by a step of the Fisher-Yates shuffle.
    pub(crate) fn deal(&mut self, random: &mut Prng) -> usize {
        let left = self.cards.len() - self.dealt;
        let chosen = self.dealt + random.next_up_to(left as u64 - 1) as usize;
        self.cards.swap(self.dealt, chosen);
        let card = self.cards[self.dealt];
        self.dealt = (self.dealt + 1) % self.cards.len();
        usize::from(card)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_deck_has_every_card_as_often_as_its_weight_says() {
        let weights = [45, 43, 4, 0, 4, 4];
        let (mut deck, mut random) = (Deck::new(&weights), Prng::seeded(5));
        let decks: Vec<Vec<usize>> = (0..50)
            .map(|_| (0..100).map(|_| deck.deal(&mut random)).collect())
            .collect();
        for cards in &decks {
            let mut counts = [0; 6];
            cards.iter().for_each(|&card| counts[card] += 1);
            assert_eq!(counts, weights);
        }
        assert_ne!(decks[0], decks[1]);
    }

    #[test]
    fn every_order_of_the_cards_is_as_likely() {
        let (mut deck, mut random) = (Deck::new(&[1; 4]), Prng::seeded(1));
        let mut counts: HashMap<[usize; 4], u32> = HashMap::new();
        for _ in 0..24_000 {
            let order = std::array::from_fn(|_| deck.deal(&mut random));
            *counts.entry(order).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        let squares = counts
            .values()
            .map(|&count| (f64::from(count) - 1_000.0).powi(2));
        // 23 degrees of freedom: mean 23, standard deviation 6.8.
        assert!(squares.sum::<f64>() / 1_000.0 < 23.0 + 5.0 * 6.8);
    }
}
