//! The lifecycle of a run of several threads: it is started once, its threads begin together, it is polled, stopped and
//! waited for, and gives one result. A thread that panics makes the result an error.

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{POLL_INTERVAL, poll_until, run_guarded};

/// The reason why a run has no result.
#[derive(Debug)]
pub enum LifecycleError {
    /// A call at the wrong time.
    State(&'static str),
    /// A thread could not be started.
    Spawn(io::Error),
    /// A thread panicked, or the operating system refused what it needs.
    Broken(String),
}

/// The reason why the threads of a run have to end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The caller stopped the run.
    Requested,
    /// A thread failed, so the others have to end too.
    ThreadFailed,
}

/// Decides whether a run begins once its threads have prepared themselves. It is kept under the run's lock.
pub trait StartGate: Debug + Send + 'static {
    /// The outcome of waiting at the gate.
    type Verdict;
    /// Whether a stop opens the gate for the threads that wait at it. If not, they wait until all have arrived.
    const OPENS_ON_STOP: bool;

    /// All threads have arrived.
    fn all_arrived(&mut self, is_stopping: bool);

    /// Returns the outcome for a thread when the gate opens.
    fn verdict(&self, is_stopping: bool) -> Self::Verdict;
}

/// The state that all threads of a run and its caller share: gate `G`, reports of type `R`.
#[derive(Debug)]
pub struct Lifecycle<G, R> {
    threads: usize,
    is_started: Mutex<bool>,
    is_stopping: AtomicBool,
    state: Mutex<State<G, R>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<G, R> {
    /// Threads that have not arrived at the gate.
    arriving: usize,
    /// Threads that have not ended.
    running: usize,
    gate: G,
    /// The first reason to stop, and its time.
    stop: Option<(StopReason, Instant)>,
    reports: Vec<R>,
    /// The first error or panic of a thread.
    broken: Option<String>,
}

/// Each change of shared state is complete before anything can panic, so a poisoned lock protects consistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<G: StartGate, R> Lifecycle<G, R> {
    /// The lifecycle of a run of `threads` threads, none of which is started.
    pub fn new(threads: usize, gate: G) -> Self {
        Self {
            threads,
            is_started: Mutex::new(false),
            is_stopping: AtomicBool::new(false),
            state: Mutex::new(State {
                arriving: threads,
                running: threads,
                gate,
                stop: None,
                reports: Vec::new(),
                broken: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Whether the threads were started.
    pub fn is_started(&self) -> bool {
        *lock(&self.is_started)
    }

    /// The number of threads that have not ended; all of them before the start.
    pub fn running(&self) -> usize {
        lock(&self.state).running
    }

    /// Reads the gate, or takes something out of it.
    pub fn with_gate<T>(&self, read: impl FnOnce(&mut G) -> T) -> T {
        read(&mut lock(&self.state).gate)
    }

    /// Asks all threads to end. The first reason counts.
    pub fn stop(&self, reason: StopReason) {
        lock(&self.state)
            .stop
            .get_or_insert((reason, Instant::now()));
        self.is_stopping.store(true, Relaxed);
        self.changed.notify_all();
    }

    /// Whether the threads have to end.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }

    /// The reason why the threads have to end, and the time since the request.
    pub fn stop_reason(&self) -> Option<(StopReason, Duration)> {
        lock(&self.state)
            .stop
            .map(|(reason, since)| (reason, since.elapsed()))
    }

    fn arrive(&self, record: impl FnOnce(&mut G)) -> G::Verdict {
        let mut state = lock(&self.state);
        record(&mut state.gate);
        state.arrived();
        self.changed.notify_all();
        let is_closed = |state: &mut State<G, R>| {
            state.arriving > 0 && !(G::OPENS_ON_STOP && state.stop.is_some())
        };
        let state = self
            .changed
            .wait_while(state, is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.gate.verdict(state.stop.is_some())
    }

    /// A thread has ended, or could not be started.
    fn ended(&self, outcome: Result<Option<R>, String>, has_arrived: bool) {
        let mut state = lock(&self.state);
        if !has_arrived {
            state.arrived();
        }
        match outcome {
            Ok(report) => state.reports.extend(report),
            Err(broken) => {
                state.broken.get_or_insert(broken);
            }
        }
        state.running -= 1;
        self.changed.notify_all();
    }

    fn wait_arrived(&self, timeout: Duration) -> bool {
        self.wait_while(timeout, |state| state.arriving > 0)
    }

    fn wait_ended(&self, timeout: Duration) -> bool {
        self.wait_while(timeout, |state| state.running > 0)
    }

    /// Waits at most `timeout` while `is_pending`. Returns whether it is no longer pending.
    fn wait_while(&self, timeout: Duration, is_pending: impl Fn(&State<G, R>) -> bool) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.state), timeout, |state| is_pending(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_pending(&state)
    }
}

impl<G: StartGate, R> State<G, R> {
    fn arrived(&mut self) {
        self.arriving -= 1;
        if self.arriving == 0 {
            self.gate.all_arrived(self.stop.is_some());
        }
    }
}

/// A thread's way through the gate, which it passes once.
#[derive(Debug)]
pub struct Arrival<'a, G, R> {
    lifecycle: &'a Lifecycle<G, R>,
    has_arrived: bool,
}

impl<G: StartGate, R> Arrival<'_, G, R> {
    /// Records at the gate how the thread's preparation went, then waits for the other threads.
    pub fn arrive(&mut self, record: impl FnOnce(&mut G)) -> G::Verdict {
        debug_assert!(!self.has_arrived, "a thread passes the gate once");
        self.has_arrived = true;
        self.lifecycle.arrive(record)
    }
}

/// The work of the threads of a run.
pub trait Job: Debug + Send + Sync + 'static {
    /// Decides whether the run begins.
    type Gate: StartGate;
    /// The input of a thread.
    type Input: Send + 'static;
    /// The report of a thread.
    type Report: Debug + Send + 'static;
    /// The result of the run.
    type Output: Debug + Send + Sync;

    /// The state that the threads share.
    fn lifecycle(&self) -> &Lifecycle<Self::Gate, Self::Report>;

    /// The work of thread `number`. It has to pass the gate by `arrival` before it begins.
    ///
    /// # Errors
    /// The error that ends the run: a defect, or a failure of the operating system.
    fn work(
        &self,
        number: usize,
        input: Self::Input,
        arrival: &mut Arrival<'_, Self::Gate, Self::Report>,
    ) -> io::Result<Option<Self::Report>>;

    /// Asks all threads to end.
    fn stop(&self, reason: StopReason) {
        self.lifecycle().stop(reason);
    }
}

/// A job and its threads. May be used from several threads. Dropping it stops the job.
#[derive(Debug)]
pub struct Run<J: Job> {
    thread_name: &'static str,
    job: Arc<J>,
    output: Mutex<Option<Arc<J::Output>>>,
}

impl<J: Job> Run<J> {
    /// Starts nothing. Threads are named `thread_name` and their number.
    pub fn new(thread_name: &'static str, job: J) -> Self {
        Self {
            thread_name,
            job: Arc::new(job),
            output: Mutex::new(None),
        }
    }

