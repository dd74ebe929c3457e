//! Threads that do one job together: started, watched, stopped, and what they bring home summed up.

use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plinth_connect::ConnectError;
use plinth_thread::{CpuTime, GLANCE, wait_in_glances, work_for_others};
use thiserror::Error;

use crate::control::{Connecting, Control, Counts, Withdrawal};

/// A run that did not do what it should, for reasons that are not in its result.
#[derive(Debug, Error)]
pub enum RunError {
    /// A stream could not connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A call at the wrong time.
    #[error("{0}")]
    State(&'static str),
    /// A defect of the loader.
    #[error("the bulk loader broke: {0}")]
    Broken(String),
}

/// Opens what a thread needs before it can begin.
pub(crate) type Opener<S> = Arc<dyn Fn() -> Result<S, ConnectError> + Send + Sync>;

/// What the threads of a run do.
pub(crate) trait Job: Debug + Send + Sync + 'static {
    /// What went wrong in a thread.
    type Failure: Debug + Clone + Send;
    /// What a thread needs before it can begin.
    type Session;

    /// By how many threads.
    fn threads(&self) -> usize;

    /// How each of them opens its session.
    fn opener(&self) -> Result<Opener<Self::Session>, ConnectError>;

    /// What one thread does, until nothing is left to do or it has to withdraw.
    fn work(
        &self,
        thread: usize,
        session: Self::Session,
        control: &Control<Self::Failure>,
        report: &mut Report<Self::Failure>,
    );
}

/// What one thread brings home.
#[derive(Debug)]
pub(crate) struct Report<F> {
    pub(crate) rows: u64,
    pub(crate) failure: Option<F>,
    /// It ended without having done its share, for reasons that are not its own.
    pub(crate) is_withdrawn: bool,
    cpu: CpuTime,
    ended: Option<Instant>,
    broken: Option<String>,
}

impl<F> Default for Report<F> {
    fn default() -> Self {
        Self {
            rows: 0,
            failure: None,
            is_withdrawn: false,
            cpu: CpuTime::default(),
            ended: None,
            broken: None,
        }
    }
}

/// What all of them bring home.
#[derive(Debug, Clone)]
pub(crate) struct Sum<F> {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// From when the last thread was ready to the end of the last.
    pub(crate) elapsed_ns: u64,
    pub(crate) user_cpu_ns: u64,
    pub(crate) system_cpu_ns: u64,
    /// A stop ended the run before its time.
    pub(crate) interrupted: bool,
    /// Of those that did not withdraw because of others.
    pub(crate) failures: Vec<F>,
}

/// A job, its threads, and what they share. May be used from several threads.
#[derive(Debug)]
pub(crate) struct Crew<J: Job> {
    shared: Arc<Shared<J>>,
    is_started: Mutex<bool>,
    sum: Mutex<Option<Sum<J::Failure>>>,
}

#[derive(Debug)]
struct Shared<J: Job> {
    job: J,
    control: Control<J::Failure>,
}

impl<J: Job> Crew<J> {
    /// Starts nothing.
    pub(crate) fn new(job: J) -> Self {
        let control = Control::new(job.threads());
        Self {
            shared: Arc::new(Shared { job, control }),
            is_started: Mutex::new(false),
            sum: Mutex::new(None),
        }
    }

    pub(crate) fn job(&self) -> &J {
        &self.shared.job
    }

    /// Opens all sessions and starts the job. Returns when it runs; then it goes on in its own threads.
    /// `keep_waiting` is asked now and then whether to; when it says no, the run is stopped.
    pub(crate) fn start(&self, mut keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
        self.spawn()?;
        loop {
            match self.shared.control.wait_connected(GLANCE) {
                Connecting::UnderWay if keep_waiting() => {}
                Connecting::UnderWay => {
                    self.stop();
                    return Ok(());
                }
                Connecting::Failed(error) => return Err(error.into()),
                Connecting::Done => return Ok(()),
            }
        }
    }

