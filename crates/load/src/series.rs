//! The per-second series, gathered from all threads once a second.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::aggregates::Aggregates;
use crate::part::append_second;
use crate::timeline::{Phase, Timeline};

/// One row of the series. Latencies are absent when nothing was done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesRow {
    /// Number of the row.
    pub second: usize,
    /// Which part of the run it belongs to.
    pub phase: Phase,
    /// Its start since the start of the run.
    pub t_ns: u64,
    /// Its length: a second, or less at the end of a phase.
    pub length_ns: u64,
    /// Transactions that ended well.
    pub done: u64,
    /// Transactions that did not.
    pub failed: u64,
    /// Transactions, done or failed, that took more than one try.
    pub retried: u64,
    /// Tries after the first.
    pub retries: u64,
    /// Transactions that were too late to be begun.
    pub skipped: u64,
    /// Transactions done, but not within the latency limit.
    pub late: u64,
    /// Mean latency of those done.
    pub latency_mean_ns: Option<f64>,
    /// Standard deviation.
    pub latency_stddev_ns: Option<f64>,
    /// Median.
    pub latency_p50_ns: Option<u64>,
    /// 95th percentile.
    pub latency_p95_ns: Option<u64>,
    /// 99th percentile.
    pub latency_p99_ns: Option<u64>,
    /// Longest.
    pub latency_max_ns: Option<u64>,
    /// How late those done began, on average; only in an open loop, as the next two.
    pub schedule_lag_mean_ns: Option<f64>,
    /// 99th percentile.
    pub schedule_lag_p99_ns: Option<u64>,
    /// Latest.
    pub schedule_lag_max_ns: Option<u64>,
}

/// The series of a run: rows that all threads have left behind are finished and never change.
#[derive(Debug)]
pub(crate) struct Series {
    is_open_loop: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Its warm-up may still end earlier, as long as no thread has left it.
    timeline: Timeline,
    finished: Vec<SeriesRow>,
    /// Rows after the finished ones that some threads have left behind.
    pending: VecDeque<Aggregates>,
    /// By thread: the row it is in, and when it ended if it has.
    threads: Vec<(usize, Option<u64>)>,
    /// Finished rows that [`Series::take_new`] has given out.
    given: usize,
    /// The histograms of finished rows that were not asked for yet, of a part of a load.
    histograms: Option<Vec<u8>>,
}

