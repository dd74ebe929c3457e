//! What is counted and timed of transactions: of one script in one second, or of all in a whole run.

use serde::Serialize;

use crate::latencies::Latencies;

/// Transactions counted. `scheduled = done + failed + skipped + open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Begun, skipped, or due: in an open loop, every arrival up to the end of the run.
    pub scheduled: u64,
    /// Ended well.
    pub done: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Never begun, because they were already later than the latency limit.
    pub skipped: u64,
    /// Neither done nor failed when the run ended: cut off, or due and still waiting for a client.
    pub open: u64,
    /// Tries after the first.
    pub retries: u64,
    /// Transactions with more than one try.
    pub retried: u64,
    /// Done, but not within the latency limit.
    pub late: u64,
    /// Failed with a serialization failure.
    pub serialization_failures: u64,
    /// Failed with a deadlock.
    pub deadlock_failures: u64,
    /// Done, and rolled back as intended.
    pub rolled_back: u64,
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
        self.late += other.late;
        self.serialization_failures += other.serialization_failures;
        self.deadlock_failures += other.deadlock_failures;
        self.rolled_back += other.rolled_back;
    }

    /// Whether the totals add up.
    pub(crate) fn balance(&self) -> bool {
        self.scheduled == self.done + self.failed + self.skipped + self.open
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What became of the transactions of one script.
#[derive(Debug, Clone)]
pub(crate) struct Aggregates {
    pub(crate) totals: Totals,
    /// Of those done: from the intended start to the end.
    pub(crate) latencies: Latencies,
    pub(crate) open_loop: Option<OpenLoopAggregates>,
}

/// What only an open loop distinguishes.
#[derive(Debug, Clone)]
pub(crate) struct OpenLoopAggregates {
    /// Of those done: from the actual start to the end.
    pub(crate) service: Latencies,
    /// Of those done: from the intended start to the actual one.
    pub(crate) lag: Latencies,
}

impl Aggregates {
    pub(crate) fn new(is_open_loop: bool) -> Self {
        Self::of(is_open_loop, Latencies::new)
    }

    /// Of many scripts, some of which stay empty.
    pub(crate) fn without_room(is_open_loop: bool) -> Self {
        Self::of(is_open_loop, Latencies::without_room)
    }

    fn of(is_open_loop: bool, latencies: fn() -> Latencies) -> Self {
        Self {
            totals: Totals::default(),
            latencies: latencies(),
            open_loop: is_open_loop.then(|| OpenLoopAggregates {
                service: latencies(),
                lag: latencies(),
            }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.totals.merge(&other.totals);
        self.latencies.merge(&other.latencies);
        if let (Some(own), Some(other)) = (&mut self.open_loop, &other.open_loop) {
            own.service.merge(&other.service);
            own.lag.merge(&other.lag);
        }
    }

    /// Clears the aggregates, keeping their memory.
    pub(crate) fn clear(&mut self) {
        self.totals = Totals::default();
        self.latencies.clear();
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.service.clear();
            open_loop.lag.clear();
        }
    }
}
