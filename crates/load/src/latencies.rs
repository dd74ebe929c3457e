//! Latencies in an HDR histogram, with the figures that a histogram rounds kept exact.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Lowest latency told apart from zero, and the resolution of the histogram.
const LOWEST_NS: u64 = 1_000;
/// Latencies above this count as this long.
const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// Range that a histogram has room for at first. It grows on the first value beyond: many small
/// histograms cost little memory, and a steady load soon stops allocating.
const FIRST_RANGE_NS: u64 = 8_000_000;

/// A set of latencies. All have the same buckets, and can be merged.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// Percentiles and moments of a set that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p95_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let mut histogram =
            Histogram::new_with_bounds(LOWEST_NS, FIRST_RANGE_NS, SIGNIFICANT_DIGITS)
                .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}"));
        histogram.auto(true);
        Self {
            histogram,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, latency_ns: u64) {
        self.histogram
            .record(latency_ns.min(HIGHEST_NS))
            .unwrap_or_else(|error| unreachable!("the histogram grows up to an hour: {error}"));
        self.sum_ns += latency_ns;
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .unwrap_or_else(|error| unreachable!("the histogram grows up to an hour: {error}"));
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Empties the set, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Shortest and longest, exact; `None` when empty.
    pub(crate) fn range_ns(&self) -> Option<(u64, u64)> {
        (self.count() > 0).then_some((self.min_ns, self.max_ns))
    }

    /// The latency that a share of `quantile` does not exceed: the highest of its bucket, but no more than
    /// the longest of all.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        (self.count() > 0).then(|| Summary {
            mean_ns: self.sum_ns as f64 / self.count() as f64,
            p50_ns: self.quantile_ns(0.50),
            p95_ns: self.quantile_ns(0.95),
            p99_ns: self.quantile_ns(0.99),
            max_ns: self.max_ns,
        })
    }

    /// Buckets that are not empty: highest latency of the bucket, and count.
    pub(crate) fn buckets(&self) -> Vec<(u64, u64)> {
        self.histogram
            .iter_recorded()
            .map(|bucket| {
                let highest_ns = self
                    .histogram
                    .highest_equivalent(bucket.value_iterated_to());
                (highest_ns, bucket.count_at_value())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(latencies: &[u64]) -> Latencies {
        let mut set = Latencies::new();
        latencies.iter().for_each(|&latency| set.record(latency));
        set
    }

    #[test]
    fn the_limits_are_an_hour_and_a_microsecond() {
        let set = of(&[0, 1, HIGHEST_NS, u64::MAX / 4]);
        assert_eq!(set.count(), 4);
        assert_eq!(set.range_ns(), Some((0, u64::MAX / 4)));
        let (highest_ns, count) = *set.buckets().last().unwrap();
        assert!((HIGHEST_NS..HIGHEST_NS / 1000 * 1001).contains(&highest_ns));
        assert_eq!(count, 2);
        assert!(of(&[]).summary().is_none() && of(&[]).buckets().is_empty());
    }

    proptest! {
        #[test]
        fn buckets_hold_every_latency_to_three_digits(latency in 1_u64..HIGHEST_NS) {
            let (highest_ns, _) = of(&[latency]).buckets()[0];
            prop_assert!(highest_ns >= latency);
            prop_assert!(highest_ns - latency <= (latency / 1000).max(LOWEST_NS));
        }

        #[test]
        fn merging_equals_recording_together(
            a in proptest::collection::vec(0..2 * HIGHEST_NS, 0..50),
            b in proptest::collection::vec(0..1_000_000_u64, 0..50),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together = of(&[a, b].concat());
            prop_assert_eq!(merged.buckets(), together.buckets());
            prop_assert_eq!(merged.summary(), together.summary());
            prop_assert_eq!(merged.range_ns(), together.range_ns());
            prop_assert_eq!(merged.sum_ns(), together.sum_ns());
        }

        #[test]
        fn counts_add_up_and_quantiles_are_ordered(a in proptest::collection::vec(0..HIGHEST_NS, 1..100)) {
            let set = of(&a);
            prop_assert_eq!(set.buckets().iter().map(|(_, count)| count).sum::<u64>(), a.len() as u64);
            let summary = set.summary().unwrap();
            prop_assert!(summary.p50_ns <= summary.p95_ns);
            prop_assert!(summary.p95_ns <= summary.p99_ns);
            prop_assert!(summary.p99_ns <= summary.max_ns);
            prop_assert_eq!(summary.max_ns, *a.iter().max().unwrap());
        }

        #[test]
        fn a_cleared_set_is_like_a_new_one(a in proptest::collection::vec(0..HIGHEST_NS, 0..20)) {
            let mut set = of(&a);
            set.clear();
            set.record(5_000_000);
            prop_assert_eq!(set.buckets(), of(&[5_000_000]).buckets());
            prop_assert_eq!(set.summary(), of(&[5_000_000]).summary());
        }
    }
}
