//! The counters of a disk's status.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// Counts that only grow.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// The counts at some instant.
        #[derive(Debug, Serialize)]
        pub(crate) struct Counts {
            $($name: u64,)*
        }

        impl Counters {
            pub(crate) fn now(&self) -> Counts {
                Counts {
                    $($name: self.$name.0.load(Relaxed),)*
                }
            }
        }
    };
}

counters! {
    reads,
    writes,
    writes_through,
    flushes,
    discards,
    bytes_read,
    bytes_written,
    bytes_discarded,
    requests_delayed,
    requests_refused,
    eio_read,
    eio_write,
    eio_flush,
    flushes_falsified,
    backing_errors,
    power_cuts,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }
}
