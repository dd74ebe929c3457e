//! State that the threads of a run share: remaining pieces, counters, and the lifecycle.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use plinth_connect::ConnectError;
use plinth_thread::lifecycle::{Lifecycle, StartGate, StopReason};

use crate::failure::Failure;
use crate::report::Report;

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Rows counted so far.
    pub(crate) rows: u64,
    /// Bytes counted so far.
    pub(crate) bytes: u64,
    /// Threads that have not ended.
    pub(crate) threads_open: usize,
}

/// Whether all threads have a session. The run begins when the last one has.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) began: Option<Instant>,
    pub(crate) connect_error: Option<ConnectError>,
}

impl StartGate for Sessions {
    /// Whether to begin.
    type Verdict = bool;
    const OPENS_ON_STOP: bool = true;

    fn all_arrived(&mut self, is_stopping: bool) {
        self.began = (!is_stopping).then(Instant::now);
    }

    fn verdict(&self, is_stopping: bool) -> bool {
        !is_stopping
    }
}

/// Shared by all threads of a run, whose failures are `F`.
#[derive(Debug)]
pub(crate) struct Control<F> {
    next_piece: AtomicUsize,
    rows: AtomicU64,
    bytes: AtomicU64,
    pub(crate) lifecycle: Lifecycle<Sessions, Report<F>>,
}

/// State that the streams of a COPY load share.
pub(crate) type CopyControl = Control<Failure>;

impl<F> Control<F> {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            next_piece: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lifecycle: Lifecycle::new(threads, Sessions::default()),
        }
    }

    /// The number of a piece that no other thread takes.
    pub(crate) fn take_piece(&self) -> usize {
        self.next_piece.fetch_add(1, Relaxed)
    }

    pub(crate) fn count(&self, rows: u64, bytes: usize) {
        self.rows.fetch_add(rows, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            rows: self.rows.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            threads_open: self.lifecycle.running(),
        }
    }

    /// Whether the threads have to withdraw what they are doing.
    pub(crate) fn is_withdrawing(&self) -> bool {
        self.lifecycle.is_stopping()
    }

    /// The reason why the threads have to withdraw, and the time since then; `None` if they need not.
    pub(crate) fn withdrawal(&self) -> Option<(StopReason, Duration)> {
        self.lifecycle.stop_reason()
    }
}
