//! Exact rate limits: the generic cell rate algorithm (ITU-T I.371), in its virtual scheduling form.

use std::time::Duration;

/// How far late requests may catch up, so that delays of timers and of a busy machine's scheduler do not lower the
/// rate.
const CREDIT_NS: u64 = Duration::from_millis(10).as_nanos() as u64;

/// Lets `rate` units pass per second, and no more over any longer time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pacer {
    next_ns: u64,
}

impl Pacer {
    /// One whose next unit may pass at `next_ns`.
    pub(crate) fn next(next_ns: u64) -> Self {
        Self { next_ns }
    }

    /// When the next unit may pass.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// When `units` that are requested at `now_ns` may pass. A rate of 0 is no limit.
    pub(crate) fn pass(&mut self, now_ns: u64, units: u64, rate: u64) -> u64 {
        if rate == 0 {
            return now_ns;
        }
        let slot_ns = self.next_ns.max(now_ns.saturating_sub(CREDIT_NS));
        let interval_ns = u128::from(units) * 1_000_000_000 / u128::from(rate);
        self.next_ns = slot_ns + interval_ns as u64;
        slot_ns.max(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_backlog_passes_at_the_rate(rate in 50_u64..200_000, units in 1_u64..50) {
            let mut pacer = Pacer::default();
            let count = 5_000;
            let last = (0..count).map(|_| pacer.pass(1_000_000_000, units, rate)).last().unwrap();
            let seconds = (last - 1_000_000_000) as f64 / 1e9;
            let passed = ((count - 1) * units) as f64;
            // A backlog may be ahead by the credit and no more.
            prop_assert!(passed <= (seconds + CREDIT_NS as f64 / 1e9) * rate as f64 + 1.0);
            prop_assert!(passed >= seconds * rate as f64 * 0.999 - 1.0);
        }

        #[test]
        fn lateness_below_the_credit_costs_no_rate(late_ns in prop::collection::vec(0_u64..150_000, 2_000)) {
            // One request at a time, each sent some time after the one before it passed.
            let rate = 5_000;
            let mut pacer = Pacer::default();
            let mut now_ns = 1_000_000_000;
            let count = 10_000;
            for late in late_ns.iter().cycle().take(count) {
                now_ns = pacer.pass(now_ns, 1, rate) + late;
            }
            let seconds = (now_ns - 1_000_000_000) as f64 / 1e9;
            let achieved = count as f64 / seconds;
            prop_assert!((achieved / rate as f64 - 1.0).abs() < 0.01, "{achieved}");
        }
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert_eq!(Pacer::default().pass(42, 1_000_000, 0), 42);
    }
}