    fn spawn(&self) -> Result<(), RunError> {
        let mut is_started = self
            .is_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *is_started {
            return Err(RunError::State(
                "the load was started before; make a new one",
            ));
        }
        let opener = self.shared.job.opener()?;
        *is_started = true;
        let threads = self.shared.job.threads();
        for number in 0..threads {
            let shared = Arc::clone(&self.shared);
            let opener = Arc::clone(&opener);
            let spawned = thread::Builder::new()
                .name(format!("plinth-bulk-{number}"))
                .spawn(move || shared.work(number, &opener));
            if let Err(error) = spawned {
                // The threads that do run must not wait for those that never will.
                self.shared.control.withdraw(Withdrawal::OtherFailed);
                for _ in number..threads {
                    self.shared.control.ended(Report::default(), false);
                }
                return Err(RunError::Thread(error));
            }
        }
        Ok(())
    }

    /// How far the run is.
    pub(crate) fn counts(&self) -> Counts {
        self.shared.control.counts()
    }

    /// Ends the run: the threads withdraw. Returns at once.
    pub(crate) fn stop(&self) {
        self.shared.control.withdraw(Withdrawal::Stopped);
    }

    /// Waits at most `timeout` for the run to end; whether it has. `keep_waiting` is asked now and then.
    pub(crate) fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        wait_in_glances(timeout, keep_waiting, |glance| {
            self.shared.control.wait_ended(glance)
        })
    }

    /// What a run that has ended brought home.
    pub(crate) fn sum(&self) -> Result<Sum<J::Failure>, RunError> {
        if !*self
            .is_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            return Err(RunError::State("the load was not started"));
        }
        if !self.shared.control.wait_ended(Duration::ZERO) {
            return Err(RunError::State(
                "the load has not ended: wait for it, or stop it",
            ));
        }
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        if sum.is_none() {
            *sum = Some(self.shared.sum_up()?);
        }
        sum.clone().ok_or(RunError::State("the load has no result"))
    }
}

impl<J: Job> Drop for Crew<J> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<J: Job> Shared<J> {
    /// The life of a thread. Whatever happens to it, the others and the caller get to know.
    fn work(&self, number: usize, opener: &Opener<J::Session>) {
        let mut has_connected = false;
        let mut report = Report::default();
        let outcome = work_for_others(|| {
            let (session, error) = match opener() {
                Ok(session) => (Some(session), None),
                Err(error) => (None, Some(error)),
            };
            has_connected = true;
            let all_connected = self.control.connected(error);
            match session {
                Some(session) if all_connected => {
                    self.job.work(number, session, &self.control, &mut report);
                }
                _ => report.is_withdrawn = true,
            }
            report.cpu = CpuTime::of_this_thread()?;
            Ok(())
        });
        report.broken = outcome.err();
        report.ended = Some(Instant::now());
        if report.broken.is_some() || report.failure.is_some() {
            self.control.withdraw(Withdrawal::OtherFailed);
        }
        self.control.ended(report, has_connected);
    }

    fn sum_up(&self) -> Result<Sum<J::Failure>, RunError> {
        let (began, reports) = self.control.take_reports();
        if let Some(broken) = reports.iter().find_map(|report| report.broken.clone()) {
            return Err(RunError::Broken(broken));
        }
        let mut cpu = CpuTime::default();
        for report in &reports {
            cpu += report.cpu;
        }
        let ended = reports.iter().filter_map(|report| report.ended).max();
        let elapsed = began
            .zip(ended)
            .map_or(Duration::ZERO, |(began, ended)| ended - began);
        let was_stopped = matches!(self.control.withdrawal(), Some((Withdrawal::Stopped, _)));
        Ok(Sum {
            rows: reports.iter().map(|report| report.rows).sum(),
            bytes: self.control.counts().bytes,
            elapsed_ns: elapsed.as_nanos() as u64,
            user_cpu_ns: cpu.user_ns,
            system_cpu_ns: cpu.system_ns,
            // A stop that came when all was done interrupted nothing.
            interrupted: was_stopped && reports.iter().any(|report| report.is_withdrawn),
            failures: reports
                .into_iter()
                .filter_map(|report| report.failure)
                .collect(),
        })
    }
}
