//! A COPY load: start it, poll it, stop it, take its result.

use std::sync::Arc;
use std::time::Duration;

use plinth_config::ConfigError;
use plinth_connect::{ConnectError, Dialer, Opened};
use serde::Serialize;

use crate::config::Config;
use crate::control::CopyControl;
use crate::copy::copy;
use crate::error::RunError;
use crate::failure::Failure;
use crate::piece::Piece;
use crate::pool::{Opener, Task, WorkerPool};
use crate::report::Report;
use crate::session::{Session, SessionError};
use crate::table::Table;

type StreamReport = Report<Failure>;

/// The progress of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Rows sent. They are in the table when their COPY has succeeded.
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

/// The result of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BulkResult {
    /// Rows committed.
    pub rows: u64,
    /// Bytes sent, protocol included.
    pub bytes_sent: u64,
    /// From the last connection to the end of the last stream.
    pub elapsed_ns: u64,
    /// CPU time of the loader itself, in the program.
    pub user_cpu_ns: u64,
    /// CPU time of the loader itself, in the kernel.
    pub system_cpu_ns: u64,
    /// The load was stopped before its work was done.
    pub interrupted: bool,
    /// Failures of streams, without the withdrawals that they caused.
    pub errors: Vec<Failure>,
}

/// A bulk load and its threads. May be used from several threads.
#[derive(Debug)]
pub struct BulkRun {
    pool: WorkerPool<Copying>,
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
        Ok(Self {
            pool: WorkerPool::new(Copying {
                config,
                tables,
                pieces,
            }),
        })
    }

    /// Connects all streams and starts the load. Returns when it runs; it continues in its own threads. `keep_waiting`
    /// is polled; when it returns false, the load is stopped.
    ///
    /// # Errors
    /// When a stream cannot connect; when the load was started before.
    pub fn start(&self, keep_waiting: impl FnMut() -> bool) -> Result<(), RunError> {
        self.pool.start(keep_waiting)
    }

    /// The progress of the load.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let counts = self.pool.counts();
        Progress {
            rows_done: counts.rows,
            rows_total: self.pool.task().pieces.iter().map(|piece| piece.rows).sum(),
            bytes_sent: counts.bytes,
            streams_open: counts.threads_open,
            finished: counts.threads_open == 0,
        }
    }

    /// Ends the load: the streams withdraw what they are copying. Returns at once.
    pub fn stop(&self) {
        self.pool.stop();
    }

    /// Waits at most `timeout` for the load to end. Returns whether it has. `keep_waiting` is polled.
    pub fn wait(&self, timeout: Duration, keep_waiting: impl FnMut() -> bool) -> bool {
        self.pool.wait(timeout, keep_waiting)
    }

    /// The result of a load that has ended.
    ///
    /// # Errors
    /// When it has not, or when a thread broke.
    pub fn result(&self) -> Result<BulkResult, RunError> {
        let sum = self.pool.sum()?;
        Ok(BulkResult {
            rows: sum.rows,
            bytes_sent: sum.bytes,
            elapsed_ns: sum.elapsed_ns,
            user_cpu_ns: sum.user_cpu_ns,
            system_cpu_ns: sum.system_cpu_ns,
            interrupted: sum.interrupted,
            errors: sum.failures.clone(),
        })
    }
}

/// The task of the streams.
#[derive(Debug)]
struct Copying {
    config: Config,
    tables: Vec<Box<dyn Table>>,
    pieces: Vec<Piece>,
}

impl Task for Copying {
    type Failure = Failure;
    type Session = Opened;

    fn threads(&self) -> usize {
        self.config.streams
    }

    fn opener(&self) -> Result<Opener<Opened>, ConnectError> {
        let timeout = self.config.connect_timeout();
        let dialer = Dialer::new(self.config.connection.clone(), Some(timeout))?;
        Ok(Arc::new(move || dialer.open()))
    }

    /// Sends pieces until none is left.
    fn work(
        &self,
        stream: usize,
        opened: Opened,
        control: &CopyControl,
        report: &mut StreamReport,
    ) {
        let mut session = Session::new(opened, control);
        let mut target = self.tables[0].name();
        match self.send_pieces(&mut session, control, report, &mut target) {
            Ok(()) => session.close(),
            Err(error) => {
                if self.config.replace {
                    report.rows = 0;
                }
                report.fail(stream, target, error);
            }
        }
    }
}

impl Copying {
    fn send_pieces<'a>(
        &'a self,
        session: &mut Session<'_>,
        control: &CopyControl,
        report: &mut StreamReport,
        target: &mut &'a str,
    ) -> Result<(), SessionError> {
        for statement in &self.config.prepare {
            session.execute(statement)?;
        }
        if self.config.replace {
            session.execute("BEGIN")?;
            session.execute(&self.config.generator.truncate())?;
        }
        while let Some(piece) = self.pieces.get(control.take_piece()) {
            *target = piece.target(&self.tables);
            let table = self.tables[piece.table].as_ref();
            report.rows += copy(session, control, &self.sql(piece), table, piece.range())?;
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
        if let Some(progress_table) = &self.config.progress_table {
            let Piece {
                table,
                first_row,
                rows,
                ..
            } = piece;
            sql += &format!("; INSERT INTO {progress_table} VALUES ({table}, {first_row}, {rows})");
        }
        sql
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
