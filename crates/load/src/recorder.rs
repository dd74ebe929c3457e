//! What one thread records: counts, latencies, errors. Nothing here is shared but the series, once a second.
//!
//! A transaction is counted once, in the aggregates of its script for the current second; everything longer is summed up from
//! those when the second is over.

use std::sync::Arc;

use crate::aggregates::{Aggregates, Totals};
use crate::errors::{ErrorKind, Errors, Failure, Place};
use crate::latencies::Latencies;
use crate::series::Series;
use crate::timeline::{Phase, Timeline};

/// More scripts than this get memory when they need it.
const MANY_SCRIPTS: usize = 16;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Its last try failed with this kind of error.
    Failed(ErrorKind),
    Open,
}

/// A transaction that is over, in time since the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) script: usize,
    pub(crate) outcome: Outcome,
    /// Done, and rolled back on purpose.
    pub(crate) rolls_back: bool,
    pub(crate) tries: u32,
    pub(crate) intended_ns: u64,
    pub(crate) began_ns: u64,
    pub(crate) now_ns: u64,
}

impl Ended {
    pub(crate) fn latency_ns(&self) -> u64 {
        self.now_ns.saturating_sub(self.intended_ns)
    }

    pub(crate) fn lag_ns(&self) -> u64 {
        self.began_ns.saturating_sub(self.intended_ns)
    }
}

/// What one thread records.
#[derive(Debug)]
pub(crate) struct Recorder {
    thread: usize,
    timeline: Timeline,
    series: Arc<Series>,
    /// By script, of the current second.
    second: Vec<Aggregates>,
    second_ends_ns: u64,
    phase: Phase,
    latency_limit_ns: u64,
    /// Of the whole run but for the current second.
    past: Totals,
    /// By script, of the measured phase.
    pub(crate) measured: Vec<Aggregates>,
    /// Of the measured phase, without a script: due, and never begun.
    unbegun: Totals,
    /// By statement, of the measured phase.
    pub(crate) statements: Vec<Latencies>,
    /// By script and command, of the measured phase; nothing when commands are not timed.
    pub(crate) commands: Vec<Vec<Latencies>>,
    /// By script, of the measured phase: how long what was done took when it was recorded. Nothing unless it is a replay.
    pub(crate) recorded: Vec<Latencies>,
    /// New connections for transactions, of the measured phase.
    pub(crate) connecting: Latencies,
    pub(crate) errors: Errors,
    /// How long events waited for the thread.
    pub(crate) loop_lag: Latencies,
}

/// What the aggregates are kept for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) scripts: usize,
    pub(crate) statements: usize,
    pub(crate) is_open_loop: bool,
    /// `u64::MAX` for none.
    pub(crate) latency_limit_ns: u64,
}

impl Recorder {
    pub(crate) fn new(
        thread: usize,
        timeline: Timeline,
        series: Arc<Series>,
        scope: Scope,
    ) -> Self {
        let aggregates = if scope.scripts > MANY_SCRIPTS {
            vec![Aggregates::without_room(scope.is_open_loop); scope.scripts]
        } else {
            vec![Aggregates::new(scope.is_open_loop); scope.scripts]
        };
        Self {
            thread,
            timeline,
            series,
            second: aggregates.clone(),
            second_ends_ns: timeline.bounds_ns(0).1,
            phase: timeline.phase(0),
            latency_limit_ns: scope.latency_limit_ns,
            past: Totals::default(),
            measured: aggregates,
            unbegun: Totals::default(),
            statements: vec![Latencies::new(); scope.statements],
            commands: Vec::new(),
            recorded: Vec::new(),
            connecting: Latencies::new(),
            errors: Errors::default(),
            loop_lag: Latencies::new(),
        }
    }

    /// From now on meta commands are timed; `steps` is how many commands each script has.
    pub(crate) fn time_commands(&mut self, steps: impl Iterator<Item = usize>) {
        self.commands = steps
            .map(|steps| vec![Latencies::without_room(); steps])
            .collect();
    }

    /// From now on the recorded durations of what is replayed are kept.
    pub(crate) fn keep_recorded(&mut self) {
        self.recorded = vec![Latencies::without_room(); self.measured.len()];
    }

    /// What was done took that long when it was recorded.
    #[inline]
    pub(crate) fn recorded(&mut self, script: usize, duration_ns: u64) {
        if self.is_measuring() {
            self.recorded[script].record(duration_ns);
        }
    }

