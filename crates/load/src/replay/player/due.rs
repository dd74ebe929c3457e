//! Which statement is due: reads the recording, and hands each statement to its session in time.

use std::io;

use plinth_log::RecordedStatement;

use crate::recording::Replay;
use crate::replay::player::Player;
use crate::replay::statement::{Next, Sent, Waiting, write_statement};

/// How much a closed loop reads ahead.
const READ_AHEAD_BYTES: usize = 64 << 20;
/// A shorter pause between two statements of a session is none: the times of a log have milliseconds.
const RESOLUTION_US: u64 = 1_000;
/// How many statements are handed out before the sockets are looked at.
const HANDED_AT_ONCE: usize = 256;

impl Player<'_> {
    /// Hands out the statements that are due.
    pub(super) fn hand_out(&mut self) -> io::Result<()> {
        for _ in 0..HANDED_AT_ONCE {
            if let Some(held) = self.ahead.take_due(self.last_ns) {
                self.hand_to(held.session, held.first.sent, &held.first.messages);
                for follower in held.followers {
                    self.hand_to(held.session, follower.sent, &follower.messages);
                }
                continue;
            }
            if self.next.is_none() && !self.read_next()? {
                return Ok(());
            }
            let Some(next) = &self.next else {
                return Ok(());
            };
            let is_in_reach = if self.replay.is_open_loop() {
                next.due_ns <= self.last_ns.saturating_add(self.early_ns)
            } else {
                self.reads_ahead()
            };
            if !is_in_reach {
                return Ok(());
            }
            if let Some(next) = self.next.take() {
                let messages = std::mem::take(&mut self.next_messages);
                self.hand_or_hold(&next, &messages);
                self.next_messages = messages;
            }
        }
        Ok(())
    }

    /// Gives a statement to its session, or holds it until it is due. One that follows another without a pause goes where that is.
    pub(super) fn hand_or_hold(&mut self, next: &Next, messages: &[u8]) {
        let own = &mut self.sessions[next.session as usize];
        let waiting = || Waiting {
            sent: next.sent,
            messages: messages.into(),
        };
        if next.follows
            && let Some(number) = own.held.filter(|&number| self.ahead.has(number))
        {
            return self.ahead.follow(number, waiting());
        }
        let is_early = self.replay.is_open_loop() && next.due_ns > self.last_ns;
        if is_early && !next.follows {
            own.held = Some(self.ahead.hold(next.due_ns, next.session, waiting()));
            return;
        }
        self.hand_to(next.session, next.sent, messages);
    }

    /// Whether a closed loop reads on. With a pool, all connections may be in transactions whose next statements are far ahead.
    pub(super) fn reads_ahead(&self) -> bool {
        self.queued_bytes < READ_AHEAD_BYTES || self.busy == 0
    }

    /// Reads the next statement of this thread's sessions. Returns false at the end.
    pub(super) fn read_next(&mut self) -> io::Result<bool> {
        while !self.is_all_read {
            let file = &self.replay.file;
            let threads = self.assignment.config.threads();
            let Some(statement) = self.statements.next(file).map_err(io::Error::other)? else {
                break;
            };
            if statement.session as usize % threads != self.assignment.thread_of_load {
                continue;
            }
            let own = &mut self.sessions[statement.session as usize];
            let end_us = own.recorded_end_us;
            let follows = end_us
                .is_some_and(|end_us| statement.start_us < end_us.saturating_add(RESOLUTION_US));
            let next = next_of(self.replay, &statement, follows);
            if next.due_ns >= self.ends_ns {
                break;
            }
            let took_us = statement.duration_us.unwrap_or(0);
            let ends_us = statement.start_us.saturating_add(took_us);
            own.recorded_end_us = Some(ends_us.max(end_us.unwrap_or(0)));
            let messages = &mut self.next_messages;
            messages.clear();
            write_statement(&statement, messages);
            self.next = Some(next);
            return Ok(true);
        }
        self.is_all_read = true;
        Ok(false)
    }

    /// Gives a statement to its session.
    pub(super) fn hand_to(&mut self, session: u32, sent: Sent, messages: &[u8]) {
        self.handed += 1;
        self.pending += 1;
        let own = &mut self.sessions[session as usize];
        if own.queue.is_empty()
            && let Some(place) = own.connection
            && self.connections[place].is_idle()
        {
            return self.send(place, sent, messages);
        }
        self.queued_bytes += messages.len() + size_of::<Waiting>();
        own.queue.push_back(Waiting {
            sent,
            messages: messages.into(),
        });
        if own.connection.is_none() && !own.waits {
            self.connect_session(session);
        }
    }
}

fn next_of(replay: &Replay, statement: &RecordedStatement<'_>, follows: bool) -> Next {
    let due_ns = replay.due_ns(statement.start_us);
    let class = statement.class as usize;
    let (label, rollbacks) = (
        replay.label_of_class[class],
        replay.rollbacks_of_class[class],
    );
    Next {
        due_ns,
        session: statement.session,
        sent: Sent::of(statement, label, rollbacks, due_ns),
        follows,
    }
}
