//! A load from the outside: start it, watch it, stop it, take its result.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plinth_connect::{ConnectError, Dialer, Opened};
use plinth_thread::{CpuTime, GLANCE, wait_in_glances, work_for_others};
use serde::Serialize;
use thiserror::Error;

use crate::config::{Config, ConfigError};
use crate::control::{Connecting, Control, Progress, Withdrawal};
use crate::copy::copy;
use crate::piece::Piece;
use crate::session::{Session, SessionError};
use crate::table::Table;

/// A load that did not do what it should, for reasons that are not in its result.
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

/// What went wrong in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// `sql`, `connection_lost` or `protocol`.
    pub kind: &'static str,
    /// The server's error code, if it was the server that said no: 53100 is a full disk.
    pub sqlstate: Option<String>,
    /// The table that was being filled.
    pub table: String,
    /// Number of the stream.
    pub stream: usize,
    /// What the server, or the system, said.
    pub message: String,
}

/// What a load gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BulkResult {
    /// Rows in the tables for good.
    pub rows: u64,
    /// Bytes sent, protocol included.
    pub bytes_sent: u64,
    /// From the last connection to the end of the last stream.
    pub elapsed_ns: u64,
    /// CPU time of the loader itself, in the program.
    pub user_cpu_ns: u64,
    /// CPU time of the loader itself, in the kernel.
    pub system_cpu_ns: u64,
    /// A stop ended the load before its time.
    pub interrupted: bool,
    /// Failures of streams; those that withdrew because of them are not among them.
    pub errors: Vec<Failure>,
}

/// What one stream brings home.
#[derive(Debug, Default)]
pub(crate) struct StreamReport {
    rows: u64,
    failure: Option<Failure>,
    /// It ended without having sent its share, for reasons that are not its own.
    is_withdrawn: bool,
    cpu: CpuTime,
    ended: Option<Instant>,
    broken: Option<String>,
}

/// A bulk load, its threads, and what they share. May be used from several threads.
#[derive(Debug)]
pub struct BulkRun {
    shared: Arc<Shared>,
    is_started: Mutex<bool>,
    result: Mutex<Option<BulkResult>>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    control: Control,
    tables: Vec<Box<dyn Table>>,
    pieces: Vec<Piece>,
}

impl BulkRun {
    /// Checks the configuration; opens nothing.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let tables = config.generator.tables();
        let pieces = config.pieces();
        let rows_total = pieces.iter().map(|piece| piece.rows).sum();
        let control = Control::new(config.streams, rows_total);
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                control,
                tables,
                pieces,
            }),
            is_started: Mutex::new(false),
            result: Mutex::new(None),
        })
    }

    /// Connects all streams and starts the load. Returns when it runs; then it goes on in its own threads.
    /// `keep_waiting` is asked now and then whether to; when it says no, the load is stopped.
    ///
    /// # Errors
    /// When a stream cannot connect; when the load was started before.
    pub fn start(&self, mut keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
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
        let config = &self.shared.config;
        let dialer = Dialer::new(config.connection.clone(), Some(config.connect_timeout()))?;
        *is_started = true;
        for stream in 0..self.shared.config.streams {
            let shared = Arc::clone(&self.shared);
            let dialer = Arc::clone(&dialer);
            let spawned = thread::Builder::new()
                .name(format!("plinth-bulk-{stream}"))
                .spawn(move || shared.work(stream, &dialer));
            if let Err(error) = spawned {
                // The streams that do run must not wait for those that never will.
                self.shared.control.withdraw(Withdrawal::OtherFailed);
                for _ in stream..self.shared.config.streams {
                    self.shared.control.ended(StreamReport::default(), false);
                }
                return Err(RunError::Thread(error));
            }
        }
        Ok(())
    }

    /// How far the load is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.shared.control.progress()
    }

    /// Ends the load: the streams withdraw what they are copying. Returns at once.
    pub fn stop(&self) {
        self.shared.control.withdraw(Withdrawal::Stopped);
    }

    /// Waits at most `timeout` for the load to end; whether it has. `keep_waiting` is asked now and then.
    pub fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        wait_in_glances(timeout, keep_waiting, |glance| {
            self.shared.control.wait_ended(glance)
        })
    }

    /// The result of a load that has ended.
    ///
    /// # Errors
    /// When it has not, or when a thread broke.
    pub fn result(&self) -> Result<BulkResult, RunError> {
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
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        if result.is_none() {
            *result = Some(self.shared.sum_up()?);
        }
        result
            .clone()
            .ok_or(RunError::State("the load has no result"))
    }
}