    /// The job.
    pub fn job(&self) -> &J {
        &self.job
    }

    /// Starts the threads, with the inputs that `prepare` makes, one for each. Returns when all have arrived at the gate,
    /// with what `begun` makes of it. `keep_waiting` is polled; when it returns false, the run is stopped.
    ///
    /// # Errors
    /// The errors of `prepare` and `begun`; a run that was already started; a thread that cannot be started.
    pub fn start<E: From<LifecycleError>>(
        &self,
        prepare: impl FnOnce(&J) -> Result<Vec<J::Input>, E>,
        mut keep_waiting: impl FnMut() -> bool,
        begun: impl FnOnce(&mut J::Gate) -> Result<(), E>,
    ) -> Result<(), E> {
        self.spawn(prepare)?;
        let lifecycle = self.job.lifecycle();
        while !lifecycle.wait_arrived(POLL_INTERVAL) {
            if !keep_waiting() {
                self.stop();
                return Ok(());
            }
        }
        lifecycle.with_gate(begun)
    }

    fn spawn<E: From<LifecycleError>>(
        &self,
        prepare: impl FnOnce(&J) -> Result<Vec<J::Input>, E>,
    ) -> Result<(), E> {
        let lifecycle = self.job.lifecycle();
        let mut is_started = lock(&lifecycle.is_started);
        if *is_started {
            let message = "the run was started before; make a new one";
            return Err(LifecycleError::State(message).into());
        }
        let inputs = prepare(&self.job)?;
        debug_assert_eq!(inputs.len(), lifecycle.threads);
        *is_started = true;
        for (number, input) in inputs.into_iter().enumerate() {
            let job = Arc::clone(&self.job);
            let spawned = thread::Builder::new()
                .name(format!("{}-{number}", self.thread_name))
                .spawn(move || run_thread(job.as_ref(), number, input));
            if let Err(error) = spawned {
                // The threads that run must not wait for those that never will.
                self.job.stop(StopReason::ThreadFailed);
                for _ in number..lifecycle.threads {
                    lifecycle.ended(Err("a thread could not be started".to_owned()), false);
                }
                return Err(LifecycleError::Spawn(error).into());
            }
        }
        Ok(())
    }

