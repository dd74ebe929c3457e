//! What the threads of a run share with one another and with the caller.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use mio::Waker;
use plinth_connect::ConnectError;
use plinth_thread::lifecycle::{Lifecycle, StartGate, StopReason};

use crate::commit_ledger::LedgerError;
use crate::events::Events;
use crate::report::Report;
use crate::series::Series;
use crate::started::{Beginning, Started};
use crate::timeline::Timeline;

/// Running counts of one thread, on a cache line of their own: written without locks, read by anyone.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counters {
    done: AtomicU64,
    failed: AtomicU64,
    retried: AtomicU64,
    clients_open: AtomicU64,
}

/// The clients that have connected. The last thread to arrive starts the load, if there are enough.
#[derive(Debug)]
pub(crate) struct ConnectedClients {
    began: Instant,
    clients: usize,
    first_error: Option<(usize, ConnectError)>,
    needs_all_clients: bool,
    started: Option<Started>,
}

impl ConnectedClients {
    /// A thread has connected `clients` clients; `error` is why the first of the others has no connection.
    pub(crate) fn add(&mut self, clients: usize, error: Option<(usize, ConnectError)>) {
        self.clients += clients;
        self.first_error = self.first_error.take().or(error);
    }

    /// Why the load has not started: the error of the first client without a connection. `None` when it has started, or
    /// when it was stopped before any client connected.
    pub(crate) fn take_error(&mut self) -> Option<(usize, ConnectError)> {
        match self.started {
            Some(_) => None,
            None => self.first_error.take(),
        }
    }
}

impl StartGate for ConnectedClients {
    /// When the load started; `None` when too few clients connected.
    type Verdict = Option<Started>;
    const OPENS_ON_STOP: bool = false;

    fn all_arrived(&mut self, _is_stopping: bool) {
        let is_enough = self.clients > 0 && !(self.needs_all_clients && self.first_error.is_some());
        if is_enough {
            self.started = Some(Started {
                at: Instant::now(),
                wall_clock: SystemTime::now(),
                connect: self.began.elapsed(),
            });
        }
    }

    fn verdict(&self, _is_stopping: bool) -> Option<Started> {
        self.started
    }
}

#[derive(Debug)]
pub(crate) struct Control {
    series: Arc<Series>,
    events: Events,
    wakers: Mutex<Vec<Option<Waker>>>,
    counters: Vec<Counters>,
    ledger_error: Mutex<Option<LedgerError>>,
    /// Of a part of a load, which begins when it is told; otherwise the load begins once the clients are connected.
    beginning: Option<Beginning>,
    pub(crate) lifecycle: Lifecycle<ConnectedClients, Report>,
}

impl Control {
    pub(crate) fn new(
        threads: usize,
        timeline: Timeline,
        is_open_loop: bool,
        needs_all_clients: bool,
        is_part: bool,
    ) -> Self {
        let connected = ConnectedClients {
            began: Instant::now(),
            clients: 0,
            first_error: None,
            needs_all_clients,
            started: None,
        };
        Self {
            series: Arc::new(Series::new(timeline, threads, is_open_loop, is_part)),
            events: Events::default(),
            wakers: Mutex::new((0..threads).map(|_| None).collect()),
            counters: (0..threads).map(|_| Counters::default()).collect(),
            ledger_error: Mutex::new(None),
            beginning: is_part.then(Beginning::default),
            lifecycle: Lifecycle::new(threads, connected),
        }
    }

    /// The rows of the run as they are known now: the warm-up may still end earlier.
    pub(crate) fn timeline(&self) -> Timeline {
        self.series.timeline()
    }

    pub(crate) fn series(&self) -> Arc<Series> {
        Arc::clone(&self.series)
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Asks all threads to end, and wakes them.
    pub(crate) fn stop(&self, reason: StopReason) {
        self.lifecycle.stop(reason);
        if let Some(beginning) = &self.beginning {
            beginning.notify();
        }
        for waker in self.wakers().iter().flatten() {
            // A thread that cannot be woken sees the flag within a second, when its row ends.
            let _ = waker.wake();
        }
    }

    /// The ledger cannot be written: ends the run, which has no result but this error. The first counts.
    pub(crate) fn fail_ledger(&self, error: LedgerError) {
        self.ledger_error().get_or_insert(error);
        self.stop(StopReason::ThreadFailed);
    }

    /// What went wrong with the ledger.
    pub(crate) fn ledger_error(&self) -> MutexGuard<'_, Option<LedgerError>> {
        let error = self.ledger_error.lock();
        error.unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.lifecycle.is_stopping()
    }

    /// From now on, a stop wakes this thread.
    pub(crate) fn set_waker(&self, thread: usize, waker: Waker) {
        self.wakers()[thread] = Some(waker);
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Option<Waker>>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the load started, if it has; of a part, when it is to start, once it was told.
    pub(crate) fn started(&self) -> Option<Started> {
        let connected = self.lifecycle.with_gate(|connected| connected.started)?;
        match &self.beginning {
            None => Some(connected),
            Some(beginning) => beginning.of(connected),
        }
    }

    /// When a part of a load, whose clients are connected, begins. Returns false when it is none, or was told before.
    pub(crate) fn begin_at(&self, at: Instant) -> bool {
        self.beginning
            .as_ref()
            .is_some_and(|beginning| beginning.set(at))
    }

    /// Waits until it is known when a load whose clients are `connected` begins. `None`: it was stopped before.
    pub(crate) fn await_beginning(&self, connected: Started) -> Option<Started> {
        match &self.beginning {
            None => Some(connected),
            Some(beginning) => beginning.wait(connected, || self.is_stopping()),
        }
    }

    /// A thread publishes its progress.
    #[inline]
    pub(crate) fn publish(&self, thread: usize, so_far: [u64; 3], clients_open: usize) {
        let counters = &self.counters[thread];
        let [done, failed, retried] = so_far;
        counters.done.store(done, Relaxed);
        counters.failed.store(failed, Relaxed);
        counters.retried.store(retried, Relaxed);
        counters.clients_open.store(clients_open as u64, Relaxed);
    }

    /// Done, failed, retried, and clients open, over all threads.
    pub(crate) fn counts(&self) -> [u64; 4] {
        self.counters
            .iter()
            .fold([0; 4], |[done, failed, retried, clients_open], thread| {
                [
                    done + thread.done.load(Relaxed),
                    failed + thread.failed.load(Relaxed),
                    retried + thread.retried.load(Relaxed),
                    clients_open + thread.clients_open.load(Relaxed),
                ]
            })
    }
}
