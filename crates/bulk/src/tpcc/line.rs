//! A row in COPY's text format, field by field.

use plinth_script::Prng;
use plinth_script::distributions::uniform;
use plinth_tpcc::append_text;

/// What is original (clause 4.3.3.1).
const ORIGINAL: &[u8; 8] = b"ORIGINAL";

/// A row that is being written. `end` must follow its last field.
pub(super) struct Line<'a> {
    out: &'a mut Vec<u8>,
    random: Prng,
}

impl<'a> Line<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, random: Prng) -> Self {
        Self { out, random }
    }

    /// From `min` to `max`, each as likely as any other.
    pub(super) fn draw(&mut self, min: i64, max: i64) -> i64 {
        uniform(&mut self.random, min, max)
    }

    pub(super) fn random(&mut self) -> &mut Prng {
        &mut self.random
    }

    /// A field that `write` appends.
    pub(super) fn field(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        write(self.out);
        self.out.push(b'\t');
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.field(|out| out.extend_from_slice(text.as_bytes()))
    }

    pub(super) fn null(&mut self) -> &mut Self {
        self.text("\\N")
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.field(|out| append_number(number, out))
    }

    /// A number from `min` to `max`.
    pub(super) fn drawn(&mut self, min: i64, max: i64) -> &mut Self {
        let number = self.draw(min, max);
        self.number(number.cast_unsigned())
    }

    /// A number with decimal places, of which there are as many as `unit`, a power of 10, has zeroes; from `min` to `max`
    /// in units of the last place.
    pub(super) fn decimal(&mut self, min: i64, max: i64, unit: u64) -> &mut Self {
        let number = self.draw(min, max).cast_unsigned();
        self.field(|out| {
            append_number(number / unit, out);
            out.push(b'.');
            append_padded(number % unit, unit / 10, out);
        })
    }

    /// A text of `min` to `max` letters and digits.
    pub(super) fn letters(&mut self, min: i64, max: i64) -> &mut Self {
        let length = self.draw(min, max) as usize;
        append_text(&mut self.random, length, self.out);
        self.out.push(b'\t');
        self
    }

    /// As many digits as `unit`, a power of 10, has zeroes.
    pub(super) fn digits(&mut self, unit: u64) -> &mut Self {
        let number = self.draw(0, unit.cast_signed() - 1).cast_unsigned();
        self.field(|out| append_padded(number, unit / 10, out))
    }

    /// A text of 26 to 50 letters and digits, in a tenth of which ORIGINAL stands somewhere.
    pub(super) fn data(&mut self) -> &mut Self {
        let start = self.out.len();
        self.letters(26, 50);
        if self.draw(1, 10) == 1 {
            let last = (self.out.len() - 1 - start - ORIGINAL.len()) as i64;
            let at = start + self.draw(0, last) as usize;
            self.out[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
        self
    }

    /// Two streets, city, state and zip code (clause 4.3.2.7).
    pub(super) fn address(&mut self) -> &mut Self {
        for _ in 0..3 {
            self.letters(10, 20);
        }
        self.letters(2, 2);
        let number = self.draw(0, 9_999).cast_unsigned();
        self.field(|out| {
            append_padded(number, 1_000, out);
            out.extend_from_slice(b"11111");
        })
    }

    pub(super) fn end(&mut self) {
        if let Some(last) = self.out.last_mut() {
            *last = b'\n';
        }
    }
}

pub(super) fn append_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// With leading zeroes, so that the first digit has the place value `place`.
pub(super) fn append_padded(number: u64, mut place: u64, out: &mut Vec<u8>) {
    while place > 0 {
        out.push(b'0' + (number / place % 10) as u8);
        place /= 10;
    }
}
