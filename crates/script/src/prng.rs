//! PostgreSQL's pseudo-random number generator: xoroshiro128** 1.0 by Blackman and Vigna
//! (<https://prng.di.unimi.it/>), seeded by splitmix64, as in PostgreSQL's `src/common/pg_prng.c`.

/// A generator whose sequence equals that of PostgreSQL's `pg_prng` for the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prng {
    s0: u64,
    s1: u64,
}

impl Prng {
    /// A generator seeded as `pg_prng_seed` does.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        let s0 = splitmix64(&mut state);
        let s1 = splitmix64(&mut state);
        if s0 == 0 && s1 == 0 {
            // All zeroes is the generator's fixed point; PostgreSQL uses these instead.
            return Self {
                s0: 0x5851_F42D_4C95_7F2D,
                s1: 0x1405_7B7E_F767_814F,
            };
        }
        Self { s0, s1 }
    }

    /// Uniformly distributed over all 64-bit numbers.
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Uniform over `0..=max`, by bitmask rejection; draws nothing when `max` is 0.
    pub fn next_up_to(&mut self, max: u64) -> u64 {
        if max == 0 {
            return 0;
        }
        let shift = max.leading_zeros();
        loop {
            let drawn = self.next_u64() >> shift;
            if drawn <= max {
                return drawn;
            }
        }
    }

    /// Uniform over [0, 1), with 52 random bits.
    pub fn next_double(&mut self) -> f64 {
        const TWO_TO_MINUS_52: f64 = 1.0 / (1_u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * TWO_TO_MINUS_52
    }

    /// Normal with mean 0 and standard deviation 1, by the basic Box-Muller transform.
    pub fn next_normal(&mut self) -> f64 {
        let u1 = 1.0 - self.next_double();
        let u2 = 1.0 - self.next_double();
        (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).sin()
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
