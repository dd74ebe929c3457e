//! A log that many commit to and one flushes: group commit as PostgreSQL does it.
//!
//! The rules are those of `XLogFlush` in src/backend/access/transam/xlog.c, with `commit_delay` 0: a committer has
//! inserted its record; who finds the write lock free writes everything inserted so far, whole pages of it, and flushes;
//! a writer that finds it taken waits until it is released (`LWLockAcquireOrWait`), then checks whether its record is durable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{RECORD_BYTES, WAL_BLOCK_BYTES};

const PAGE_BYTES: u64 = WAL_BLOCK_BYTES as u64;

/// Positions in a log without end, in bytes from its beginning.
#[derive(Debug, Default)]
pub(crate) struct Log {
    inserted: AtomicU64,
    flushed: AtomicU64,
    flushes: AtomicU64,
    /// Set after an error, so that no writer waits for a flush that never comes.
    broken: AtomicBool,
    lock: Mutex<WriteLock>,
    released: Condvar,
    all_at_work: Mutex<AllAtWork>,
}

#[derive(Debug, Default)]
struct WriteLock {
    held: bool,
    releases: u64,
}

/// The flushes that all committers took part in. The first has the records of few, and when one has left, the next lack his:
/// with few flushes, as of a slow disk, they would make commits look rarer than they are.
#[derive(Debug, Default)]
struct AllAtWork {
    begin: Option<Mark>,
    end: Option<Mark>,
    closed: bool,
}

/// The end of a flush.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    position: u64,
    flushes: u64,
}

/// The commits while all writers were running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Records that end behind this byte...
    pub(crate) after: u64,
    /// ...up to this one.
    pub(crate) up_to: u64,
    pub(crate) flushes: u64,
    pub(crate) elapsed: Duration,
}

impl Span {
    pub(crate) fn holds(&self, record: u64) -> bool {
        self.after < record && record <= self.up_to
    }
}

impl Log {
    /// Appends a record and returns where it ends when it is durable. `write_and_flush` gets the pages to write, from byte
    /// to byte.
    ///
    /// None when another committer's flush has failed.
    pub(crate) fn commit<E>(
        &self,
        write_and_flush: impl Fn(u64, u64) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let mine = self.inserted.fetch_add(RECORD_BYTES, Ordering::AcqRel) + RECORD_BYTES;
        while self.flushed.load(Ordering::Acquire) < mine {
            if self.broken.load(Ordering::Acquire) {
                return Ok(None);
            }
            if !self.acquire_or_wait() {
                continue;
            }
            let result = self.flush_up_to(mine, &write_and_flush);
            if result.is_err() {
                self.broken.store(true, Ordering::Release);
            }
            self.release();
            result?;
        }
        Ok(Some(mine))
    }

    /// Called by a writer before it leaves.
    pub(crate) fn leave(&self) {
        self.all_at_work().closed = true;
    }

    /// From the end of the first flush to the last one that ended before a writer left; `None` where these are the same.
    pub(crate) fn span(&self) -> Option<Span> {
        let all_at_work = self.all_at_work();
        let (begin, end) = (all_at_work.begin?, all_at_work.end?);
        (begin.flushes < end.flushes).then(|| Span {
            after: begin.position,
            up_to: end.position,
            flushes: end.flushes - begin.flushes,
            elapsed: end.at - begin.at,
        })
    }

    /// The number of flushes of the log.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    fn flush_up_to<E>(
        &self,
        mine: u64,
        write_and_flush: impl Fn(u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let flushed = self.flushed.load(Ordering::Acquire);
        if flushed >= mine {
            return Ok(());
        }
        let inserted = self.inserted.load(Ordering::Acquire);
        // A page that was not full is written again.
        let from = flushed / PAGE_BYTES * PAGE_BYTES;
        write_and_flush(from, inserted.next_multiple_of(PAGE_BYTES))?;
        let at = Instant::now();
        let flushes = self.flushes.fetch_add(1, Ordering::AcqRel) + 1;
        let mut all_at_work = self.all_at_work();
        if !all_at_work.closed {
            let mark = Mark {
                at,
                position: inserted,
                flushes,
            };
            all_at_work.begin.get_or_insert(mark);
            all_at_work.end = Some(mark);
        }
        drop(all_at_work);
        self.flushed.store(inserted, Ordering::Release);
        Ok(())
    }