    /// Asks all threads to end. Returns at once.
    pub fn stop(&self) {
        self.job.stop(StopReason::Requested);
    }

    /// Whether the run was started and all its threads have ended.
    pub fn has_ended(&self) -> bool {
        let lifecycle = self.job.lifecycle();
        lifecycle.is_started() && lifecycle.wait_ended(Duration::ZERO)
    }

    /// Waits at most `timeout` for all threads to end. Returns whether they have: at once for a run that was not started,
    /// since none of its threads runs. `keep_waiting` is polled; the wait ends when
    /// it returns false.
    pub fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        let lifecycle = self.job.lifecycle();
        if !lifecycle.is_started() {
            return true;
        }
        poll_until(timeout, keep_waiting, |interval| {
            lifecycle.wait_ended(interval)
        })
    }

    /// The result of a run that has ended, which `merge` makes of the threads' reports at the first call.
    ///
    /// # Errors
    /// When the run was not started or has not ended; when a thread broke; those of `merge`.
    pub fn result<E: From<LifecycleError>>(
        &self,
        merge: impl FnOnce(&J, Vec<J::Report>) -> Result<J::Output, E>,
    ) -> Result<Arc<J::Output>, E> {
        let lifecycle = self.job.lifecycle();
        if !lifecycle.is_started() {
            return Err(LifecycleError::State("the run was not started").into());
        }
        if !lifecycle.wait_ended(Duration::ZERO) {
            let message = "the run has not ended: wait for it, or stop it";
            return Err(LifecycleError::State(message).into());
        }
        let mut output = lock(&self.output);
        if let Some(output) = &*output {
            return Ok(Arc::clone(output));
        }
        let reports = {
            let mut state = lock(&lifecycle.state);
            if let Some(broken) = &state.broken {
                return Err(LifecycleError::Broken(broken.clone()).into());
            }
            std::mem::take(&mut state.reports)
        };
        let merged = merge(&self.job, reports)?;
        Ok(Arc::clone(output.insert(Arc::new(merged))))
    }
}

impl<J: Job> Drop for Run<J> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The body of a thread. However it ends, the other threads and the caller learn of it.
fn run_thread<J: Job>(job: &J, number: usize, input: J::Input) {
    let lifecycle = job.lifecycle();
    let mut arrival = Arrival {
        lifecycle,
        has_arrived: false,
    };
    let outcome = run_guarded(|| job.work(number, input, &mut arrival));
    if outcome.is_err() {
        job.stop(StopReason::ThreadFailed);
    }
    lifecycle.ended(outcome, arrival.has_arrived);
}
