//! One line for each transaction, or for each interval, in the files and the format of pgbench's `--log`
//! (`doLog` in `src/bin/pgbench/pgbench.c`), for what reads those. Measured phase only.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use plinth_config::ConfigError;
use plinth_script::{Prng, lossless};
use serde::Deserialize;

use crate::errors::ErrorKind;
use crate::recorder::{Ended, Outcome};

/// What is logged, and where.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// The files are `prefix.PID` for the first thread and `prefix.PID.THREAD` for the others; what they held is lost.
    pub prefix: String,
    /// One line for all transactions of an interval instead of one for each.
    #[serde(default)]
    pub aggregate_interval_s: Option<u64>,
    /// Share of the transactions that are logged, drawn as pgbench draws them.
    #[serde(default)]
    pub sampling_rate: Option<f64>,
    /// Tell apart how transactions failed.
    #[serde(default)]
    pub failures_detailed: bool,
}

impl LogConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |message: &str| Err(ConfigError::new("log", message));
        match (self.aggregate_interval_s, self.sampling_rate) {
            (Some(_), Some(_)) => {
                wrong("aggregate_interval_s and sampling_rate exclude one another")
            }
            (Some(0), _) => wrong("got an aggregate_interval_s of 0, at least 1 is needed"),
            (_, Some(rate)) if !(rate > 0.0 && rate <= 1.0) => wrong(&format!(
                "got a sampling_rate of {rate}, allowed is above 0 up to 1"
            )),
            _ => Ok(()),
        }
    }

    /// The file of a thread.
    pub(crate) fn path(&self, thread: usize) -> PathBuf {
        let prefix = lossless::to_bytes(&self.prefix).into_owned();
        let mut path = OsString::from_vec(prefix);
        path.push(format!(".{}", std::process::id()));
        if thread > 0 {
            path.push(format!(".{thread}"));
        }
        path.into()
    }
}

/// What the columns of a line depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) is_open_loop: bool,
    pub(crate) has_latency_limit: bool,
    pub(crate) has_retries: bool,
}

/// The log of one thread.
#[derive(Debug)]
pub(crate) struct Log {
    out: BufWriter<File>,
    columns: Columns,
    failures_detailed: bool,
    /// Wall-clock time at which the load began, since the epoch.
    started_unix_ns: u64,
    sampling: Option<(f64, Prng)>,
    interval: Option<Interval>,
    /// The first thing that went wrong with the file; nothing is written after it.
    error: Option<io::Error>,
}

/// The interval that is being added up.
#[derive(Debug)]
struct Interval {
    length_us: u64,
    begins_us: u64,
    sums: Sums,
}

#[derive(Debug, Default)]
struct Sums {
    done: u64,
    latency: Moments,
    lag: Moments,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization_failures: u64,
    deadlock_failures: u64,
}

/// pgbench's `SimpleStats`, in microseconds.
#[derive(Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        if self.count == 0 || value < self.min {
            self.min = value;
        }
        if self.count == 0 || value > self.max {
            self.max = value;
        }
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }
}

impl std::fmt::Display for Moments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            sum,
            squares,
            min,
            max,
            ..
        } = self;
        write!(f, " {sum:.0} {squares:.0} {min:.0} {max:.0}")
    }
}

/// What a line is about.
#[derive(Debug, Clone, Copy)]
enum Entry<'a> {
    Ended(&'a Ended),
    Skipped { script: usize },
}

impl Log {
    /// `measuring_begins_ns` after the start of the run, the intervals begin.
    pub(crate) fn new(
        config: &LogConfig,
        columns: Columns,
        file: File,
        started_unix_ns: u64,
        measuring_begins_ns: u64,
        sample: Prng,
    ) -> Self {
        Self {
            out: BufWriter::with_capacity(64 * 1024, file),
            columns,
            failures_detailed: config.failures_detailed,
            started_unix_ns,
            sampling: config.sampling_rate.map(|rate| (rate, sample)),
            interval: config.aggregate_interval_s.map(|seconds| Interval {
                length_us: seconds * 1_000_000,
                // At a whole second, since lines have no fraction of it. So the first interval may be short.
                begins_us: (started_unix_ns + measuring_begins_ns) / 1_000_000_000 * 1_000_000,
                sums: Sums::default(),
            }),
            error: None,
        }
    }

