//! What the threads report, and the result of the run.

use std::time::{Duration, SystemTime};

use plinth_thread::CpuTime;
use serde::Serialize;

use crate::aggregates::{Aggregates, Totals};
use crate::errors::{Counted, ErrorKind, Errors};
use crate::latencies::Latencies;
use crate::recorder::Recorder;
use crate::series::SeriesRow;
use crate::started::Started;
use crate::statement::Statement;
use crate::timeline::Timeline;

/// What one thread reports.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) recorder: Recorder,
    pub(crate) end_ns: u64,
    pub(crate) interrupted: bool,
    pub(crate) cpu: CpuTime,
    pub(crate) bytes_sent: u64,
    pub(crate) server_transactions: u64,
    pub(crate) bytes_received: u64,
    pub(crate) clients_aborted: u64,
    pub(crate) server_version: Option<String>,
    pub(crate) first_start_ns: Option<u64>,
    /// Of a replay.
    pub(crate) replay: Option<ReplayCounts>,
}

/// What the recorder's figures are of.
#[derive(Debug)]
pub(crate) struct Labels<'a> {
    pub(crate) scripts: Vec<ScriptLabel<'a>>,
    pub(crate) statements: &'a [Statement],
}

/// A script, as results name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptLabel<'a> {
    pub(crate) name: &'a str,
    pub(crate) weight: u64,
    /// Of its commands.
    pub(crate) lines: &'a [usize],
}

/// The result of a run. Times named `_ns` are nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// Wall-clock time at which the load began.
    pub started_unix_ns: u64,
    /// How long after that the first client was served: in a closed loop it sends its first statement then.
    pub first_start_ns: Option<u64>,
    /// How long connecting took.
    pub connect_ns: u64,
    /// How long the warm-up lasted.
    pub warmup_ns: u64,
    /// The length of the measured phase: from the end of the warm-up until the last client had finished its last transaction.
    pub measured_ns: u64,
    /// The run was stopped before its end.
    pub interrupted: bool,
    /// Clients that were aborted, without those that never got a connection.
    pub clients_aborted: u64,
    /// The whole run.
    pub totals: Totals,
    /// Transactions that ended in the measured phase.
    pub measured: Totals,
    /// Transactions of the server that clients saw end, committed or rolled back, in the whole run: a script may be several, or
    /// none. More may have ended within a query.
    pub server_transactions: u64,
    /// Per second, warm-up included.
    pub series: Vec<SeriesRow>,
    /// By script, measured phase only.
    pub scripts: Vec<ScriptResult>,
    /// Measured phase only; sets that are empty are left out.
    pub histograms: Vec<HistogramResult>,
    /// All errors of the whole run, including those after which a retry succeeded.
    pub errors: Vec<ErrorResult>,
    /// What the engine itself used.
    pub engine: EngineCost,
    /// What became of a recording; none of other loads. A class of its statements is a script here.
    pub replay: Option<ReplayCounts>,
}

/// The transactions of a script.
#[derive(Debug, Clone, Serialize)]
pub struct ScriptResult {
    /// Its name.
    pub name: String,
    /// Its share among all scripts' weights.
    pub weight: u64,
    /// Transactions that ended in the measured phase; without those that were due and never begun.
    pub measured: Totals,
}

/// Latencies of a script's transactions or of a statement.
#[derive(Debug, Clone, Serialize)]
pub struct HistogramResult {
    /// `transaction`: from the intended start to the end. `service` and `schedule_lag`, only in an open loop: from the
    /// actual start to the end, and from the intended to the actual start. `statement`: from sending it to its end.
    /// `command`: a meta command, if they are timed.
    /// `connect`: new connections for transactions, or for sessions of a recording. `recorded`: how long what was done took
    /// when it was recorded.
    pub scope: &'static str,
    /// Name of the script; none of `connect`.
    pub script: Option<String>,
    /// Number of the statement within its script.
    pub statement: Option<usize>,
    /// Line of the statement or command.
    pub line: Option<usize>,
    /// The statement.
    pub text: Option<String>,
    /// Number of latencies.
    pub count: u64,
    /// Their sum, exact.
    pub sum_ns: u64,
    /// The shortest, exact.
    pub min_ns: u64,
    /// The longest, exact.
    pub max_ns: u64,
    /// Buckets that are not empty: highest latency of the bucket, and count.
    pub buckets: Vec<(u64, u64)>,
}

