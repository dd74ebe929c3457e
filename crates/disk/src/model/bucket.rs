//! Token buckets of volumes: what passes at once is limited by credits, which return at the baseline.

use std::time::Duration;

/// How far late requests may catch up where there are no credits, as in `pacing.rs`.
const LEAST_DEPTH_NS: i128 = Duration::from_millis(10).as_nanos() as i128;
const SECOND_NS: i128 = Duration::from_secs(1).as_nanos() as i128;

/// A token bucket, by the virtual scheduling form of the generic cell rate algorithm (ITU-T I.371).
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenBucket {
    /// When the next unit may pass if there were no credits: in the past by what there are.
    due_ns: i128,
}

impl TokenBucket {
    /// A bucket of `capacity` units that return at `rate` per second, of which the share `level` is there at `now_ns`.
    pub(crate) fn filled(now_ns: u64, level: f64, rate: u64, capacity: u64) -> Self {
        let ahead_ns = (depth_ns(rate, capacity) as f64 * level) as i128;
        Self {
            due_ns: i128::from(now_ns) - ahead_ns,
        }
    }

    /// When `units` that are requested at `now_ns` may pass. A rate of 0 is no limit.
    pub(crate) fn pass(&mut self, now_ns: u64, units: u64, rate: u64, capacity: u64) -> u64 {
        if rate == 0 {
            return now_ns;
        }
        let now_ns = i128::from(now_ns);
        let slot_ns = self.due_ns.max(now_ns - depth_ns(rate, capacity));
        self.due_ns = slot_ns + i128::from(units) * SECOND_NS / i128::from(rate);
        slot_ns.max(now_ns) as u64
    }

    /// The units that could pass at `now_ns`.
    pub(crate) fn units(&self, now_ns: u64, rate: u64, capacity: u64) -> u64 {
        let ahead_ns = (i128::from(now_ns) - self.due_ns).clamp(0, depth_ns(rate, capacity));
        ((ahead_ns * i128::from(rate) / SECOND_NS) as u64).min(capacity)
    }
}

fn depth_ns(rate: u64, capacity: u64) -> i128 {
    (i128::from(capacity) * SECOND_NS)
        .checked_div(i128::from(rate))
        .unwrap_or(0)
        .max(LEAST_DEPTH_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_backlog_passes_at_once_as_long_as_credits_last_and_then_at_the_baseline(
            rate in 50_u64..5_000, capacity in 1_000_u64..50_000, level in 0.0_f64..1.0
        ) {
            let mut bucket = TokenBucket::filled(0, level, rate, capacity);
            let now_ns = 5_000_000_000_u64;
            // The 5 s before have brought credits back, as far as there is room.
            let there = (capacity as f64 * level + 5.0 * rate as f64).min(capacity as f64).max(rate as f64 * 0.01);
            let count = there as u64 + 10 * rate;
            let mut at_once = 0_u64;
            let mut last_ns = now_ns;
            for _ in 0..count {
                last_ns = bucket.pass(now_ns, 1, rate, capacity);
                at_once += u64::from(last_ns == now_ns);
            }
            prop_assert!((at_once as f64 - there).abs() <= 0.02 * there + 2.0, "{at_once} of {there}");
            let rest_s = (count - at_once) as f64 / rate as f64;
            let took_s = (last_ns - now_ns) as f64 / 1e9;
            prop_assert!((took_s / rest_s - 1.0).abs() < 0.02, "{took_s} {rest_s}");
        }
    }

    #[test]
    fn credits_return_at_the_baseline_and_not_beyond_the_bucket() {
        let (rate, capacity) = (100, 1_000);
        let mut bucket = TokenBucket::filled(0, 0.0, rate, capacity);
        assert_eq!(bucket.units(0, rate, capacity), 0);
        assert_eq!(bucket.units(2_000_000_000, rate, capacity), 200);
        assert_eq!(bucket.units(60_000_000_000, rate, capacity), capacity);
        bucket.pass(60_000_000_000, 400, rate, capacity);
        assert_eq!(bucket.units(60_000_000_000, rate, capacity), 600);
        assert_eq!(bucket.units(61_000_000_000, rate, capacity), 700);
    }

    #[test]
    fn a_bucket_is_as_full_as_asked_for() {
        for (level, units) in [(0.0, 0), (0.5, 2_700_000), (1.0, 5_400_000)] {
            let bucket = TokenBucket::filled(0, level, 300, 5_400_000);
            assert_eq!(bucket.units(0, 300, 5_400_000), units);
        }
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert_eq!(TokenBucket::default().pass(42, 1_000_000, 0, 0), 42);
    }
}
