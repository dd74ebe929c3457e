//! The timing of a write cache: a queue of bytes that the medium writes when it is otherwise idle.

use std::collections::VecDeque;

/// The content of the cache, measured in the time that the medium needs to write it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteCache {
    /// For each write: the total work that is done when it has left the cache, and its bytes.
    queue: VecDeque<(u64, u64)>,
    dirty_bytes: u64,
    /// The total work ever added, and how much of it is done.
    total_ns: u64,
    done_ns: u64,
    seen_ns: u64,
}

impl WriteCache {
    /// Advances to `now_ns`: the medium has worked on the cache, except while it was `busy` with something else.
    pub(crate) fn advance(&mut self, now_ns: u64, busy_until_ns: u64) {
        let from_ns = self.seen_ns.max(busy_until_ns);
        if now_ns > from_ns {
            self.done_ns = self.total_ns.min(self.done_ns + (now_ns - from_ns));
        }
        self.seen_ns = self.seen_ns.max(now_ns);
        while let Some(&(done_ns, bytes)) = self.queue.front() {
            if done_ns > self.done_ns {
                break;
            }
            self.dirty_bytes -= bytes;
            self.queue.pop_front();
        }
    }

    /// The medium's time until the cache, of `capacity` bytes, has space for `bytes` more; 0 if it has.
    pub(crate) fn until_room_ns(&self, bytes: u64, capacity: u64) -> u64 {
        let mut excess = (self.dirty_bytes + bytes.min(capacity)).saturating_sub(capacity);
        for &(done_ns, leaving) in &self.queue {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(leaving);
            if excess == 0 {
                return done_ns - self.done_ns;
            }
        }
        0
    }

    /// The medium's time until the cache is empty.
    pub(crate) fn until_empty_ns(&self) -> u64 {
        self.total_ns - self.done_ns
    }

    /// The number of writes that are not on the medium yet.
    pub(crate) fn writes(&self) -> usize {
        self.queue.len()
    }

    /// Adds a write that takes the medium `work_ns`.
    pub(crate) fn put(&mut self, bytes: u64, work_ns: u64) {
        self.total_ns += work_ns;
        self.dirty_bytes += bytes;
        self.queue.push_back((self.total_ns, bytes));
    }

    /// A flush has emptied it.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.dirty_bytes = 0;
        self.done_ns = self.total_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_leaves_in_order_while_the_medium_is_free() {
        let mut cache = WriteCache::default();
        cache.advance(1000, 0);
        for _ in 0..4 {
            cache.put(100, 10);
        }
        assert_eq!((cache.dirty_bytes, cache.until_empty_ns()), (400, 40));
        assert_eq!(cache.until_room_ns(100, 400), 10);
        assert_eq!(cache.until_room_ns(150, 400), 20);
        assert_eq!(cache.until_room_ns(1_000_000, 400), 40); // it passes through an empty cache
        cache.advance(1025, 1010);
        assert_eq!((cache.dirty_bytes, cache.until_empty_ns()), (300, 25));
        assert_eq!(cache.until_room_ns(100, 400), 0);
        cache.advance(2000, 0);
        assert_eq!(
            (cache.dirty_bytes, cache.until_empty_ns(), cache.writes()),
            (0, 0, 0)
        );
    }
}