/// Errors of one kind at one place.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorResult {
    /// What kind.
    pub kind: ErrorKind,
    /// The server's code, if it was the server that reported it.
    pub sqlstate: Option<String>,
    /// Name of the script; none when a client could not connect.
    pub script: Option<String>,
    /// Number of the statement within its script.
    pub statement: Option<usize>,
    /// Line of the command.
    pub line: Option<usize>,
    /// The first message.
    pub message: String,
    /// How often.
    pub count: u64,
    /// After how many of these the transaction was tried again.
    pub retried: u64,
    /// When first, since the start of the run.
    pub first_ns: u64,
}

/// What became of the statements of a recording, in the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ReplayCounts {
    /// Statements of the recording.
    pub statements: u64,
    /// Those that the run ended before.
    pub not_reached: u64,
    /// Failed: with the code that was recorded, or with any if the recording has none.
    pub failed_as_recorded: u64,
    /// Done: they failed when they were recorded.
    pub no_longer_failing: u64,
    /// Failed: the server refused them in a read-only transaction, or they followed such a one in it.
    pub refused_writes: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// The most at one time.
    pub connections_at_once: u64,
}

impl ReplayCounts {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.statements += other.statements;
        self.not_reached += other.not_reached;
        self.failed_as_recorded += other.failed_as_recorded;
        self.no_longer_failing += other.no_longer_failing;
        self.refused_writes += other.refused_writes;
        self.connections += other.connections;
        self.connections_at_once += other.connections_at_once;
    }
}

/// What the engine itself used.
#[derive(Debug, Clone, Serialize)]
pub struct EngineCost {
    /// CPU time of the threads in user mode, in the measured phase.
    pub user_cpu_ns: u64,
    /// CPU time of the threads in the kernel, in the measured phase.
    pub system_cpu_ns: u64,
    /// How long an event waited for its thread, 99th percentile: when this is not far below the latencies, the
    /// engine is the bottleneck.
    pub loop_lag_p99_ns: u64,
    /// To the server, after login.
    pub bytes_sent: u64,
    /// From the server, after login.
    pub bytes_received: u64,
    /// Threads started.
    pub threads: usize,
    /// As the server reports it.
    pub server_version: Option<String>,
}

impl RunResult {
    /// Puts together what the threads brought home.
    pub(crate) fn merge(
        labels: &Labels<'_>,
        timeline: Timeline,
        started: Option<Started>,
        series: Vec<SeriesRow>,
        reports: Vec<Report>,
    ) -> Self {
        let mut totals = Totals::default();
        let mut measured = Totals::default();
        let is_open_loop = reports.iter().any(|report| report.recorder.is_open_loop());
        let mut aggregates = vec![Aggregates::without_room(is_open_loop); labels.scripts.len()];
        let mut statements = vec![Latencies::new(); labels.statements.len()];
        let mut commands: Vec<_> = labels
            .scripts
            .iter()
            .map(|script| vec![Latencies::without_room(); script.lines.len()])
            .collect();
        let mut recorded = vec![Latencies::without_room(); labels.scripts.len()];
        let mut replay: Option<ReplayCounts> = None;
        let mut errors = Errors::default();
        let mut connecting = Latencies::new();
        let mut lag = Latencies::new();
        let mut cpu = CpuTime::default();
        let mut engine = EngineCost {
            user_cpu_ns: 0,
            system_cpu_ns: 0,
            loop_lag_p99_ns: 0,
            bytes_sent: 0,
            bytes_received: 0,
            threads: reports.len(),
            server_version: None,
        };
        let mut end_ns = 0;
        let mut clients_aborted = 0;
        let mut server_transactions = 0;
        let mut interrupted = started.is_none();
        let first_start_ns = reports.iter().filter_map(|one| one.first_start_ns).min();
        for report in reports {
            let recorder = report.recorder;
            totals.merge(&recorder.totals());
            measured.merge(&recorder.measured_totals());
            for (all, own) in aggregates.iter_mut().zip(&recorder.measured) {
                all.merge(own);
            }
            for (all, own) in statements.iter_mut().zip(&recorder.statements) {
                all.merge(own);
            }
            for (all, own) in commands.iter_mut().zip(&recorder.commands) {
                all.iter_mut()
                    .zip(own)
                    .for_each(|(all, own)| all.merge(own));
            }
            for (all, own) in recorded.iter_mut().zip(&recorder.recorded) {
                all.merge(own);
            }
            if let Some(counts) = &report.replay {
                replay.get_or_insert_default().merge(counts);
            }
            connecting.merge(&recorder.connecting);
            errors.merge(recorder.errors);
            lag.merge(&recorder.loop_lag);
            cpu += report.cpu;
            engine.bytes_sent += report.bytes_sent;
            engine.bytes_received += report.bytes_received;
            engine.server_version = engine.server_version.or(report.server_version);
            end_ns = end_ns.max(report.end_ns);
            interrupted |= report.interrupted;
            clients_aborted += report.clients_aborted;
            server_transactions += report.server_transactions;
        }
        (engine.user_cpu_ns, engine.system_cpu_ns) = (cpu.user_ns, cpu.system_ns);
        engine.loop_lag_p99_ns = lag.summary().map_or(0, |lag| lag.p99_ns);
        let warmup_ns = timeline.warmup_ns.min(end_ns);
        Self {
            started_unix_ns: started.map_or(0, |started| unix_ns(started.wall_clock)),
            first_start_ns,
            connect_ns: started.map_or(0, |started| nanoseconds(started.connect)),
            warmup_ns,
            measured_ns: end_ns - warmup_ns,
            interrupted,
            clients_aborted,
            totals,
            measured,
            server_transactions,
            series,
            scripts: script_results(labels, &aggregates),
            histograms: histograms(
                labels,
                &aggregates,
                &statements,
                &commands,
                &recorded,
                &connecting,
            ),
            errors: errors
                .into_counted()
                .into_iter()
                .map(|error| error_result(labels, error))
                .collect(),
            engine,
            replay,
        }
    }
}

