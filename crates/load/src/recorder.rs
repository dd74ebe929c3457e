//! What one thread records: counts, latencies, errors. Nothing here is shared but the series, once a second.

use std::sync::Arc;

use serde::Serialize;

use crate::errors::{Errors, Failure, Place};
use crate::latencies::Latencies;
use crate::series::{Second, Series};
use crate::timeline::{Phase, Timeline};

/// Transactions counted. `scheduled = done + failed + skipped + open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Begun, or skipped.
    pub scheduled: u64,
    /// Ended well.
    pub done: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Never begun, because it was too late for them; none in a closed loop.
    pub skipped: u64,
    /// Begun, and neither done nor failed when the run was cut off.
    pub open: u64,
    /// Tries after the first.
    pub retries: u64,
    /// Transactions with more than one try.
    pub retried: u64,
}

impl Totals {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.done += other.done;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.open += other.open;
        self.retries += other.retries;
        self.retried += other.retried;
    }

    /// Whether the books balance.
    pub(crate) fn balance(&self) -> bool {
        self.scheduled == self.done + self.failed + self.skipped + self.open
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    Open,
}

/// The books of one thread.
#[derive(Debug)]
pub(crate) struct Recorder {
    thread: usize,
    timeline: Timeline,
    series: Arc<Series>,
    second: Second,
    second_ends_ns: u64,
    phase: Phase,
    pub(crate) totals: Totals,
    pub(crate) measured: Totals,
    /// By script and by statement, of the measured phase.
    pub(crate) transactions: Vec<Latencies>,
    pub(crate) statements: Vec<Latencies>,
    pub(crate) errors: Errors,
    /// How long events waited for the thread.
    pub(crate) lag: Latencies,
}

impl Recorder {
    pub(crate) fn new(
        thread: usize,
        timeline: Timeline,
        series: Arc<Series>,
        scripts: usize,
        statements: usize,
    ) -> Self {
        Self {
            thread,
            timeline,
            series,
            second: Second::new(),
            second_ends_ns: timeline.bounds_ns(0).1,
            phase: timeline.phase(0),
            totals: Totals::default(),
            measured: Totals::default(),
            transactions: vec![Latencies::new(); scripts],
            statements: vec![Latencies::new(); statements],
            errors: Errors::default(),
            lag: Latencies::new(),
        }
    }

    /// Brings the books to `now_ns`. Call it before recording what happened at that time.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        if now_ns >= self.second_ends_ns {
            self.turn_over(now_ns);
        }
    }

    #[cold]
    fn turn_over(&mut self, now_ns: u64) {
        let row = self.timeline.row(now_ns);
        self.series.advance(self.thread, &mut self.second, row);
        self.second_ends_ns = self.timeline.bounds_ns(row).1;
        self.phase = self.timeline.phase(row);
    }

    /// When [`Recorder::advance`] has something to do next.
    pub(crate) fn second_ends_ns(&self) -> u64 {
        self.second_ends_ns
    }

    pub(crate) fn is_measuring(&self) -> bool {
        self.phase == Phase::Measure
    }

    pub(crate) fn begun(&mut self) {
        self.totals.scheduled += 1;
    }

    /// A transaction of `script` ended after `latency_ns` and `tries`.
    #[inline]
    pub(crate) fn ended(&mut self, script: usize, outcome: Outcome, latency_ns: u64, tries: u32) {
        let retries = u64::from(tries - 1);
        let ended = Totals {
            scheduled: 0,
            done: u64::from(outcome == Outcome::Done),
            failed: u64::from(outcome == Outcome::Failed),
            skipped: 0,
            open: u64::from(outcome == Outcome::Open),
            retries,
            retried: u64::from(retries > 0),
        };
        self.totals.merge(&ended);
        self.second.done += ended.done;
        self.second.failed += ended.failed;
        self.second.retried += ended.retried;
        if outcome == Outcome::Done {
            self.second.latencies.record(latency_ns);
        }
        if self.is_measuring() {
            self.measured.merge(&Totals {
                scheduled: 1,
                ..ended
            });
            if outcome == Outcome::Done {
                self.transactions[script].record(latency_ns);
            }
        }
    }

    /// A statement ended well.
    #[inline]
    pub(crate) fn statement(&mut self, statement: usize, latency_ns: u64) {
        if self.is_measuring() {
            self.statements[statement].record(latency_ns);
        }
    }

    pub(crate) fn error(&mut self, place: Place, failure: Failure, now_ns: u64) {
        self.errors.add(place, failure, 1, now_ns);
    }

    /// The thread ends.
    pub(crate) fn end(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.series.end(self.thread, &mut self.second, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn recorder(warmup_ns: u64) -> (Recorder, Arc<Series>) {
        let timeline = Timeline { warmup_ns };
        let series = Arc::new(Series::new(timeline, 1));
        (
            Recorder::new(0, timeline, Arc::clone(&series), 1, 1),
            series,
        )
    }

    #[test]
    fn the_warm_up_counts_in_totals_and_series_only() {
        let (mut recorder, series) = recorder(S);
        for (now_ns, outcome, tries) in [
            (S / 2, Outcome::Done, 1),
            (S + 1, Outcome::Done, 3),
            (S + 2, Outcome::Failed, 2),
            (S + 3, Outcome::Open, 1),
        ] {
            recorder.begun();
            recorder.advance(now_ns);
            recorder.statement(0, 10);
            recorder.ended(0, outcome, 1_000, tries);
        }
        recorder.end(S + 4);
        assert!(recorder.totals.balance() && recorder.measured.balance());
        let expected = Totals {
            scheduled: 4,
            done: 2,
            failed: 1,
            skipped: 0,
            open: 1,
            retries: 3,
            retried: 2,
        };
        assert_eq!(recorder.totals, expected);
        assert_eq!(
            recorder.measured,
            Totals {
                scheduled: 3,
                done: 1,
                ..expected
            }
        );
        assert_eq!(
            (
                recorder.transactions[0].count(),
                recorder.statements[0].count()
            ),
            (1, 3)
        );
        let rows: Vec<_> = series
            .rows()
            .iter()
            .map(|row| (row.phase, row.done, row.failed, row.retried))
            .collect();
        assert_eq!(rows, [(Phase::Warmup, 1, 0, 0), (Phase::Measure, 1, 1, 2)]);
    }
}