    /// Whether the lock was free and is ours now; if not, it has been released since.
    fn acquire_or_wait(&self) -> bool {
        let mut lock = self.locked();
        if !lock.held {
            lock.held = true;
            return true;
        }
        let before = lock.releases;
        while lock.releases == before {
            lock = self
                .released
                .wait(lock)
                .unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    fn release(&self) {
        let mut lock = self.locked();
        lock.held = false;
        lock.releases += 1;
        drop(lock);
        self.released.notify_all();
    }

    fn all_at_work(&self) -> MutexGuard<'_, AllAtWork> {
        self.all_at_work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, WriteLock> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::thread;

    use super::*;

    /// Commits `each` records from each of `committers`; what was flushed of the log when a commit returned must hold it.
    fn committed(committers: u64, each: u64) -> Log {
        let log = Log::default();
        let durable = AtomicU64::new(0);
        let barrier = Barrier::new(committers as usize);
        thread::scope(|scope| {
            for _ in 0..committers {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..each {
                        let before = log.inserted.load(Ordering::Acquire);
                        let flush = |from: u64, to: u64| {
                            assert!(
                                from.is_multiple_of(PAGE_BYTES) && to.is_multiple_of(PAGE_BYTES)
                            );
                            assert!(from <= durable.load(Ordering::Acquire), "a gap");
                            thread::yield_now();
                            durable.store(to, Ordering::Release);
                            Ok::<(), ()>(())
                        };
                        assert!(log.commit(flush).unwrap().unwrap() > before);
                        assert!(durable.load(Ordering::Acquire) >= before + RECORD_BYTES);
                    }
                });
            }
        });
        log
    }

    #[test]
    fn one_committer_flushes_each_time() {
        assert_eq!(committed(1, 100).flushes(), 100);
    }

    #[test]
    fn each_commit_is_durable_when_it_returns_and_flushes_are_shared() {
        let log = committed(16, 200);
        assert_eq!(log.inserted.load(Ordering::Acquire), 3200 * RECORD_BYTES);
        assert_eq!(log.flushed.load(Ordering::Acquire), 3200 * RECORD_BYTES);
        assert!(log.flushes() <= 3200, "{}", log.flushes());
    }

    #[test]
    fn those_who_wait_for_a_flush_are_served_by_the_next() {
        let log = Arc::new(Log::default());
        let flushing = Arc::new(Barrier::new(2));
        let all_wait = Arc::new(Barrier::new(2));
        let first = {
            let (log, flushing, all_wait) = (log.clone(), flushing.clone(), all_wait.clone());
            thread::spawn(move || {
                log.commit(|_, _| {
                    flushing.wait();
                    all_wait.wait();
                    Ok::<(), ()>(())
                })
            })
        };
        flushing.wait();
        let others: Vec<_> = (0..8)
            .map(|_| {
                let log = log.clone();
                thread::spawn(move || log.commit(|_, _| Ok::<(), ()>(())))
            })
            .collect();
        while log.inserted.load(Ordering::Acquire) < 9 * RECORD_BYTES {
            thread::yield_now();
        }
        all_wait.wait();
        assert_eq!(first.join().unwrap(), Ok(Some(RECORD_BYTES)));
        for other in others {
            assert!(other.join().unwrap().unwrap().unwrap() > RECORD_BYTES);
        }
        assert_eq!(log.flushes(), 2);
        let span = log.span().unwrap();
        assert_eq!(
            (span.after, span.up_to, span.flushes),
            (RECORD_BYTES, 9 * RECORD_BYTES, 1)
        );
        assert!(!span.holds(RECORD_BYTES) && span.holds(2 * RECORD_BYTES));
    }

    #[test]
    fn the_first_flush_and_those_after_somebody_left_are_not_of_all() {
        let log = Log::default();
        let commit = || log.commit(|_, _| Ok::<(), ()>(())).unwrap().unwrap();
        assert_eq!(log.span(), None);
        let first = commit();
        assert_eq!(log.span(), None, "it has no beginning");
        let second = commit();
        log.leave();
        let third = commit();
        let span = log.span().unwrap();
        assert_eq!(span.flushes, 1);
        assert_eq!(
            [first, second, third].map(|record| span.holds(record)),
            [false, true, false]
        );
    }

    #[test]
    fn a_flush_that_fails_keeps_nobody_waiting() {
        let log = Log::default();
        assert_eq!(log.commit(|_, _| Err("EIO")), Err("EIO"));
        assert_eq!(log.commit(|_, _| Ok::<(), ()>(())), Ok(None));
    }
}
