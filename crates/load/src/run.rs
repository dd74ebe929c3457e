//! A run from the outside: start it, watch it, stop it, take its result.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plinth_connect::{ConnectError, Dialer};
use plinth_script::{Command, Seeds, lossless};
use plinth_thread::{GLANCE, do_not_preempt, wait_in_glances, work_for_others};
use rustix::process::{Resource, Rlimit};
use serde::Serialize;
use thiserror::Error;

use crate::config::{Config, ConfigError, nanoseconds};
use crate::control::{Connecting, Control};
use crate::events::Event;
use crate::native::Workloads;
use crate::program::{Programs, ScriptError, Step};
use crate::report::RunResult;
use crate::series::SeriesRow;
use crate::timeline::{Phase, Timeline};
use crate::worker::Assignment;

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

/// A run that did not do what it should, for reasons that are not the load's.
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
    /// A call at the wrong time.
    #[error("{0}")]
    State(&'static str),
    /// A defect of the engine.
    #[error("the load engine broke: {0}")]
    Broken(String),
}

/// How far a run is.
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

/// A load, its threads, and what they share. May be used from several threads.
#[derive(Debug)]
pub struct LoadRun {
    prepared: Arc<Prepared>,
    is_started: Mutex<bool>,
    result: Mutex<Option<Arc<RunResult>>>,
}

/// What does not change while the load runs.
#[derive(Debug)]
struct Prepared {
    config: Config,
    programs: Programs,
    seeds: Seeds,
    control: Control,
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
        let workloads = Workloads::new(&config)?;
        let programs = Programs::compile(&config, workloads, seeds.default_seed)?;
        let timeline = Timeline {
            warmup_ns: nanoseconds(config.warmup_s),
        };
        let control = Control::new(
            config.threads(),
            timeline,
            config.rate.is_some(),
            config.require_all_clients,
        );
        Ok(Self {
            prepared: Arc::new(Prepared {
                config,
                programs,
                seeds,
                control,
            }),
            is_started: Mutex::new(false),
            result: Mutex::new(None),
        })
    }

    /// Connects the clients and starts the load. Returns when it runs; then it goes on in its own threads.
    /// `keep_waiting` is asked now and then whether to; when it says no, the run is stopped.
    ///
    /// # Errors
    /// When no client connects, or one does not that has to; when that was tried before.
    pub fn start(&self, mut keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
        self.spawn()?;
        loop {
            match self.prepared.control.wait_connected(GLANCE) {
                Connecting::UnderWay if keep_waiting() => {}
                Connecting::UnderWay => {
                    self.stop();
                    return Ok(());
                }
                // What goes wrong after a stop is of no interest.
                Connecting::TooFew(Some((client, error)))
                    if !self.prepared.control.is_stopping() =>
                {
                    return Err(RunError::Connect { client, error });
                }
                Connecting::Started | Connecting::TooFew(_) => return Ok(()),
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
                "the run was started before; make a new one",
            ));
        }
        let config = &self.prepared.config;
        let dialer = Dialer::new(config.connection.clone(), Some(config.connect_timeout()))
            .map_err(|error| RunError::Connect { client: 0, error })?;
        allow_descriptors(config.clients).map_err(|source| RunError::System {
            what: "cannot open a socket for every client; raise the limit of open files (ulimit -n)",
            source,
        })?;
        let logs = open_logs(config)?;
        *is_started = true;
        self.prepared.control.launch();
        for (thread, log) in logs.into_iter().enumerate() {
            let prepared = Arc::clone(&self.prepared);
            let dialer = Arc::clone(&dialer);
            let spawned = thread::Builder::new()
                .name(format!("plinth-load-{thread}"))
                .spawn(move || prepared.work(thread, &dialer, log));
            if let Err(source) = spawned {
                // The threads that do run must not wait for those that never will.
                self.stop();
                for _ in thread..config.threads() {
                    self.prepared
                        .control
                        .ended(Err("a thread could not be started".to_owned()), false);
                }
                return Err(RunError::System {
                    what: "cannot start a thread",
                    source,
                });
            }
        }
        Ok(())
    }

    /// How far the run is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let control = &self.prepared.control;
        let started = control.started();
        let elapsed_ns = started.map_or(0, |started| started.at.elapsed().as_nanos() as u64);
        let timeline = control.timeline();
        let phase = match started {
            _ if self.is_started() && control.wait_ended(Duration::ZERO) => "done",
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
            seconds: control.series().news(),
            events,
            events_dropped,
        }
    }

    fn is_started(&self) -> bool {
        *self
            .is_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run: no transaction begins any more, those under way are finished within the stop timeout.
    /// Returns at once.
    pub fn stop(&self) {
        self.prepared.control.stop();
    }

    /// Waits at most `timeout` for the run to end; whether it has. `keep_waiting` is asked now and then.
    pub fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        wait_in_glances(timeout, keep_waiting, |glance| {
            self.prepared.control.wait_ended(glance)
        })
    }

    /// The result of a run that has ended.
    ///
    /// # Errors
    /// When it has not, or when a thread broke.
    pub fn result(&self) -> Result<Arc<RunResult>, RunError> {
        let control = &self.prepared.control;
        if !*self
            .is_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            return Err(RunError::State("the run was not started"));
        }
        if !control.wait_ended(Duration::ZERO) {
            return Err(RunError::State(
                "the run has not ended: wait for it, or stop it",
            ));
        }
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = &*result {
            return Ok(Arc::clone(result));
        }
        let (started, reports) = control.take_reports().map_err(RunError::Broken)?;
        if started.is_none() && !control.is_stopping() {
            return Err(RunError::State("no client connected: there is no result"));
        }
        let rows = control.series().rows();
        let merged = RunResult::merge(
            &self.prepared.programs,
            control.timeline(),
            started,
            rows,
            reports,
        );
        if !(merged.totals.balance() && merged.measured.balance()) {
            return Err(RunError::Broken(format!(
                "the books do not balance: {:?}",
                merged.totals
            )));
        }
        Ok(Arc::clone(result.insert(Arc::new(merged))))
    }
}

impl Drop for LoadRun {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Prepared {
    /// Whether clients do something at a given time: transactions of an open loop, or sleeps.
    fn keeps_time(&self) -> bool {
        let sleeps = |step: &Step| matches!(step, Step::Meta(Command::Sleep(_)));
        let mut steps = self.programs.programs.iter().flat_map(|one| &one.steps);
        self.config.rate.is_some() || steps.any(sleeps)
    }

    /// The life of a thread. Whatever happens to it, the others and the caller get to know.
    fn work(&self, thread: usize, dialer: &Arc<Dialer>, log: Option<File>) {
        let mut has_connected = false;
        let report = work_for_others(|| {
            // What is due at a time must not wait for its turn. Where the policy cannot be had the engine costs more,
            // and its CPU figures say so.
            if !self.keeps_time() {
                let _ = do_not_preempt();
            }
            let assignment = Assignment {
                thread,
                config: &self.config,
                dialer,
                programs: &self.programs,
                control: &self.control,
                seeds: &self.seeds.threads[thread],
                client_seeds: &self.seeds.clients,
            };
            let mut connected = assignment.connect()?;
            let started = self
                .control
                .connected(connected.opened.len(), connected.first_error.take());
            has_connected = true;
            let Some(started) = started else {
                return Ok(None);
            };
            assignment.run(connected, log, started).map(Some)
        });
        if report.is_err() {
            self.control.stop();
        }
        self.control.ended(report, has_connected);
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
    (0..config.threads()).map(open).collect()
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