impl Drop for BulkRun {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// The life of a thread. Whatever happens to it, the others and the caller get to know.
    fn work(&self, stream: usize, dialer: &Arc<Dialer>) {
        let mut has_connected = false;
        let mut report = StreamReport::default();
        let outcome = work_for_others(|| {
            let (opened, error) = match dialer.open() {
                Ok(opened) => (Some(opened), None),
                Err(error) => (None, Some(error)),
            };
            has_connected = true;
            let all_connected = self.control.connected(error);
            match opened {
                Some(opened) if all_connected => self.load(stream, opened, &mut report),
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

    /// Sends pieces until none is left.
    fn load(&self, stream: usize, opened: Opened, report: &mut StreamReport) {
        let mut session = Session::new(opened, &self.control);
        let mut under_way = self.tables[0].name();
        match self.send_pieces(&mut session, report, &mut under_way) {
            Ok(()) => session.close(),
            Err(error) => {
                if self.config.replace {
                    report.rows = 0;
                }
                report.fail(stream, under_way, error);
            }
        }
    }

    fn send_pieces<'a>(
        &'a self,
        session: &mut Session<'_>,
        report: &mut StreamReport,
        under_way: &mut &'a str,
    ) -> Result<(), SessionError> {
        for statement in &self.config.prepare {
            session.execute(statement)?;
        }
        if self.config.replace {
            session.execute("BEGIN")?;
            session.execute(&self.config.generator.truncate())?;
        }
        while let Some(piece) = self.pieces.get(self.control.take_piece()) {
            *under_way = piece.target(&self.tables);
            let table = self.tables[piece.table].as_ref();
            report.rows += copy(
                session,
                &self.control,
                &self.sql(piece),
                table,
                piece.range(),
            )?;
        }
        if self.config.replace {
            session.execute("COMMIT")?;
        }
        Ok(())
    }

    /// The statements of one piece, sent together: which makes them a transaction where none is open.
    fn sql(&self, piece: &Piece) -> String {
        let into = piece.target(&self.tables);
        let mut sql = String::new();
        if self.config.freeze && !self.config.replace {
            sql += &format!("TRUNCATE {into}; ");
        }
        let how = if self.config.freeze {
            " WITH (FREEZE)"
        } else {
            ""
        };
        sql += &format!("COPY {into} FROM STDIN{how}");
        if let Some(ledger) = &self.config.ledger {
            let Piece {
                table,
                first_row,
                rows,
                ..
            } = piece;
            sql += &format!("; INSERT INTO {ledger} VALUES ({table}, {first_row}, {rows})");
        }
        sql
    }

    fn sum_up(&self) -> Result<BulkResult, RunError> {
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
        Ok(BulkResult {
            rows: reports.iter().map(|report| report.rows).sum(),
            bytes_sent: self.control.progress().bytes_sent,
            elapsed_ns: elapsed.as_nanos() as u64,
            user_cpu_ns: cpu.user_ns,
            system_cpu_ns: cpu.system_ns,
            // A stop that came when all was done interrupted nothing.
            interrupted: was_stopped && reports.iter().any(|report| report.is_withdrawn),
            errors: reports
                .into_iter()
                .filter_map(|report| report.failure)
                .collect(),
        })
    }
}

impl StreamReport {
    fn fail(&mut self, stream: usize, table: &str, error: SessionError) {
        let (kind, sqlstate) = match &error {
            SessionError::Withdrawn => {
                self.is_withdrawn = true;
                return;
            }
            SessionError::Server(error) => ("sql", Some(error.sqlstate.clone())),
            SessionError::Lost(_) => ("connection_lost", None),
            SessionError::Frame(_) | SessionError::Unexpected(_) => ("protocol", None),
        };
        let (table, message) = (table.to_owned(), error.to_string());
        self.failure = Some(Failure {
            kind,
            sqlstate,
            table,
            stream,
            message,
        });
    }
}
