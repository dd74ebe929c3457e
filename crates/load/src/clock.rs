//! The clock of a run: nanoseconds since it began.

use std::time::Instant;

use plinth_thread::monotonic_ns;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// On the monotonic clock.
    started_ns: u64,
}

impl Clock {
    /// Of a run that has begun at `started`, or will.
    pub(crate) fn of(started: Instant) -> Self {
        let (now, now_ns) = (Instant::now(), monotonic_ns());
        let started_ns = match started.checked_duration_since(now) {
            Some(left) => now_ns + left.as_nanos() as u64,
            None => now_ns - now.duration_since(started).as_nanos() as u64,
        };
        Self { started_ns }
    }

    /// On the monotonic clock.
    pub(crate) fn started_ns(self) -> u64 {
        self.started_ns
    }

    #[inline]
    pub(crate) fn now_ns(self) -> u64 {
        monotonic_ns() - self.started_ns
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_run_may_begin_later() {
        let (now, now_ns) = (Instant::now(), monotonic_ns());
        for (started, expected_ns) in [
            (now + Duration::from_secs(3), now_ns + 3_000_000_000),
            (now - Duration::from_secs(3), now_ns - 3_000_000_000),
        ] {
            let wrong_ns = Clock::of(started).started_ns().abs_diff(expected_ns);
            assert!(wrong_ns < 100_000_000, "{wrong_ns} ns");
        }
    }
}
