//! `\startpipeline ... \endpipeline`: statements that are sent together, and whose results come together.

use std::collections::VecDeque;

use plinth_wire::frontend::SYNC;

/// Queued messages are sent when there are so many of them, as libpq does.
const FLUSH_BYTES: usize = 64 * 1024;

/// What the server still has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// A statement, and when it was queued.
    Statement { id: usize, queued_ns: u64 },
    /// The end of the pipeline, or of a part of it.
    Sync,
}

/// A client's pipeline. What it has needed once, it keeps for the next.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    is_open: bool,
    /// Messages that are not sent yet.
    out: Vec<u8>,
    awaited: VecDeque<Awaited>,
    /// How many of what is awaited is the end of a part.
    syncs: usize,
    /// Statements have ended well since the end of a part.
    has_run: bool,
}

impl Pipeline {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn open(&mut self) {
        self.close();
        self.is_open = true;
    }

    /// It is over, well or not.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
        self.out.clear();
        self.awaited.clear();
        self.syncs = 0;
        self.has_run = false;
    }

    /// Where to put the messages of a statement that is queued.
    pub(crate) fn queue(&mut self, id: usize, now_ns: u64) -> &mut Vec<u8> {
        let queued_ns = now_ns;
        self.awaited.push_back(Awaited::Statement { id, queued_ns });
        &mut self.out
    }

    /// `\syncpipeline`, and a part of `\endpipeline`.
    pub(crate) fn sync(&mut self) {
        self.out.extend_from_slice(&SYNC);
        self.awaited.push_back(Awaited::Sync);
        self.syncs += 1;
    }

    /// The messages to send, if `all` are to be sent or they are many; to be given back with [`Pipeline::sent`].
    pub(crate) fn unsent(&mut self, all: bool) -> Option<Vec<u8>> {
        let is_due = all || self.out.len() >= FLUSH_BYTES;
        is_due.then(|| std::mem::take(&mut self.out))
    }

    pub(crate) fn sent(&mut self, mut messages: Vec<u8>) {
        messages.clear();
        self.out = messages;
    }

    /// The statement that the server is at.
    pub(crate) fn statement(&self) -> Option<usize> {
        match self.awaited.front() {
            Some(Awaited::Statement { id, .. }) => Some(*id),
            _ => None,
        }
    }

    /// A statement has ended well: which, and when it was queued.
    pub(crate) fn ended(&mut self) -> Option<(usize, u64)> {
        match self.awaited.front() {
            Some(&Awaited::Statement { id, queued_ns }) => {
                self.awaited.pop_front();
                self.has_run = true;
                Some((id, queued_ns))
            }
            _ => None,
        }
    }

    /// Whether statements have ended well since this was asked last.
    pub(crate) fn take_has_run(&mut self) -> bool {
        std::mem::take(&mut self.has_run)
    }

    /// `ReadyForQuery`: the server has reached the end of a part, and has left out what followed an error in it.
    /// `false` when no such end was to come.
    #[must_use]
    pub(crate) fn synced(&mut self) -> bool {
        while let Some(awaited) = self.awaited.pop_front() {
            if awaited == Awaited::Sync {
                self.syncs -= 1;
                return true;
            }
        }
        false
    }

    /// Whether the server has answered everything up to the last `Sync`.
    pub(crate) fn is_answered(&self) -> bool {
        self.syncs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_an_error_is_left_out_up_to_the_next_sync() {
        let mut pipeline = Pipeline::default();
        pipeline.open();
        for id in 0..3 {
            pipeline.queue(id, 10 + id as u64).push(b'a');
        }
        pipeline.sync();
        pipeline.queue(3, 20);
        pipeline.sync();
        assert_eq!(pipeline.unsent(false), None);
        assert_eq!(pipeline.ended(), Some((0, 10)));
        assert_eq!(pipeline.statement(), Some(1));
        assert!(pipeline.take_has_run() && !pipeline.take_has_run());
        // Statement 1 fails.
        assert!(pipeline.synced() && !pipeline.is_answered());
        assert_eq!(pipeline.ended(), Some((3, 20)));
        assert_eq!(pipeline.ended(), None);
        assert!(pipeline.synced() && pipeline.is_answered());
        assert!(!pipeline.synced());
    }

    #[test]
    fn messages_are_sent_at_the_end_or_when_they_are_many() {
        let mut pipeline = Pipeline::default();
        pipeline.open();
        pipeline.queue(0, 0).extend_from_slice(b"few");
        assert_eq!(pipeline.unsent(false), None);
        pipeline.queue(1, 0).resize(FLUSH_BYTES, b'x');
        let messages = pipeline.unsent(false).unwrap();
        assert_eq!(messages.len(), FLUSH_BYTES);
        pipeline.sent(messages);
        pipeline.sync();
        assert_eq!(pipeline.unsent(true).as_deref(), Some(&SYNC[..]));
    }
}
