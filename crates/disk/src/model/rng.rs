//! Pseudo-random numbers: xoshiro256++, so that the same seed gives the same disk on every machine and in every
//! version.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded generator.
#[derive(Debug, Clone)]
pub(crate) struct DiskRng(Xoshiro256PlusPlus);

impl DiskRng {
    /// A generator for `seed`; `stream` makes several uses of the same seed independent.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ))
    }

    /// An integer from 0 to `limit` - 1, or 0 when `limit` is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        self.0.random_range(0..limit)
    }

    /// True with the given probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    /// A duration from a lognormal distribution, given its median and the standard deviation of its logarithm.
    pub(crate) fn lognormal(&mut self, median_ns: u64, spread: f64) -> u64 {
        if spread == 0.0 || median_ns == 0 {
            return median_ns;
        }
        let normal: f64 = StandardNormal.sample(&mut self.0);
        (median_ns as f64 * (spread * normal).exp()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_durations_are_below_the_median_and_the_logarithm_has_the_spread_asked_for() {
        let mut rng = DiskRng::new(1, 0);
        let drawn: Vec<u64> = (0..100_000).map(|_| rng.lognormal(100_000, 0.3)).collect();
        let below = drawn.iter().filter(|&&ns| ns < 100_000).count();
        assert!((49_000..51_000).contains(&below), "{below}");
        let variance = drawn
            .iter()
            .map(|&ns| (ns as f64 / 100_000.0).ln().powi(2))
            .sum::<f64>()
            / drawn.len() as f64;
        assert!((0.29..0.31).contains(&variance.sqrt()), "{variance}");
    }

    #[test]
    fn a_seed_is_a_disk_and_streams_differ() {
        let draw = |seed, stream| {
            let mut rng = DiskRng::new(seed, stream);
            (0..8).map(|_| rng.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }
}