fn script_results(labels: &Labels<'_>, aggregates: &[Aggregates]) -> Vec<ScriptResult> {
    let scripts = labels.scripts.iter().zip(aggregates);
    scripts
        .map(|(script, aggregates)| ScriptResult {
            name: script.name.to_owned(),
            weight: script.weight,
            measured: aggregates.totals,
        })
        .collect()
}

fn histograms(
    labels: &Labels<'_>,
    aggregates: &[Aggregates],
    statements: &[Latencies],
    commands: &[Vec<Latencies>],
    recorded: &[Latencies],
    connecting: &Latencies,
) -> Vec<HistogramResult> {
    let mut results = Vec::new();
    for ((script, aggregates), recorded) in labels.scripts.iter().zip(aggregates).zip(recorded) {
        let name = Some(script.name.to_owned());
        let mut add = |scope, latencies: &Latencies| {
            results.extend(HistogramResult::of(scope, name.clone(), None, latencies));
        };
        add("transaction", &aggregates.latencies);
        if let Some(open_loop) = &aggregates.open_loop {
            add("service", &open_loop.service);
            add("schedule_lag", &open_loop.lag);
        }
        add("recorded", recorded);
    }
    for (statement, latencies) in labels.statements.iter().zip(statements) {
        let script = Some(labels.scripts[statement.script].name.to_owned());
        results.extend(HistogramResult::of(
            "statement",
            script,
            Some(statement),
            latencies,
        ));
    }
    for (script, commands) in labels.scripts.iter().zip(commands) {
        for (&line, latencies) in script.lines.iter().zip(commands) {
            let name = Some(script.name.to_owned());
            let result = HistogramResult::of("command", name, None, latencies);
            let line = Some(line);
            results.extend(result.map(|result| HistogramResult { line, ..result }));
        }
    }
    results.extend(HistogramResult::of("connect", None, None, connecting));
    results
}

impl HistogramResult {
    /// `None` when the set is empty.
    fn of(
        scope: &'static str,
        script: Option<String>,
        statement: Option<&Statement>,
        latencies: &Latencies,
    ) -> Option<Self> {
        let (min_ns, max_ns) = latencies.range_ns()?;
        Some(Self {
            scope,
            script,
            statement: statement.map(|statement| statement.index),
            line: statement.map(|statement| statement.line),
            text: statement.map(|statement| statement.text.clone()),
            count: latencies.count(),
            sum_ns: latencies.sum_ns(),
            min_ns,
            max_ns,
            buckets: latencies.buckets(),
        })
    }
}

fn error_result(labels: &Labels<'_>, error: Counted) -> ErrorResult {
    ErrorResult {
        kind: error.failure.kind,
        sqlstate: error.failure.sqlstate,
        script: error
            .place
            .script
            .map(|script| labels.scripts[script].name.to_owned()),
        statement: error.place.statement,
        line: error.place.line,
        message: error.failure.message,
        count: error.count,
        retried: error.retried,
        first_ns: error.first_ns,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

pub(crate) fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, nanoseconds)
}
