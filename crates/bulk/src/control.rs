//! What the threads of a run share: the pieces still to be done, counters, and who must know of whom.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::crew::Report;
use plinth_connect::ConnectError;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Rows counted so far.
    pub(crate) rows: u64,
    /// Bytes counted so far.
    pub(crate) bytes: u64,
    /// Threads that have not ended.
    pub(crate) threads_open: usize,
}

/// Why a thread has to withdraw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// Somebody stopped the run.
    Stopped,
    /// Another thread failed.
    OtherFailed,
}

/// Shared by all threads of a run, whose failures are `F`.
#[derive(Debug)]
pub(crate) struct Control<F> {
    next_piece: AtomicUsize,
    rows: AtomicU64,
    bytes: AtomicU64,
    threads_open: AtomicUsize,
    is_withdrawing: AtomicBool,
    roll: Mutex<Roll<F>>,
    roll_changed: Condvar,
}

#[derive(Debug)]
struct Roll<F> {
    connecting: usize,
    running: usize,
    began: Option<Instant>,
    withdrawal: Option<(Withdrawal, Instant)>,
    connect_error: Option<ConnectError>,
    reports: Vec<Report<F>>,
}

/// Where connecting stands.
pub(crate) enum Connecting {
    UnderWay,
    Done,
    Failed(ConnectError),
}

impl<F> Control<F> {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            next_piece: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            threads_open: AtomicUsize::new(threads),
            is_withdrawing: AtomicBool::new(false),
            roll: Mutex::new(Roll {
                connecting: threads,
                running: threads,
                began: None,
                withdrawal: None,
                connect_error: None,
                reports: Vec::new(),
            }),
            roll_changed: Condvar::new(),
        }
    }

    fn roll(&self) -> MutexGuard<'_, Roll<F>> {
        self.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- pieces and counters ---

    /// The number of a piece that nobody else does.
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
            threads_open: self.threads_open.load(Relaxed),
        }
    }

    // --- withdrawing ---

    /// Tells all threads to withdraw; the first reason is the one that counts.
    pub(crate) fn withdraw(&self, reason: Withdrawal) {
        self.roll()
            .withdrawal
            .get_or_insert((reason, Instant::now()));
        self.is_withdrawing.store(true, Relaxed);
        self.roll_changed.notify_all();
    }

    pub(crate) fn is_withdrawing(&self) -> bool {
        self.is_withdrawing.load(Relaxed)
    }

    /// Why the threads withdraw, and for how long they have been told to; `None` when they have not.
    pub(crate) fn withdrawal(&self) -> Option<(Withdrawal, Duration)> {
        self.roll()
            .withdrawal
            .map(|(reason, since)| (reason, since.elapsed()))
    }

    // --- the roll ---

    /// A thread has connected, or not; waits for the others. Whether all have.
    pub(crate) fn connected(&self, error: Option<ConnectError>) -> bool {
        let mut roll = self.roll();
        roll.connecting -= 1;
        let failed = error.is_some();
        roll.connect_error = roll.connect_error.take().or(error);
        if failed {
            roll.withdrawal
                .get_or_insert((Withdrawal::OtherFailed, Instant::now()));
            self.is_withdrawing.store(true, Relaxed);
        }
        if roll.connecting == 0 && roll.withdrawal.is_none() {
            roll.began = Some(Instant::now());
        }
        self.roll_changed.notify_all();
        let still = |roll: &mut Roll<F>| roll.connecting > 0 && roll.withdrawal.is_none();
        let roll = self.roll_changed.wait_while(roll, still);
        roll.unwrap_or_else(PoisonError::into_inner)
            .withdrawal
            .is_none()
    }

    /// Waits at most `timeout` for all threads to have tried to connect.
    pub(crate) fn wait_connected(&self, timeout: Duration) -> Connecting {
        let waited = self
            .roll_changed
            .wait_timeout_while(self.roll(), timeout, |roll| roll.connecting > 0);
        let (mut roll, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match roll.connect_error.take() {
            _ if roll.connecting > 0 => Connecting::UnderWay,
            Some(error) => Connecting::Failed(error),
            None => Connecting::Done,
        }
    }

    /// A thread has ended; when it never got to [`Control::connected`], it says so.
    pub(crate) fn ended(&self, report: Report<F>, has_connected: bool) {
        let mut roll = self.roll();
        roll.connecting -= usize::from(!has_connected);
        roll.running -= 1;
        roll.reports.push(report);
        self.threads_open.fetch_sub(1, Relaxed);
        self.roll_changed.notify_all();
    }

    /// Waits at most `timeout` for all threads to end; whether they have.
    pub(crate) fn wait_ended(&self, timeout: Duration) -> bool {
        let waited = self
            .roll_changed
            .wait_timeout_while(self.roll(), timeout, |roll| roll.running > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.running == 0
    }

    /// When the threads began to work, and what they reported.
    pub(crate) fn take_reports(&self) -> (Option<Instant>, Vec<Report<F>>) {
        let mut roll = self.roll();
        (roll.began, std::mem::take(&mut roll.reports))
    }
}
