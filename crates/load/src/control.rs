//! What the threads of a run share, and how the world outside sees and stops them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use mio::Waker;
use plinth_connect::ConnectError;

use crate::events::Events;
use crate::report::Report;
use crate::series::Series;
use crate::timeline::Timeline;

/// When the load began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) at: Instant,
    pub(crate) wall_clock: SystemTime,
    pub(crate) connect: Duration,
}

/// Running counts of one thread, on a cache line of their own: written without locks, read by anyone.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counters {
    done: AtomicU64,
    failed: AtomicU64,
    retried: AtomicU64,
    clients_open: AtomicU64,
}

/// Where the threads of a run stand.
#[derive(Debug)]
struct Roll {
    /// Threads that have not connected their clients yet.
    connecting: usize,
    clients_connected: usize,
    first_error: Option<(usize, ConnectError)>,
    needs_all_clients: bool,
    started: Option<Started>,
    /// Threads that have not ended.
    running: usize,
    reports: Vec<Report>,
    /// What ended a thread before its time: a defect of the engine or of the system, not of the server.
    broken: Option<String>,
}

/// How connecting went.
#[derive(Debug)]
pub(crate) enum Connecting {
    UnderWay,
    /// The load runs.
    Started,
    /// No client has a connection, or not all of those that are needed, and why the first has none; or it was stopped
    /// before any had.
    TooFew(Option<(usize, ConnectError)>),
}

#[derive(Debug)]
pub(crate) struct Control {
    timeline: Timeline,
    series: Arc<Series>,
    events: Events,
    stopping: AtomicBool,
    wakers: Mutex<Vec<Option<Waker>>>,
    counters: Vec<Counters>,
    began: Instant,
    roll: Mutex<Roll>,
    roll_changed: Condvar,
}

/// Shared state changes in steps that cannot panic: what a dead thread left is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    pub(crate) fn new(
        threads: usize,
        timeline: Timeline,
        is_open_loop: bool,
        needs_all_clients: bool,
    ) -> Self {
        let roll = Roll {
            connecting: 0,
            clients_connected: 0,
            first_error: None,
            needs_all_clients,
            started: None,
            running: 0,
            reports: Vec::new(),
            broken: None,
        };
        Self {
            timeline,
            series: Arc::new(Series::new(timeline, threads, is_open_loop)),
            events: Events::default(),
            stopping: AtomicBool::new(false),
            wakers: Mutex::new((0..threads).map(|_| None).collect()),
            counters: (0..threads).map(|_| Counters::default()).collect(),
            began: Instant::now(),
            roll: Mutex::new(roll),
            roll_changed: Condvar::new(),
        }
    }

    pub(crate) fn timeline(&self) -> Timeline {
        self.timeline
    }

    pub(crate) fn series(&self) -> Arc<Series> {
        Arc::clone(&self.series)
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    // --- stopping ---

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        for waker in lock(&self.wakers).iter().flatten() {
            // A thread that cannot be woken sees the flag within a second, when its row ends.
            let _ = waker.wake();
        }
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// From now on, a stop wakes this thread.
    pub(crate) fn set_waker(&self, thread: usize, waker: Waker) {
        lock(&self.wakers)[thread] = Some(waker);
    }

    // --- connecting and ending ---

    /// The threads are about to start.
    pub(crate) fn launch(&self) {
        let mut roll = lock(&self.roll);
        roll.connecting = self.counters.len();
        roll.running = self.counters.len();
    }

    /// A thread has connected its clients. Waits for all threads; the last one starts the load. `None` when
    /// there is nothing to run: too few connected.
    pub(crate) fn connected(
        &self,
        clients: usize,
        error: Option<(usize, ConnectError)>,
    ) -> Option<Started> {
        let mut roll = lock(&self.roll);
        roll.arrive(clients, error, self.began);
        self.roll_changed.notify_all();
        while roll.connecting > 0 {
            roll = self
                .roll_changed
                .wait(roll)
                .unwrap_or_else(PoisonError::into_inner);
        }
        roll.started
    }

    /// A thread has ended; with `Err`, before it could report. `has_connected`: it came past
    /// [`Control::connected`].
    pub(crate) fn ended(&self, report: Result<Option<Report>, String>, has_connected: bool) {
        let mut roll = lock(&self.roll);
        if !has_connected {
            roll.arrive(0, None, self.began);
        }
        match report {
            Ok(report) => roll.reports.extend(report),
            Err(broken) => roll.broken = Some(broken),
        }
        roll.running -= 1;
        self.roll_changed.notify_all();
    }

    /// Waits at most `timeout` for all clients to be connected or refused.
    pub(crate) fn wait_connected(&self, timeout: Duration) -> Connecting {
        let roll = lock(&self.roll);
        let waited = self
            .roll_changed
            .wait_timeout_while(roll, timeout, |roll| roll.connecting > 0);
        let (mut roll, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match roll.started {
            _ if roll.connecting > 0 => Connecting::UnderWay,
            Some(_) => Connecting::Started,
            None => Connecting::TooFew(roll.first_error.take()),
        }
    }

    /// Waits at most `timeout` for all threads to end; whether they have.
    pub(crate) fn wait_ended(&self, timeout: Duration) -> bool {
        let roll = lock(&self.roll);
        let waited = self
            .roll_changed
            .wait_timeout_while(roll, timeout, |roll| roll.running > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.running == 0
    }

    /// What the threads reported, and when they started; an error when one of them broke.
    pub(crate) fn take_reports(&self) -> Result<(Option<Started>, Vec<Report>), String> {
        let mut roll = lock(&self.roll);
        match &roll.broken {
            Some(broken) => Err(broken.clone()),
            None => Ok((roll.started, std::mem::take(&mut roll.reports))),
        }
    }

    pub(crate) fn started(&self) -> Option<Started> {
        lock(&self.roll).started
    }

    // --- progress ---

    /// A thread shows how far it is.
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

impl Roll {
    fn arrive(&mut self, clients: usize, error: Option<(usize, ConnectError)>, began: Instant) {
        self.connecting -= 1;
        self.clients_connected += clients;
        self.first_error = self.first_error.take().or(error);
        let is_enough =
            self.clients_connected > 0 && !(self.needs_all_clients && self.first_error.is_some());
        if self.connecting == 0 && is_enough {
            self.started = Some(Started {
                at: Instant::now(),
                wall_clock: SystemTime::now(),
                connect: began.elapsed(),
            });
        }
    }
}