    #[inline]
    pub(crate) fn times_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Advances the aggregates to `now_ns`. Call it before recording what happened at that time.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        if now_ns >= self.second_ends_ns {
            self.turn_over(now_ns);
        }
    }

    #[cold]
    #[inline(never)] // what instructions per transaction are counted without
    fn turn_over(&mut self, now_ns: u64) {
        self.timeline = self.series.advance(self.thread, &self.second, now_ns);
        let row = self.timeline.row(now_ns);
        self.close_second();
        self.second_ends_ns = self.timeline.bounds_ns(row).1;
        self.phase = self.timeline.phase(row);
    }

    /// Adds the current second to what is longer, and empties it.
    fn close_second(&mut self) {
        for (second, measured) in self.second.iter_mut().zip(&mut self.measured) {
            self.past.merge(&second.totals);
            if self.phase == Phase::Measure {
                measured.merge(second);
            }
            second.clear();
        }
    }

    /// When [`Recorder::advance`] has something to do next.
    pub(crate) fn second_ends_ns(&self) -> u64 {
        self.second_ends_ns
    }

    /// The rows as they were known when the current one began.
    pub(crate) fn timeline(&self) -> Timeline {
        self.timeline
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.phase == Phase::Measure
    }

    pub(crate) fn is_open_loop(&self) -> bool {
        self.measured
            .iter()
            .any(|aggregates| aggregates.open_loop.is_some())
    }

    /// All transactions that are over.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.past;
        self.second
            .iter()
            .for_each(|second| totals.merge(&second.totals));
        totals
    }

    /// Done, failed, and retried of [`Recorder::totals`]: what is shown after every round.
    #[inline]
    pub(crate) fn so_far(&self) -> [u64; 3] {
        let of = |totals: &Totals| [totals.done, totals.failed, totals.retried];
        let add = |[a, b, c]: [u64; 3], [x, y, z]: [u64; 3]| [a + x, b + y, c + z];
        let seconds = self.second.iter().map(|second| of(&second.totals));
        seconds.fold(of(&self.past), add)
    }

    /// A transaction is over.
    #[inline]
    pub(crate) fn ended(&mut self, ended: &Ended) {
        let aggregates = &mut self.second[ended.script];
        let totals = &mut aggregates.totals;
        totals.scheduled += 1;
        totals.retries += u64::from(ended.tries - 1);
        totals.retried += u64::from(ended.tries > 1);
        match ended.outcome {
            Outcome::Done => {
                let latency_ns = ended.latency_ns();
                totals.done += 1;
                totals.late += u64::from(latency_ns > self.latency_limit_ns);
                totals.rolled_back += u64::from(ended.rolls_back);
                aggregates.latencies.record(latency_ns);
                if let Some(open_loop) = &mut aggregates.open_loop {
                    open_loop.service.record(ended.now_ns - ended.began_ns);
                    open_loop.lag.record(ended.lag_ns());
                }
            }
            Outcome::Failed(kind) => {
                totals.failed += 1;
                let serialization = kind == ErrorKind::SerializationFailure;
                let deadlock = kind == ErrorKind::DeadlockDetected;
                totals.serialization_failures += u64::from(serialization);
                totals.deadlock_failures += u64::from(deadlock);
            }
            Outcome::Open => totals.open += 1,
        }
    }

    /// Transactions of `script` were due so long ago that they are not begun.
    pub(crate) fn skipped(&mut self, script: usize, count: u64) {
        let totals = &mut self.second[script].totals;
        totals.scheduled += count;
        totals.skipped += count;
    }

    /// Transactions were due, and no client was free for them before the run ended.
    pub(crate) fn never_begun(&mut self, count: u64) {
        let unbegun = Totals {
            scheduled: count,
            open: count,
            ..Totals::default()
        };
        self.past.merge(&unbegun);
        if self.is_measuring() {
            self.unbegun.merge(&unbegun);
        }
    }

    /// Transactions that ended in the measured phase, of all scripts.
    pub(crate) fn measured_totals(&self) -> Totals {
        let mut totals = self.unbegun;
        self.measured
            .iter()
            .for_each(|aggregates| totals.merge(&aggregates.totals));
        totals
    }

    /// A statement ended well.
    #[inline]
    pub(crate) fn statement(&mut self, statement: usize, latency_ns: u64) {
        if self.is_measuring() {
            self.statements[statement].record(latency_ns);
        }
    }

    /// A meta command ended well.
    pub(crate) fn command(&mut self, script: usize, step: usize, latency_ns: u64) {
        if self.is_measuring() {
            self.commands[script][step].record(latency_ns);
        }
    }

    /// A transaction has got its connection.
    pub(crate) fn connected(&mut self, took_ns: u64) {
        if self.is_measuring() {
            self.connecting.record(took_ns);
        }
    }

    pub(crate) fn error(&mut self, place: Place, failure: Failure, now_ns: u64) {
        self.errors.add(place, failure, 1, now_ns);
    }

    /// The thread ends.
    pub(crate) fn end(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.series.end(self.thread, &self.second, now_ns);
        self.close_second();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn recorder(warmup_ns: u64, is_open_loop: bool) -> (Recorder, Arc<Series>) {
        let timeline = Timeline { warmup_ns };
        let series = Arc::new(Series::new(timeline, 1, is_open_loop, false));
        let scope = Scope {
            scripts: 1,
            statements: 1,
            is_open_loop,
            latency_limit_ns: 2_000,
        };
        let recorder = Recorder::new(0, timeline, Arc::clone(&series), scope);
        (recorder, series)
    }

    fn ended(outcome: Outcome, tries: u32, now_ns: u64, latency_ns: u64, lag_ns: u64) -> Ended {
        let intended_ns = now_ns - latency_ns;
        Ended {
            script: 0,
            outcome,
            rolls_back: false,
            tries,
            intended_ns,
            began_ns: intended_ns + lag_ns,
            now_ns,
        }
    }

    #[test]
    fn the_warm_up_counts_in_totals_and_series_only() {
        let (mut recorder, series) = recorder(S, false);
        let deadlock = Outcome::Failed(ErrorKind::DeadlockDetected);
        for (now_ns, outcome, tries) in [
            (S / 2, Outcome::Done, 1),
            (S + 1, Outcome::Done, 3),
            (S + 2, deadlock, 2),
            (S + 3, Outcome::Open, 1),
        ] {
            recorder.advance(now_ns);
            recorder.statement(0, 10);
            recorder.ended(&ended(outcome, tries, now_ns, 1_000, 0));
        }
        let so_far = recorder.totals();
        recorder.end(S + 4);
        assert_eq!(recorder.totals(), so_far);
        let expected = Totals {
            scheduled: 4,
            done: 2,
            failed: 1,
            open: 1,
            retries: 3,
            retried: 2,
            deadlock_failures: 1,
            ..Totals::default()
        };
        assert_eq!(so_far, expected);
        let measured = recorder.measured[0].totals;
        assert!(so_far.balance() && measured.balance());
        assert_eq!((measured.scheduled, measured.done), (3, 1));
        let counts = (
            recorder.measured[0].latencies.count(),
            recorder.statements[0].count(),
        );
        assert_eq!(counts, (1, 3));
        let rows: Vec<_> = series
            .rows()
            .iter()
            .map(|row| (row.phase, row.done, row.failed, row.retried))
            .collect();
        assert_eq!(rows, [(Phase::Warmup, 1, 0, 0), (Phase::Measure, 1, 1, 2)]);
    }

    #[test]
    fn an_open_loop_tells_waiting_from_service() {
        let (mut recorder, series) = recorder(0, true);
        recorder.ended(&ended(Outcome::Done, 1, 50_000, 3_000, 2_000));
        recorder.ended(&ended(Outcome::Done, 1, 60_000, 2_000, 0));
        recorder.skipped(0, 1);
        recorder.never_begun(4);
        recorder.end(S / 2);
        let aggregates = &recorder.measured[0];
        let totals = recorder.measured_totals();
        assert!(totals.balance());
        assert_eq!(totals, recorder.totals());
        let counts = (
            totals.scheduled,
            totals.done,
            totals.late,
            totals.skipped,
            totals.open,
        );
        assert_eq!(counts, (7, 2, 1, 1, 4));
        let open_loop = aggregates.open_loop.as_ref().unwrap();
        assert_eq!(aggregates.latencies.range_ns(), Some((2_000, 3_000)));
        assert_eq!(open_loop.service.range_ns(), Some((1_000, 2_000)));
        assert_eq!(open_loop.lag.range_ns(), Some((0, 2_000)));
        let row = &series.rows()[0];
        assert_eq!((row.skipped, row.late), (1, 1));
        assert_eq!(row.schedule_lag_max_ns, Some(2_000));
    }
}
