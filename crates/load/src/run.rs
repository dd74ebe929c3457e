//! A run as its caller sees it: start it, poll it, stop it, take its result.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plinth_config::ConfigError;
use plinth_connect::{ConnectError, Dialer};
use plinth_script::{Command, Seeds, lossless};
use plinth_thread::lifecycle::{Arrival, Job, Lifecycle, LifecycleError, Run, StopReason};
use plinth_thread::{do_not_preempt, monotonic_ns};
use rustix::process::{Resource, Rlimit};
use serde::Serialize;
use thiserror::Error;

use crate::assignment::Assignment;
use crate::commit_ledger::{LedgerError, NewLedger};
use crate::config::Config;
use crate::control::{ConnectedClients, Control};
use crate::events::Event;
use crate::pacing::is_paced;
use crate::program::{Programs, ScriptError, Step};
use crate::recording::Replay;
use crate::report::{Labels, Report, RunResult};
use crate::seconds::nanoseconds;
use crate::series::SeriesRow;
use crate::timeline::{Phase, Timeline};
use crate::workloads::Workloads;

/// A load that cannot be prepared.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// A key of the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A script.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Why a run was not started, or has no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// Nobody connected, or not all who had to.
    #[error("{error}")]
    Connect {
        /// The first client without a connection.
        client: usize,
        /// Why it has none.
        #[source]
        error: ConnectError,
    },
    /// Too few file descriptors, or threads.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The log of transactions.
    #[error("could not open logfile \"{}\": {}", lossless::from_bytes(path.as_os_str().as_bytes()), system_words(source))]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The commit ledger.
    #[error("cannot {what} the ledger {}: {}; commits are not sent without their record", path.display(), system_words(source))]
    Ledger {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A call at the wrong time.
    #[error("{0}")]
    State(&'static str),
    /// A defect of the engine.
    #[error("the load engine broke: {0}")]
    Broken(String),
}

impl From<LifecycleError> for RunError {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::State(message) => Self::State(message),
            LifecycleError::Spawn(source) => Self::System {
                what: "cannot start a thread",
                source,
            },
            LifecycleError::Broken(message) => Self::Broken(message),
        }
    }
}

impl From<&LedgerError> for RunError {
    fn from(error: &LedgerError) -> Self {
        let source = &error.source;
        Self::Ledger {
            path: error.path.clone(),
            what: error.what,
            source: io::Error::new(source.kind(), system_words(source)),
        }
    }
}

/// The progress of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Progress {
    /// Since the load began; 0 while connecting.
    pub elapsed_ns: u64,
    /// `connect`, `warmup`, `measure` or `done`.
    pub phase: &'static str,
    /// Transactions that ended well, so far.
    pub done: u64,
    /// Transactions that did not.
    pub failed: u64,
    /// Transactions with more than one try.
    pub retried: u64,
    /// Clients with a connection.
    pub clients_open: u64,
    /// Rows of the series finished since the last call.
    pub seconds: Vec<SeriesRow>,
    /// What happened to single transactions since the last call: the end of clients, and all errors if asked for.
    pub events: Vec<Event>,
    /// Further events that there was no room for.
    pub events_dropped: u64,
}

/// A load and its threads. May be used from several threads.
#[derive(Debug)]
pub struct LoadRun {
    run: Run<Prepared>,
}

/// What a thread is handed when it starts.
#[derive(Debug)]
struct Input {
    dialer: Arc<Dialer>,
    log: Option<File>,
    ledger: Option<NewLedger>,
}

/// What does not change while the load runs.
#[derive(Debug)]
struct Prepared {
    config: Config,
    task: Task,
    seeds: Seeds,
    control: Control,
}

/// What the clients do.
#[derive(Debug)]
enum Task {
    Scripts(Programs),
    Replay(Replay),
}

impl Task {
    fn new(config: &Config, default_seed: Option<i64>) -> Result<Self, PrepareError> {
        Ok(match &config.replay {
            Some(replay) => Self::Replay(Replay::open(replay)?),
            None => {
                let workloads = Workloads::new(config)?;
                Self::Scripts(Programs::compile(config, workloads, default_seed)?)
            }
        })
    }

    fn labels(&self) -> Labels<'_> {
        match self {
            Self::Scripts(programs) => programs.labels(),
            Self::Replay(replay) => replay.labels(),
        }
    }

    /// Options of the sessions, with those that the target has already.
    fn session_options(&self, options: Option<String>) -> Option<String> {
        match self {
            Self::Scripts(programs) => programs.workloads.session_options(options),
            Self::Replay(replay) => replay.session_options(options),
        }
    }

    /// Whether transactions are due at set times.
    fn is_open_loop(&self, config: &Config) -> bool {
        match self {
            Self::Scripts(_) => config.rate.is_some(),
            Self::Replay(replay) => replay.is_open_loop(),
        }
    }
}

