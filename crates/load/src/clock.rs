//! The clock of a run: nanoseconds since it began.

use std::time::Instant;

use plinth_thread::monotonic_ns;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// On the monotonic clock.
    started_ns: u64,
}

impl Clock {
    pub(crate) fn of(started: Instant) -> Self {
        Self {
            started_ns: monotonic_ns() - started.elapsed().as_nanos() as u64,
        }
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