    /// A transaction is over: the `number`th of its client.
    pub(crate) fn ended(&mut self, client: usize, number: u64, ended: &Ended) {
        self.entry(client, number, Entry::Ended(ended), ended.now_ns);
    }

    /// `count` transactions were skipped, after `before` others of their client.
    pub(crate) fn skipped(
        &mut self,
        client: usize,
        before: u64,
        count: u64,
        script: usize,
        now_ns: u64,
    ) {
        if self.has_each_skipped() {
            for number in before + 1..=before + count {
                self.entry(client, number, Entry::Skipped { script }, now_ns);
            }
        } else if count > 0 {
            self.entry(client, before + 1, Entry::Skipped { script }, now_ns);
            if let Some(interval) = &mut self.interval {
                interval.sums.skipped += count - 1;
            }
        }
    }

    /// Whether each transaction that is skipped takes time of its own: its line, or the draw whether it has one.
    pub(crate) fn has_each_skipped(&self) -> bool {
        self.interval.is_none() || self.sampling.is_some()
    }

    /// What went wrong with the file, once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Ends the intervals that are over, as pgbench does, and writes what is left.
    pub(crate) fn finish(&mut self, now_ns: u64) -> io::Result<()> {
        self.end_intervals(self.unix_us(now_ns))?;
        self.out.flush()
    }

    fn entry(&mut self, client: usize, number: u64, entry: Entry<'_>, now_ns: u64) {
        if self.error.is_some() {
            return;
        }
        if let Some((rate, random)) = &mut self.sampling
            && random.next_double() > *rate
        {
            return;
        }
        self.error = match self.interval {
            Some(_) => self.aggregate(entry, now_ns),
            None => self.write_entry(client, number, entry, now_ns),
        }
        .err();
    }

    fn write_entry(
        &mut self,
        client: usize,
        number: u64,
        entry: Entry<'_>,
        now_ns: u64,
    ) -> io::Result<()> {
        let now_us = self.unix_us(now_ns);
        write!(self.out, "{client} {number} ")?;
        match entry {
            Entry::Ended(ended) if ended.outcome == Outcome::Done => {
                write!(self.out, "{}", self.latency_us(ended))
            }
            other => self.out.write_all(self.word(other).as_bytes()),
        }?;
        let (script, lag_us, retries) = match entry {
            Entry::Ended(ended) if ended.outcome == Outcome::Done => {
                (ended.script, self.lag_us(ended), ended.tries - 1)
            }
            // pgbench computes no lag for what failed.
            Entry::Ended(ended) => (ended.script, 0, ended.tries - 1),
            Entry::Skipped { script } => (script, 0, 0),
        };
        let (seconds, microseconds) = (now_us / 1_000_000, now_us % 1_000_000);
        write!(self.out, " {script} {seconds} {microseconds}")?;
        if self.columns.is_open_loop {
            write!(self.out, " {lag_us}")?;
        }
        if self.columns.has_retries {
            write!(self.out, " {retries}")?;
        }
        self.out.write_all(b"\n")
    }

