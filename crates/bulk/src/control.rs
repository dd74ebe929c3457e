//! What the streams share: the pieces still to be sent, counters, and who must know of whom.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plinth_connect::ConnectError;
use serde::Serialize;

use crate::run::StreamReport;

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Rows sent; they are in the table when their COPY has ended well.
    pub rows_done: u64,
    /// Rows to send.
    pub rows_total: u64,
    /// Bytes sent, protocol included.
    pub bytes_sent: u64,
    /// Streams that have not ended.
    pub streams_open: usize,
    /// Whether all streams have ended.
    pub finished: bool,
}

/// Why a stream has to withdraw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// Somebody stopped the load.
    Stopped,
    /// Another stream failed.
    OtherFailed,
}

/// Shared by all streams of a load.
#[derive(Debug)]
pub(crate) struct Control {
    rows_total: u64,
    next_piece: AtomicUsize,
    rows_sent: AtomicU64,
    bytes_sent: AtomicU64,
    streams_open: AtomicUsize,
    is_withdrawing: AtomicBool,
    roll: Mutex<Roll>,
    roll_changed: Condvar,
}

#[derive(Debug)]
struct Roll {
    connecting: usize,
    running: usize,
    began: Option<Instant>,
    withdrawal: Option<(Withdrawal, Instant)>,
    connect_error: Option<ConnectError>,
    reports: Vec<StreamReport>,
}

/// Where connecting stands.
pub(crate) enum Connecting {
    UnderWay,
    Done,
    Failed(ConnectError),
}

impl Control {
    pub(crate) fn new(streams: usize, rows_total: u64) -> Self {
        Self {
            rows_total,
            next_piece: AtomicUsize::new(0),
            rows_sent: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            streams_open: AtomicUsize::new(streams),
            is_withdrawing: AtomicBool::new(false),
            roll: Mutex::new(Roll {
                connecting: streams,
                running: streams,
                began: None,
                withdrawal: None,
                connect_error: None,
                reports: Vec::new(),
            }),
            roll_changed: Condvar::new(),
        }
    }

    fn roll(&self) -> MutexGuard<'_, Roll> {
        self.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- pieces and counters ---

    /// The number of a piece that nobody else sends.
    pub(crate) fn take_piece(&self) -> usize {
        self.next_piece.fetch_add(1, Relaxed)
    }

    pub(crate) fn count_sent(&self, rows: u64, bytes: usize) {
        self.rows_sent.fetch_add(rows, Relaxed);
        self.bytes_sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn progress(&self) -> Progress {
        let streams_open = self.streams_open.load(Relaxed);
        Progress {
            rows_done: self.rows_sent.load(Relaxed),
            rows_total: self.rows_total,
            bytes_sent: self.bytes_sent.load(Relaxed),
            streams_open,
            finished: streams_open == 0,
        }
    }

    // --- withdrawing ---

    /// Tells all streams to withdraw; the first reason is the one that counts.
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

    /// Why the streams withdraw, and for how long they have been told to; `None` when they have not.
    pub(crate) fn withdrawal(&self) -> Option<(Withdrawal, Duration)> {
        self.roll()
            .withdrawal
            .map(|(reason, since)| (reason, since.elapsed()))
    }

    // --- the roll ---

    /// A stream has connected, or not; waits for the others. Whether all have.
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
        let still = |roll: &mut Roll| roll.connecting > 0 && roll.withdrawal.is_none();
        let roll = self.roll_changed.wait_while(roll, still);
        roll.unwrap_or_else(PoisonError::into_inner)
            .withdrawal
            .is_none()
    }

    /// Waits at most `timeout` for all streams to have tried to connect.
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

    /// A stream has ended; when it never got to [`Control::connected`], it says so.
    pub(crate) fn ended(&self, report: StreamReport, has_connected: bool) {
        let mut roll = self.roll();
        roll.connecting -= usize::from(!has_connected);
        roll.running -= 1;
        roll.reports.push(report);
        self.streams_open.fetch_sub(1, Relaxed);
        self.roll_changed.notify_all();
    }

    /// Waits at most `timeout` for all streams to end; whether they have.
    pub(crate) fn wait_ended(&self, timeout: Duration) -> bool {
        let waited = self
            .roll_changed
            .wait_timeout_while(self.roll(), timeout, |roll| roll.running > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.running == 0
    }

    /// When the streams began to send, and what they reported.
    pub(crate) fn take_reports(&self) -> (Option<Instant>, Vec<StreamReport>) {
        let mut roll = self.roll();
        (roll.began, std::mem::take(&mut roll.reports))
    }
}
