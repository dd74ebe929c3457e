//! When the measuring of a case ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When a case ends: after its duration, or when it is stopped.
#[derive(Debug)]
pub(crate) struct Until {
    pub(crate) ends: Instant,
    stopped: AtomicBool,
}

impl Until {
    pub(crate) fn new(ends: Instant) -> Self {
        Self {
            ends,
            stopped: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.ends || self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