impl LoadRun {
    /// Checks the configuration and parses the scripts; opens nothing.
    ///
    /// # Errors
    /// What is wrong with the configuration, or with a script.
    pub fn new(config: Config) -> Result<Self, PrepareError> {
        config.validate()?;
        let draws_default_seed = !config.variables.contains_key("default_seed");
        let seeds = Seeds::new(
            config.seed,
            config.clients,
            config.threads(),
            draws_default_seed,
        );
        let task = Task::new(&config, seeds.default_seed)?;
        let timeline = Timeline {
            warmup_ns: nanoseconds(config.longest_warmup_s()),
        };
        let control = Control::new(
            config.own_threads().len(),
            timeline,
            task.is_open_loop(&config),
            config.require_all_clients,
            config.part.is_some(),
        );
        let prepared = Prepared {
            config,
            task,
            seeds,
            control,
        };
        Ok(Self {
            run: Run::new("plinth-load", prepared),
        })
    }

    /// Connects the clients and starts the load. Returns when it runs; it continues in its own threads. `keep_waiting` is
    /// polled; when it returns false, the run is stopped.
    ///
    /// # Errors
    /// When no client connects, or one does not that has to; when that was tried before.
    pub fn start(&self, keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
        let control = &self.run.job().control;
        self.run.start(Prepared::inputs, keep_waiting, |connected| {
            match connected.take_error() {
                // Errors after a stop are consequences of it.
                Some((client, error)) if !control.is_stopping() => {
                    Err(RunError::Connect { client, error })
                }
                _ => Ok(()),
            }
        })
    }

    /// The progress of the run.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let control = &self.run.job().control;
        let started = control.started();
        let elapsed_ns = started.map_or(0, |started| started.at.elapsed().as_nanos() as u64);
        let timeline = control.timeline();
        let phase = match started {
            _ if self.run.has_ended() => "done",
            None => "connect",
            Some(_) => match timeline.phase(timeline.row(elapsed_ns)) {
                Phase::Warmup => "warmup",
                Phase::Measure => "measure",
            },
        };
        let (events, events_dropped) = control.events().take();
        let [done, failed, retried, clients_open] = control.counts();
        Progress {
            elapsed_ns,
            phase,
            done,
            failed,
            retried,
            clients_open,
            seconds: control.series().take_new(),
            events,
            events_dropped,
        }
    }

    /// Begins a part of a load, whose clients are connected, at `at_ns` of the monotonic clock.
    ///
    /// # Errors
    /// When it is no part, or was told before.
    pub fn go(&self, at_ns: u64) -> Result<(), RunError> {
        let now_ns = monotonic_ns();
        let now = Instant::now();
        let at = match at_ns.checked_sub(now_ns) {
            Some(left_ns) => now.checked_add(Duration::from_nanos(left_ns)),
            None => now.checked_sub(Duration::from_nanos(now_ns - at_ns)),
        };
        let Some(at) = at else {
            return Err(RunError::State(
                "the clock cannot show the time at which to begin",
            ));
        };
        if !self.run.job().control.begin_at(at) {
            return Err(RunError::State(
                "only a part of a load is told when to begin, and that once",
            ));
        }
        Ok(())
    }

    /// The histograms of each second that a part of a load has finished since the last call (`part.rs` has the format).
    #[must_use]
    pub fn take_histograms(&self) -> Vec<u8> {
        self.run.job().control.series().take_histograms()
    }

    /// Ends the warm-up of a load with a `warmup_max_s`, unless it is over: with the second that is under way, though not before
    /// `warmup_s` nor before `not_before_ns` since the beginning. The load runs on. Returns how long the warm-up lasts then, in
    /// nanoseconds.
    ///
    /// # Errors
    /// When the load has not begun, or its warm-up has a fixed length.
    pub fn begin_measuring(&self, not_before_ns: u64) -> Result<u64, RunError> {
        let Prepared {
            config, control, ..
        } = self.run.job();
        let Some(started) = control.started() else {
            return Err(RunError::State("the load has not begun"));
        };
        if config.warmup_max_s.is_none() {
            return Err(RunError::State(
                "the warm-up has a fixed length, as there is no warmup_max_s",
            ));
        }
        let now_ns = started.at.elapsed().as_nanos() as u64;
        let series = control.series();
        let least_ns = nanoseconds(config.warmup_s).max(not_before_ns);
        Ok(series.begin_measuring(now_ns, least_ns))
    }

    /// Ends the run: no transaction begins any more, those under way are finished within the stop timeout.
    /// Returns at once.
    pub fn stop(&self) {
        self.run.stop();
    }

    /// Waits at most `timeout` for the run to end. Returns whether it has. `keep_waiting` is polled.
    pub fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        self.run.wait(timeout, keep_waiting)
    }

    /// The result of a run that has ended.
    ///
    /// # Errors
    /// When it has not, or when a thread broke.
    pub fn result(&self) -> Result<Arc<RunResult>, RunError> {
        self.run.result(Prepared::merge)
    }
}

