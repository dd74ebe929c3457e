//! Replies that are delayed: the threads that read requests queue them, and one thread sends each when it is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

use crate::disk::{Disk, Pending};

/// The end of a wait is spun, not slept: waking up takes about this long.
const SPIN_NS: u64 = 15_000;

/// The reply to the kernel when a request succeeds.
#[derive(Debug)]
pub(crate) enum Reply {
    Data(ReplyData, Vec<u8>),
    Written(ReplyWrite, u32),
    Done(ReplyEmpty),
}

impl Reply {
    fn send(self, succeeded: bool) {
        match (self, succeeded) {
            (Self::Data(reply, bytes), true) => reply.data(&bytes),
            (Self::Data(reply, _), false) => reply.error(Errno::EIO),
            (Self::Written(reply, length), true) => reply.written(length),
            (Self::Written(reply, _), false) => reply.error(Errno::EIO),
            (Self::Done(reply), true) => reply.ok(),
            (Self::Done(reply), false) => reply.error(Errno::EIO),
        }
    }
}

#[derive(Debug)]
struct Waiting {
    pending: Pending,
    /// The order of arrival, which decides between requests that are due together.
    order: u64,
    reply: Reply,
}

impl Ord for Waiting {
    /// The one that is due first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |waiting: &Self| (waiting.pending.done_ns, waiting.order);
        key(other).cmp(&key(self))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

#[derive(Debug, Default)]
struct Queue {
    waiting: BinaryHeap<Waiting>,
    taken: u64,
    closed: bool,
}

/// The replies of one disk.
#[derive(Debug)]
pub(crate) struct Replies {
    disk: Arc<Disk>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Replies {
    pub(crate) fn start(disk: Arc<Disk>) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let replies = Arc::new(Self {
            disk,
            queue: Mutex::new(Queue::default()),
            changed: Condvar::new(),
        });
        let sender = Arc::clone(&replies);
        let thread = plinth_thread::spawn_exact("disk-replies", move || sender.run())?;
        Ok((replies, thread))
    }

    /// Sends `reply` when it is due.
    pub(crate) fn send(&self, pending: Pending, reply: Reply) {
        if pending.done_ns <= self.disk.now_ns() {
            reply.send(self.disk.finish(&pending));
            return;
        }
        self.disk.counters.requests_delayed.add(1);
        let mut queue = self.queue();
        let order = queue.taken;
        queue.taken += 1;
        let first_ns = queue.waiting.peek().map(|first| first.pending.done_ns);
        let is_first = first_ns.is_none_or(|first_ns| pending.done_ns < first_ns);
        queue.waiting.push(Waiting {
            pending,
            order,
            reply,
        });
        drop(queue);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Completes all waiting requests at once, since the power is off. Returns their number.
    pub(crate) fn complete_all_now(&self) -> usize {
        let waiting = std::mem::take(&mut self.queue().waiting);
        let count = waiting.len();
        for request in waiting {
            request.reply.send(self.disk.finish(&request.pending));
        }
        count
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.changed.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(due) = self.next() {
            while self.disk.now_ns() < due.pending.done_ns {
                std::hint::spin_loop();
            }
            due.reply.send(self.disk.finish(&due.pending));
        }
    }

    /// Waits for the next reply that is due, or nearly so; `None` once the queue is closed.
    fn next(&self) -> Option<Waiting> {
        let mut queue = self.queue();
        loop {
            if queue.closed {
                return None;
            }
            let now_ns = self.disk.now_ns();
            let sleep_ns = match queue.waiting.peek() {
                None => u64::MAX,
                Some(first) => first.pending.done_ns.saturating_sub(now_ns + SPIN_NS),
            };
            queue = match sleep_ns {
                0 => return queue.waiting.pop(),
                u64::MAX => self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                _ => {
                    let sleep = Duration::from_nanos(sleep_ns);
                    let (queue, _) = self
                        .changed
                        .wait_timeout(queue, sleep)
                        .unwrap_or_else(PoisonError::into_inner);
                    queue
                }
            };
        }
    }
}
