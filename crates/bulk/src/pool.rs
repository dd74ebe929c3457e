//! Threads that do one task together, and the sum of their reports.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plinth_connect::ConnectError;
use plinth_thread::CpuTime;
use plinth_thread::lifecycle::{Arrival, Job, Lifecycle, Run, StopReason};

use crate::control::{Control, Counts, Sessions};
use crate::error::RunError;
use crate::report::{Report, Sum};

/// Opens what a thread needs before it can begin.
pub(crate) type Opener<S> = Arc<dyn Fn() -> Result<S, ConnectError> + Send + Sync>;

/// The work of the threads of a pool.
pub(crate) trait Task: Debug + Send + Sync + 'static {
    /// The failure of a thread.
    type Failure: Debug + Clone + Send + Sync;
    /// The session of a thread, opened before its work begins.
    type Session: 'static;

    /// The number of threads.
    fn threads(&self) -> usize;

    /// The function by which each thread opens its session.
    fn opener(&self) -> Result<Opener<Self::Session>, ConnectError>;

    /// The work of one thread, until nothing is left to do or it has to withdraw.
    fn work(
        &self,
        thread: usize,
        session: Self::Session,
        control: &Control<Self::Failure>,
        report: &mut Report<Self::Failure>,
    );
}

/// A task and its threads. May be used from several threads.
#[derive(Debug)]
pub(crate) struct WorkerPool<T: Task> {
    run: Run<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T: Task> {
    task: T,
    control: Control<T::Failure>,
}

impl<T: Task> WorkerPool<T> {
    /// Starts nothing.
    pub(crate) fn new(task: T) -> Self {
        let control = Control::new(task.threads());
        Self {
            run: Run::new("plinth-bulk", Shared { task, control }),
        }
    }

    pub(crate) fn task(&self) -> &T {
        &self.run.job().task
    }

    /// Opens all sessions and starts the task. Returns when it runs; it continues in its own threads. `keep_waiting` is
    /// polled; when it returns false, the run is stopped.
    pub(crate) fn start(&self, keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
        self.run.start(
            |shared| {
                let opener = shared.task.opener()?;
                Ok(vec![opener; shared.task.threads()])
            },
            keep_waiting,
            |sessions| match sessions.connect_error.take() {
                Some(error) => Err(error.into()),
                None => Ok(()),
            },
        )
    }

    pub(crate) fn counts(&self) -> Counts {
        self.run.job().control.counts()
    }

    /// Ends the run: the threads withdraw. Returns at once.
    pub(crate) fn stop(&self) {
        self.run.stop();
    }

    /// Waits at most `timeout` for the run to end. Returns whether it has. `keep_waiting` is polled.
    pub(crate) fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        self.run.wait(timeout, keep_waiting)
    }

    /// The sum of the reports of a run that has ended.
    pub(crate) fn sum(&self) -> Result<Arc<Sum<T::Failure>>, RunError> {
        self.run
            .result(|shared, reports| Ok(shared.control.sum_up(reports)))
    }
}

impl<T: Task> Job for Shared<T> {
    type Gate = Sessions;
    type Input = Opener<T::Session>;
    type Report = Report<T::Failure>;
    type Output = Sum<T::Failure>;

    fn lifecycle(&self) -> &Lifecycle<Sessions, Self::Report> {
        &self.control.lifecycle
    }

    fn work(
        &self,
        number: usize,
        opener: Self::Input,
        arrival: &mut Arrival<'_, Sessions, Self::Report>,
    ) -> io::Result<Option<Self::Report>> {
        let mut report = Report::default();
        let (session, error) = match opener() {
            Ok(session) => (Some(session), None),
            Err(error) => (None, Some(error)),
        };
        if error.is_some() {
            self.stop(StopReason::ThreadFailed);
        }
        let all_connected = arrival.arrive(|sessions| {
            sessions.connect_error = sessions.connect_error.take().or(error);
        });
        match session {
            Some(session) if all_connected => {
                self.task.work(number, session, &self.control, &mut report);
            }
            _ => report.is_withdrawn = true,
        }
        report.cpu = CpuTime::of_this_thread()?;
        report.ended = Some(Instant::now());
        if report.failure.is_some() {
            self.stop(StopReason::ThreadFailed);
        }
        Ok(Some(report))
    }
}

impl<F> Control<F> {
    fn sum_up(&self, reports: Vec<Report<F>>) -> Sum<F> {
        let mut cpu = CpuTime::default();
        for report in &reports {
            cpu += report.cpu;
        }
        let began = self.lifecycle.with_gate(|sessions| sessions.began);
        let ended = reports.iter().filter_map(|report| report.ended).max();
        let elapsed = began
            .zip(ended)
            .map_or(Duration::ZERO, |(began, ended)| ended - began);
        let was_stopped = matches!(self.withdrawal(), Some((StopReason::Requested, _)));
        Sum {
            rows: reports.iter().map(|report| report.rows).sum(),
            bytes: self.counts().bytes,
            elapsed_ns: elapsed.as_nanos() as u64,
            user_cpu_ns: cpu.user_ns,
            system_cpu_ns: cpu.system_ns,
            // A stop that came when all was done interrupted nothing.
            interrupted: was_stopped && reports.iter().any(|report| report.is_withdrawn),
            failures: reports
                .into_iter()
                .filter_map(|report| report.failure)
                .collect(),
        }
    }
}