impl Series {
    /// `keeps_histograms`: of each row, for [`Series::take_histograms`].
    pub(crate) fn new(
        timeline: Timeline,
        threads: usize,
        is_open_loop: bool,
        keeps_histograms: bool,
    ) -> Self {
        let state = State {
            timeline,
            finished: Vec::new(),
            pending: VecDeque::new(),
            threads: vec![(0, None); threads],
            given: 0,
            histograms: keeps_histograms.then(Vec::new),
        };
        Self {
            is_open_loop,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counts are merged in steps that cannot panic: what a dead thread left is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows as they are known now.
    pub(crate) fn timeline(&self) -> Timeline {
        self.lock().timeline
    }

    /// Ends the warm-up, unless that is over, with the row that holds `now_ns` or the last that a thread has reached, though not
    /// before `least_ns`. So it ends after everything that has been recorded, and threads learn of it when they leave their row.
    /// Returns the end.
    pub(crate) fn begin_measuring(&self, now_ns: u64, least_ns: u64) -> u64 {
        let mut state = self.lock();
        let reached = state.threads.iter().map(|(row, _)| *row).max();
        let row = reached.unwrap_or(0).max(state.timeline.row(now_ns));
        state.timeline = state.timeline.ending_with(row, least_ns);
        state.timeline.warmup_ns
    }

    /// A thread leaves the row it was in, with what happened there by script, for the one that holds `now_ns`. Returns the rows
    /// as they are known now: those up to that one do not change any more.
    pub(crate) fn advance(&self, thread: usize, second: &[Aggregates], now_ns: u64) -> Timeline {
        let mut state = self.lock();
        state.add(thread, second, self.is_open_loop);
        state.threads[thread].0 = state.timeline.row(now_ns);
        state.finish();
        state.timeline
    }

    /// A thread ends at `end_ns`, with what happened in the row it was in.
    pub(crate) fn end(&self, thread: usize, second: &[Aggregates], end_ns: u64) {
        let mut state = self.lock();
        state.add(thread, second, self.is_open_loop);
        state.threads[thread].1 = Some(end_ns);
        state.finish();
    }

    /// Rows finished since the last call.
    pub(crate) fn take_new(&self) -> Vec<SeriesRow> {
        let mut state = self.lock();
        let rows = state.finished[state.given..].to_vec();
        state.given = state.finished.len();
        rows
    }

    /// The histograms of rows finished since the last call ([`crate::part::append_second`]); none unless they are kept.
    pub(crate) fn take_histograms(&self) -> Vec<u8> {
        self.lock()
            .histograms
            .as_mut()
            .map_or_else(Vec::new, std::mem::take)
    }

    /// All finished rows.
    pub(crate) fn rows(&self) -> Vec<SeriesRow> {
        self.lock().finished.clone()
    }
}

impl State {
    fn add(&mut self, thread: usize, second: &[Aggregates], is_open_loop: bool) {
        if second.iter().all(Aggregates::is_empty) {
            return;
        }
        let index = self.threads[thread].0 - self.finished.len();
        while self.pending.len() <= index {
            self.pending.push_back(Aggregates::new(is_open_loop));
        }
        second
            .iter()
            .for_each(|aggregates| self.pending[index].merge(aggregates));
    }

    /// Turns into rows what no thread can change any more; once all threads have ended, everything.
    fn finish(&mut self) {
        let timeline = self.timeline;
        let running = self.threads.iter().filter(|(_, ended)| ended.is_none());
        let reached = running.map(|(row, _)| *row).min();
        let end_ns = self.threads.iter().filter_map(|(_, ended)| *ended).max();
        loop {
            let row = self.finished.len();
            let (start_ns, full_ns) = timeline.bounds_ns(row);
            let row_end_ns = match (reached, end_ns) {
                (Some(reached), _) if row < reached => full_ns,
                (None, Some(end_ns)) if start_ns < end_ns || !self.pending.is_empty() => {
                    full_ns.min(end_ns)
                }
                _ => break,
            };
            let phase = timeline.phase(row);
            let length_ns = row_end_ns.saturating_sub(start_ns);
            let second = self.pending.pop_front();
            let second = second.unwrap_or_else(|| Aggregates::new(false));
            if let Some(bytes) = &mut self.histograms {
                let lags = second.open_loop.as_ref().map(|open_loop| &open_loop.lag);
                append_second(bytes, row, &second.latencies, lags);
            }
            self.finished
                .push(finished_row(row, phase, start_ns, length_ns, &second));
        }
    }
}

fn finished_row(
    row: usize,
    phase: Phase,
    t_ns: u64,
    length_ns: u64,
    second: &Aggregates,
) -> SeriesRow {
    let totals = second.totals;
    let latency = second.latencies.summary();
    let lag = second
        .open_loop
        .as_ref()
        .and_then(|aggregates| aggregates.lag.summary());
    SeriesRow {
        second: row,
        phase,
        t_ns,
        length_ns,
        done: totals.done,
        failed: totals.failed,
        retried: totals.retried,
        retries: totals.retries,
        skipped: totals.skipped,
        late: totals.late,
        latency_mean_ns: latency.map(|latency| latency.mean_ns),
        latency_stddev_ns: latency.map(|latency| latency.stddev_ns),
        latency_p50_ns: latency.map(|latency| latency.p50_ns),
        latency_p95_ns: latency.map(|latency| latency.p95_ns),
        latency_p99_ns: latency.map(|latency| latency.p99_ns),
        latency_max_ns: latency.map(|latency| latency.max_ns),
        schedule_lag_mean_ns: lag.map(|lag| lag.mean_ns),
        schedule_lag_p99_ns: lag.map(|lag| lag.p99_ns),
        schedule_lag_max_ns: lag.map(|lag| lag.max_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn second(done: u64) -> [Aggregates; 1] {
        let mut second = Aggregates::new(false);
        second.totals.done = done;
        (0..done).for_each(|_| second.latencies.record(100_000));
        [second]
    }

    #[test]
    fn a_row_is_finished_when_all_threads_have_left_it() {
        let series = Series::new(Timeline { warmup_ns: S }, 2, false, false);
        series.advance(0, &second(3), S);
        assert!(series.take_new().is_empty());
        series.advance(0, &second(5), 2 * S);
        series.advance(1, &second(4), S);
        let rows = series.take_new();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].done, rows[0].phase, rows[0].length_ns),
            (7, Phase::Warmup, S)
        );
        assert!(series.take_new().is_empty());
    }

    #[test]
    fn the_warm_up_ends_with_the_last_row_that_a_thread_has_reached() {
        let series = Series::new(Timeline { warmup_ns: 60 * S }, 2, false, false);
        series.advance(0, &second(3), S);
        series.advance(0, &second(5), 2 * S + 1);
        // The other thread is two rows behind, and the caller's clock one.
        assert_eq!(series.begin_measuring(2 * S - 1, 0), 3 * S);
        assert_eq!(series.begin_measuring(40 * S, 0), 3 * S, "it has an end");
        series.advance(1, &second(4), 3 * S - 1);
        series.advance(1, &second(7), 3 * S);
        series.advance(0, &second(6), 4 * S);
        series.end(0, &second(0), 4 * S);
        series.end(1, &second(2), 4 * S);
        let rows = series.rows();
        let figures: Vec<_> = rows
            .iter()
            .map(|row| (row.phase, row.done, row.t_ns))
            .collect();
        assert_eq!(
            figures,
            [
                (Phase::Warmup, 7, 0),
                (Phase::Warmup, 5, S),
                (Phase::Warmup, 13, 2 * S),
                (Phase::Measure, 2, 3 * S),
            ]
        );
    }

    #[test]
    fn the_end_cuts_the_last_row_and_fills_what_a_thread_slept_through() {
        let series = Series::new(Timeline { warmup_ns: 0 }, 2, false, false);
        series.end(1, &second(1), S / 2);
        series.advance(0, &second(2), 3 * S);
        series.end(0, &second(4), 3 * S + S / 4);
        let rows = series.rows();
        let figures: Vec<_> = rows.iter().map(|row| (row.done, row.length_ns)).collect();
        assert_eq!(figures, [(3, S), (0, S), (0, S), (4, S / 4)]);
        assert_eq!(rows[1].latency_p50_ns, None);
        assert_eq!(rows[3].latency_max_ns, Some(100_000));
    }

    #[test]
    fn an_end_on_the_edge_makes_no_empty_row() {
        let series = Series::new(Timeline { warmup_ns: 0 }, 1, false, false);
        series.advance(0, &second(2), S);
        series.end(0, &second(0), S);
        assert_eq!(series.rows().len(), 1);
    }
}