impl Prepared {
    /// Whether clients do something at a given time: transactions of an open loop or after a wait, or sleeps.
    fn keeps_time(&self) -> bool {
        let config = &self.config;
        if self.task.is_open_loop(config) {
            return true;
        }
        let Task::Scripts(programs) = &self.task else {
            return false;
        };
        let sleeps = |step: &Step| matches!(step, Step::Meta(Command::Sleep(_)));
        let mut steps = programs.programs.iter().flat_map(|one| &one.steps);
        is_paced(&config.scripts) || steps.any(sleeps)
    }

    /// What each thread needs from the system.
    fn inputs(&self) -> Result<Vec<Input>, RunError> {
        let config = &self.config;
        let mut target = config.connection.clone();
        target.options = self.task.session_options(target.options);
        let dialer = Dialer::new(target, Some(config.connect_timeout()))
            .map_err(|error| RunError::Connect { client: 0, error })?;
        let own_clients = config
            .own_threads()
            .map(|thread| self.seeds.threads[thread].clients.len())
            .sum();
        allow_descriptors(own_clients).map_err(|source| RunError::System {
            what: "cannot open a socket for every client; raise the limit of open files (ulimit -n)",
            source,
        })?;
        let logs = open_logs(config)?.into_iter();
        let with_dialer = |(log, ledger)| Input {
            dialer: Arc::clone(&dialer),
            log,
            ledger,
        };
        Ok(logs
            .zip(
                NewLedger::make_all(
                    config.ledger.as_ref(),
                    config.own_threads(),
                    config.threads(),
                )
                .map_err(|error| RunError::from(&error))?,
            )
            .map(with_dialer)
            .collect())
    }

    fn merge(&self, reports: Vec<Report>) -> Result<RunResult, RunError> {
        let control = &self.control;
        if let Some(error) = &*control.ledger_error() {
            return Err(error.into());
        }
        let started = control.started();
        if started.is_none() && !control.is_stopping() {
            return Err(RunError::State("no client connected: there is no result"));
        }
        let merged = RunResult::merge(
            &self.task.labels(),
            control.timeline(),
            started,
            control.series().rows(),
            reports,
        );
        if !(merged.totals.balance() && merged.measured.balance()) {
            return Err(RunError::Broken(format!(
                "the totals do not add up: {:?}",
                merged.totals
            )));
        }
        Ok(merged)
    }
}

impl Job for Prepared {
    type Gate = ConnectedClients;
    type Input = Input;
    type Report = Report;
    type Output = RunResult;

    fn lifecycle(&self) -> &Lifecycle<ConnectedClients, Report> {
        &self.control.lifecycle
    }

    fn stop(&self, reason: StopReason) {
        self.control.stop(reason);
    }

    fn work(
        &self,
        thread: usize,
        input: Input,
        arrival: &mut Arrival<'_, ConnectedClients, Report>,
    ) -> io::Result<Option<Report>> {
        // A thread with due times must be able to preempt others. Without the policy the engine costs more CPU time,
        // which its figures show.
        if !self.keeps_time() {
            let _ = do_not_preempt();
        }
        let thread_of_load = self.config.own_threads().nth(thread);
        let Some(thread_of_load) = thread_of_load else {
            unreachable!("there are as many threads as the part has")
        };
        let assignment = Assignment {
            thread,
            thread_of_load,
            config: &self.config,
            dialer: &input.dialer,
            control: &self.control,
            seeds: &self.seeds.threads[thread_of_load],
            shared_throttle: self.seeds.threads[0].throttle,
            client_seeds: &self.seeds.clients,
        };
        let mut opened = assignment.connect()?;
        let (clients, error) = (opened.opened.len(), opened.first_error.take());
        let connected = arrival.arrive(|connected| connected.add(clients, error));
        match connected.and_then(|connected| self.control.await_beginning(connected)) {
            Some(started) => match &self.task {
                Task::Scripts(programs) => {
                    assignment.run(programs, opened, input.log, input.ledger, started)
                }
                Task::Replay(replay) => assignment.replay(replay, opened, started),
            },
            None => Ok(None),
        }
    }
}

/// What the system said, without the number that Rust puts behind it.
fn system_words(error: &io::Error) -> String {
    let words = error.to_string();
    let end = words.find(" (os error").unwrap_or(words.len());
    words[..end].to_owned()
}

/// A file for each thread that logs.
fn open_logs(config: &Config) -> Result<Vec<Option<File>>, RunError> {
    let open = |thread| {
        let Some(log) = &config.log else {
            return Ok(None);
        };
        let path = log.path(thread);
        match File::create(&path) {
            Ok(file) => Ok(Some(file)),
            Err(source) => Err(RunError::Log { path, source }),
        }
    };
    (0..config.own_threads().len()).map(open).collect()
}

/// Raises the soft limit of open files as far as `clients` sockets need it.
fn allow_descriptors(clients: usize) -> io::Result<()> {
    // What else is open: the program's own files, and three descriptors a thread.
    let needed = clients as u64 + 1024;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        if raised <= clients as u64 {
            return Err(io::Error::other(format!(
                "{clients} clients, and at most {raised} open files"
            )));
        }
        let maximum = limit.maximum;
        rustix::process::setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(raised),
                maximum,
            },
        )?;
    }
    Ok(())
}