    /// The text in place of the latency of a transaction that has none.
    fn word(&self, entry: Entry<'_>) -> &'static str {
        let Entry::Ended(ended) = entry else {
            return "skipped";
        };
        match ended.outcome {
            Outcome::Failed(ErrorKind::SerializationFailure) if self.failures_detailed => {
                "serialization"
            }
            Outcome::Failed(ErrorKind::DeadlockDetected) if self.failures_detailed => "deadlock",
            Outcome::Failed(_) if self.failures_detailed => "other",
            _ => "failed",
        }
    }

    fn aggregate(&mut self, entry: Entry<'_>, now_ns: u64) -> io::Result<()> {
        self.end_intervals(self.unix_us(now_ns))?;
        let (latency_us, lag_us) = match entry {
            Entry::Ended(ended) => (self.latency_us(ended), self.lag_us(ended)),
            Entry::Skipped { .. } => (0, 0),
        };
        let Some(Interval { sums, .. }) = &mut self.interval else {
            return Ok(());
        };
        let Entry::Ended(ended) = entry else {
            sums.skipped += 1;
            return Ok(());
        };
        sums.retried += u64::from(ended.tries > 1);
        sums.retries += u64::from(ended.tries - 1);
        match ended.outcome {
            Outcome::Done => {
                sums.done += 1;
                sums.latency.add(latency_us as f64);
                sums.lag.add(lag_us as f64);
            }
            Outcome::Failed(ErrorKind::SerializationFailure) => sums.serialization_failures += 1,
            Outcome::Failed(ErrorKind::DeadlockDetected) => sums.deadlock_failures += 1,
            Outcome::Failed(_) | Outcome::Open => {}
        }
        Ok(())
    }

    /// Writes the intervals that are over at `now_us`, the empty ones among them.
    fn end_intervals(&mut self, now_us: u64) -> io::Result<()> {
        let Some(interval) = &mut self.interval else {
            return Ok(());
        };
        while interval.begins_us + interval.length_us <= now_us {
            let mut sums = std::mem::take(&mut interval.sums);
            if !self.columns.is_open_loop {
                sums.lag = Moments::default();
            }
            if !self.columns.has_latency_limit {
                sums.skipped = 0;
            }
            if !self.failures_detailed {
                (sums.serialization_failures, sums.deadlock_failures) = (0, 0);
            }
            let (begins_s, done) = (interval.begins_us / 1_000_000, sums.done);
            let Sums {
                latency,
                lag,
                skipped,
                retried,
                retries,
                ..
            } = &sums;
            let (serialization, deadlock) = (sums.serialization_failures, sums.deadlock_failures);
            writeln!(
                self.out,
                "{begins_s} {done}{latency}{lag} {skipped} {retried} {retries} {serialization} {deadlock}"
            )?;
            interval.begins_us += interval.length_us;
        }
        Ok(())
    }

    fn unix_us(&self, at_ns: u64) -> u64 {
        (self.started_unix_ns + at_ns) / 1_000
    }

    fn latency_us(&self, ended: &Ended) -> u64 {
        self.unix_us(ended.now_ns) - self.unix_us(ended.intended_ns)
    }

    fn lag_us(&self, ended: &Ended) -> u64 {
        self.unix_us(ended.began_ns) - self.unix_us(ended.intended_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_whole_seconds_of_the_clock() {
        let path = std::env::temp_dir().join(format!("plinth-log-{}", std::process::id()));
        let config = LogConfig {
            prefix: path.to_string_lossy().into_owned(),
            aggregate_interval_s: Some(1),
            sampling_rate: None,
            failures_detailed: false,
        };
        let columns = Columns {
            is_open_loop: false,
            has_latency_limit: false,
            has_retries: false,
        };
        let file = File::create(&path).unwrap();
        let began_unix_ns = 10_600_000_000;
        let mut log = Log::new(&config, columns, file, began_unix_ns, 0, Prng::seeded(0));
        for now_ns in [300_000_000, 500_000_000, 1_000_000_000] {
            let ended = Ended {
                script: 0,
                outcome: Outcome::Done,
                rolls_back: false,
                tries: 1,
                intended_ns: now_ns - 1_000,
                began_ns: now_ns,
                now_ns,
            };
            log.ended(0, 1, &ended);
        }
        log.finish(2_400_000_000).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let begins_and_done: Vec<_> = text.lines().map(|line| &line[..4]).collect();
        assert_eq!(begins_and_done, ["10 1", "11 2", "12 0"]);
    }
}
