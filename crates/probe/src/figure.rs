//! The result of one case.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A case was measured, or cannot be on this storage.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Measured.
    Figure(Figure),
    /// Not possible here, and why.
    Unavailable(String),
}

/// Latencies of one case. An operation is what a writer waits for: its writes, made durable.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Operations.
    pub ops: u64,
    /// Calls that made writes durable; fewer than operations where one served several.
    pub flushes: u64,
    /// Time that they took, all writers at once, without what is not timed.
    pub elapsed_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The highest latency of each bucket of an HDR histogram of three digits, and its count.
    pub buckets: Vec<(u64, u64)>,
}

/// Latencies while they are measured.
#[derive(Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        #[allow(
            clippy::expect_used,
            reason = "the bounds are constants that the crate allows"
        )]
        let histogram = Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("1 ns to 1 h with 3 digits is a valid histogram");
        Self {
            histogram,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, latency: Duration) {
        let latency_ns = latency.as_nanos() as u64;
        self.histogram.saturating_record(latency_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        // Both have the same bounds, for which adding cannot fail.
        let _ = self.histogram.add(&other.histogram);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn figure(&self, flushes: u64, elapsed: Duration) -> Figure {
        let bucket = |value: hdrhistogram::iterators::IterationValue<u64>| {
            (
                value.value_iterated_to(),
                value.count_since_last_iteration(),
            )
        };
        Figure {
            ops: self.histogram.len(),
            flushes,
            elapsed_ns: elapsed.as_nanos() as u64,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            buckets: self.histogram.iter_recorded().map(bucket).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_every_latency_to_three_digits() {
        let mut one = Latencies::new();
        let mut other = Latencies::new();
        for us in 1..=1000 {
            one.record(Duration::from_micros(us));
            other.record(Duration::from_millis(us));
        }
        one.merge(&other);
        let figure = one.figure(7, Duration::from_secs(1));
        assert_eq!((figure.ops, figure.flushes), (2000, 7));
        assert_eq!((figure.min_ns, figure.max_ns), (1000, 1_000_000_000));
        assert_eq!(
            figure.buckets.iter().map(|&(_, count)| count).sum::<u64>(),
            2000
        );
        let highest = figure.buckets.last().unwrap().0;
        assert!(
            (1_000_000_000..=1_001_000_000).contains(&highest),
            "{highest}"
        );
    }
}
