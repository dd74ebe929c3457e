//! The chunks of all relations, which all threads count together before any page is written.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::pages::relation::Planned;

/// How often a thread that waits for the others looks whether it has to withdraw.
const POLL: Duration = Duration::from_millis(20);

/// The chunks left to count, and the condition that threads wait for when none is left.
#[derive(Debug)]
pub(crate) struct Counting {
    /// How many chunks there are before each relation, and at the end all.
    firsts: Vec<u64>,
    rows_total: u64,
    next: AtomicU64,
    chunks_done: AtomicU64,
    rows_done: AtomicU64,
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Counting {
    pub(crate) fn new(relations: &[Planned]) -> Self {
        let (mut firsts, mut sum, mut rows_total) = (Vec::new(), 0, 0);
        for planned in relations {
            firsts.push(sum);
            sum += planned.chunks();
            if planned.chunks() > 0 {
                rows_total += planned.relation.rows;
            }
        }
        firsts.push(sum);
        Self {
            firsts,
            rows_total,
            next: AtomicU64::new(0),
            chunks_done: AtomicU64::new(0),
            rows_done: AtomicU64::new(0),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        }
    }

    fn chunks(&self) -> u64 {
        self.firsts.last().copied().unwrap_or_default()
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.chunks() > 0
    }

    /// The number of a relation and a chunk of it that no other thread takes; `None` behind the last.
    pub(crate) fn take(&self) -> Option<(usize, u64)> {
        let number = self.next.fetch_add(1, Relaxed);
        if number >= self.chunks() {
            return None;
        }
        let relation = self.firsts.partition_point(|&first| first <= number) - 1;
        Some((relation, number - self.firsts[relation]))
    }

    /// Notes that a chunk of so many rows is counted. Returns whether it was the last one.
    pub(crate) fn counted(&self, rows: u64) -> bool {
        self.rows_done.fetch_add(rows, Relaxed);
        self.chunks_done.fetch_add(1, Relaxed) + 1 == self.chunks()
    }

    /// Rows that are counted, and those to count.
    pub(crate) fn rows(&self) -> (u64, u64) {
        (self.rows_done.load(Relaxed), self.rows_total)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets those continue who wait.
    pub(crate) fn end(&self) {
        *self.lock() = true;
        self.over.notify_all();
    }

    /// Waits for [`Self::end`]. Returns false when `has_to_withdraw` says so first.
    pub(crate) fn wait(&self, has_to_withdraw: impl Fn() -> bool) -> bool {
        let mut is_over = self.lock();
        while !*is_over {
            if has_to_withdraw() {
                return false;
            }
            let waited = self.over.wait_timeout(is_over, POLL);
            is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
