//! The beginning of a load.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use plinth_thread::POLL_INTERVAL;

/// When the load began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) at: Instant,
    pub(crate) wall_clock: SystemTime,
    pub(crate) connect: Duration,
}

/// The beginning of a part of a load: an instant that it is told once its clients are connected.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    at: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Beginning {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether it was not set before.
    pub(crate) fn set(&self, at: Instant) -> bool {
        let mut known = self.lock();
        let is_first = known.is_none();
        known.get_or_insert(at);
        self.changed.notify_all();
        is_first
    }

    /// Who waits looks at the stop again.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// The beginning of a load whose clients were `connected`, once it is known.
    pub(crate) fn of(&self, connected: Started) -> Option<Started> {
        let at = (*self.lock())?;
        let wall_clock = match at.checked_duration_since(connected.at) {
            Some(later) => connected.wall_clock + later,
            None => connected.wall_clock - connected.at.duration_since(at),
        };
        Some(Started {
            at,
            wall_clock,
            ..connected
        })
    }

    /// Waits until it is known. `None`: `is_stopping` before that.
    pub(crate) fn wait(
        &self,
        connected: Started,
        is_stopping: impl Fn() -> bool,
    ) -> Option<Started> {
        let mut at = self.lock();
        while at.is_none() {
            if is_stopping() {
                return None;
            }
            // A stop that comes between the look and the wait is seen at the next look.
            let waited = self.changed.wait_timeout(at, POLL_INTERVAL);
            at = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(at);
        self.of(connected)
    }
}

impl Started {
    /// Waits until it has come. Returns false if it `is_stopping` before that.
    pub(crate) fn wait(&self, is_stopping: impl Fn() -> bool) -> bool {
        loop {
            let left = self.at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            if is_stopping() {
                return false;
            }
            thread::sleep(left.min(POLL_INTERVAL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected() -> Started {
        Started {
            at: Instant::now(),
            wall_clock: SystemTime::now(),
            connect: Duration::ZERO,
        }
    }

    #[test]
    fn it_is_set_once_and_not_left_early() {
        let beginning = Beginning::default();
        let connected = connected();
        assert!(beginning.of(connected).is_none());
        let at = connected.at + Duration::from_millis(20);
        assert!(beginning.set(at));
        assert!(!beginning.set(at + Duration::from_secs(3_600)));
        let started = beginning.wait(connected, || false).unwrap();
        assert!(
            started.at == at && Instant::now() < at,
            "it is known before"
        );
        assert!(started.wait(|| false) && Instant::now() >= at);
        let later = started.wall_clock.duration_since(connected.wall_clock);
        assert_eq!(later.unwrap(), Duration::from_millis(20));
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let beginning = Beginning::default();
        assert!(beginning.wait(connected(), || true).is_none());
        beginning.set(Instant::now() + Duration::from_secs(3_600));
        let started = beginning.wait(connected(), || true).unwrap();
        assert!(!started.wait(|| true));
    }
}
