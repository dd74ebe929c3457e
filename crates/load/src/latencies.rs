//! Latencies in buckets, with the figures that buckets round kept exact.
//!
//! The buckets are those of an HDR histogram (<http://hdrhistogram.org>) from 1 us to 1 h with 3 significant digits, and a
//! test holds them against the `hdrhistogram` crate. Recording is the engine's own because it happens several times a
//! transaction: a shift and an addition, where the crate's general one takes some 60 instructions.

use serde::Serialize;

/// Latencies above this, an hour, count as this long.
const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Width of the narrowest buckets, as a power of two: 512 ns, the greatest that distinguishes 1 us from 0.
const NARROWEST_BITS: u32 = 9;
/// Buckets of the lowest range, as a power of two: 2048, for three significant digits.
const LOWEST_RANGE_BITS: u32 = 11;
/// Every further range is twice as long, has buckets twice as wide, and half as many are new.
const RANGE_BUCKETS: usize = 1 << (LOWEST_RANGE_BITS - 1);
/// Ranges that a set has room for at first, up to 8 ms. It grows on the first value beyond: many small sets cost
/// little memory, and a steady load soon stops allocating.
const FIRST_RANGES: usize = 4;

/// A set of latencies. All have the same buckets, and can be merged.
#[derive(Debug, Clone)]
pub(crate) struct Latencies {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// Percentiles and moments of a set that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) mean_ns: f64,
    /// Standard deviation, from the buckets.
    pub(crate) stddev_ns: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p95_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
}

/// Number of the bucket that holds a latency.
#[inline]
fn bucket(latency_ns: u64) -> usize {
    let lowest_range_ns = (1_u64 << (NARROWEST_BITS + LOWEST_RANGE_BITS)) - 1;
    // How many times the range doubled, for the latency to fit.
    let range = (lowest_range_ns | latency_ns).ilog2() + 1 - NARROWEST_BITS - LOWEST_RANGE_BITS;
    range as usize * RANGE_BUCKETS + (latency_ns >> (NARROWEST_BITS + range)) as usize
}

/// The highest latency of a bucket.
fn highest_ns(bucket: usize) -> u64 {
    let range = (bucket / RANGE_BUCKETS).saturating_sub(1);
    let within = (bucket - range * RANGE_BUCKETS) as u64;
    ((within + 1) << (NARROWEST_BITS as usize + range)) - 1
}

/// The latency in the middle of a bucket.
fn middle_ns(bucket: usize) -> u64 {
    let width = 1_u64 << (NARROWEST_BITS as usize + (bucket / RANGE_BUCKETS).saturating_sub(1));
    highest_ns(bucket) + 1 - width / 2
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; (FIRST_RANGES + 1) * RANGE_BUCKETS],
            ..Self::without_room()
        }
    }

    /// For sets of which many stay empty.
    pub(crate) fn without_room() -> Self {
        Self {
            counts: Vec::new(),
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, latency_ns: u64) {
        let bucket = bucket(latency_ns.min(HIGHEST_NS));
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.grow(bucket),
        }
        self.count += 1;
        self.sum_ns += latency_ns;
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Makes room for the first latency in a bucket beyond, and counts it.
    #[cold]
    #[inline(never)] // what instructions per transaction are counted without
    fn grow(&mut self, bucket: usize) {
        self.counts
            .resize((bucket / RANGE_BUCKETS + 1) * RANGE_BUCKETS, 0);
        self.counts[bucket] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(count, other)| *count += other);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Empties the set, keeping its memory.
    pub(crate) fn clear(&mut self) {
        if self.count > 0 {
            self.counts.fill(0);
        }
        (self.count, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Shortest and longest, exact; `None` when empty.
    pub(crate) fn range_ns(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.min_ns, self.max_ns))
    }

    /// The latency that a share of `quantile` does not exceed: the highest of its bucket, but no more than
    /// the longest of all.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        bucket.map_or(0, |bucket| highest_ns(bucket).min(self.max_ns))
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        (self.count > 0).then(|| {
            let mean_ns = self.sum_ns as f64 / self.count as f64;
            Summary {
                mean_ns,
                stddev_ns: self.stddev_ns(mean_ns),
                p50_ns: self.quantile_ns(0.50),
                p95_ns: self.quantile_ns(0.95),
                p99_ns: self.quantile_ns(0.99),
                max_ns: self.max_ns,
            }
        })
    }

    /// Of the population. Each latency counts as the middle of its bucket, but as none beyond the shortest and the longest:
    /// so it is 0 of one latency. `plinth/model/histogram.py` has the same formula.
    fn stddev_ns(&self, mean_ns: f64) -> f64 {
        let squares = self.filled().map(|(bucket, count)| {
            let deviation_ns = middle_ns(bucket).clamp(self.min_ns, self.max_ns) as f64 - mean_ns;
            count as f64 * deviation_ns * deviation_ns
        });
        (squares.sum::<f64>() / self.count as f64).sqrt()
    }

    /// Buckets that are not empty: highest latency of the bucket, and count.
    pub(crate) fn buckets(&self) -> Vec<(u64, u64)> {
        self.filled()
            .map(|(bucket, count)| (highest_ns(bucket), count))
            .collect()
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0)
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

    /// The crate's histogram with the same bounds.
    fn reference(latencies: &[u64]) -> hdrhistogram::Histogram<u64> {
        let mut histogram = hdrhistogram::Histogram::new_with_bounds(1_000, HIGHEST_NS, 3).unwrap();
        latencies
            .iter()
            .for_each(|&latency| histogram.record(latency.min(HIGHEST_NS)).unwrap());
        histogram
    }

    proptest! {
        #[test]
        fn buckets_and_quantiles_are_those_of_an_hdr_histogram(
            a in proptest::collection::vec((0..43_u32).prop_flat_map(|bits| 0..2_u64 << bits), 1..200),
            quantile in 0.001..=1.0_f64,
        ) {
            let (set, reference) = (of(&a), reference(&a));
            let buckets: Vec<_> = reference
                .iter_recorded()
                .map(|bucket| (reference.highest_equivalent(bucket.value_iterated_to()), bucket.count_at_value()))
                .collect();
            prop_assert_eq!(set.buckets(), buckets);
            let longest = *a.iter().max().unwrap();
            prop_assert_eq!(set.quantile_ns(quantile), reference.value_at_quantile(quantile).min(longest));
        }

        #[test]
        fn the_standard_deviation_is_right_to_three_digits(a in proptest::collection::vec(0..HIGHEST_NS, 2..100)) {
            let mean = a.iter().sum::<u64>() as f64 / a.len() as f64;
            let exact = (a.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / a.len() as f64).sqrt();
            let longest = *a.iter().max().unwrap() as f64;
            prop_assert!((of(&a).summary().unwrap().stddev_ns - exact).abs() <= longest / 1000.0 + 512.0);
        }

        #[test]
        fn buckets_hold_every_latency_to_three_digits(latency in 1_u64..HIGHEST_NS) {
            let (highest_ns, _) = of(&[latency]).buckets()[0];
            prop_assert!(highest_ns >= latency);
            prop_assert!(highest_ns - latency <= (latency / 1000).max(1_000));
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
