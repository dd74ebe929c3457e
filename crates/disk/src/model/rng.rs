//! Pseudo-random numbers: xoshiro256++, so that the same seed gives the same disk on every machine and in every
//! version.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How much longer than the beginning of the tail a request may take: no one waits for hours.
const LONGEST_TAIL: f64 = 1_000.0;

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

    /// A duration whose logarithm is normal but for the share `tail_share` of the longest, which are of a Pareto distribution that begins where
    /// these do.
    pub(crate) fn with_tail(
        &mut self,
        median_ns: u64,
        spread: f64,
        tail_share: f64,
        shape: f64,
    ) -> u64 {
        if tail_share == 0.0 || median_ns == 0 {
            return self.lognormal(median_ns, spread);
        }
        let begins_ns = median_ns as f64 * (spread * upper_normal_quantile(tail_share)).exp();
        if self.chance(tail_share) {
            let uniform = 1.0 - self.0.random::<f64>(); // above 0
            return (begins_ns * uniform.powf(-1.0 / shape).min(LONGEST_TAIL)) as u64;
        }
        loop {
            let drawn_ns = self.lognormal(median_ns, spread);
            if spread == 0.0 || (drawn_ns as f64) <= begins_ns {
                return drawn_ns;
            }
        }
    }
}

/// What a standard normal number exceeds with this probability, at most 0.5, to within 4.5e-4 (Abramowitz and Stegun, 26.2.23).
fn upper_normal_quantile(probability: f64) -> f64 {
    let t = (-2.0 * probability.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_as_often_and_as_long_as_asked_for() {
        let mut rng = DiskRng::new(3, 0);
        let (share, shape) = (0.01, 2.0);
        let mut drawn: Vec<u64> = (0..200_000)
            .map(|_| rng.with_tail(500_000, 0.2, share, shape))
            .collect();
        drawn.sort_unstable();
        let quantile = |q: f64| drawn[(q * drawn.len() as f64) as usize] as f64;
        let begins = quantile(0.99);
        assert!(
            (begins / (500_000.0 * (0.2_f64 * 2.326).exp()) - 1.0).abs() < 0.03,
            "{begins}"
        );
        // A tenth of the tail is beyond the beginning times the root of 10.
        let ratio = quantile(0.999) / begins;
        assert!((ratio / 10.0_f64.sqrt() - 1.0).abs() < 0.1, "{ratio}");
        assert!((quantile(0.5) / 500_000.0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn without_a_tail_the_numbers_are_those_of_before() {
        let (mut one, mut other) = (DiskRng::new(1, 0), DiskRng::new(1, 0));
        for _ in 0..100 {
            assert_eq!(
                one.with_tail(100_000, 0.3, 0.0, 0.0),
                other.lognormal(100_000, 0.3)
            );
        }
    }

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
