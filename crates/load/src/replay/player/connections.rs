//! The connections of a replay: who has which, and how they are opened, lost, opened again and closed.

use std::cmp::Reverse;

use plinth_connect::Opened;

use crate::errors::{ErrorKind, Failure, Place};
use crate::link::{DialError, Dialing};
use crate::recorder::Outcome;
use crate::replay::connection::Connection;
use crate::replay::player::{Player, Timer};
use crate::replay::statement::Waiting;

/// How many connections a thread opens at once, as many as at the beginning of other loads.
const DIALS_AT_ONCE: usize = 32;
/// How long after a failure a connection of a pool is opened again.
const REDIAL_PAUSE_NS: u64 = 1_000_000_000;

impl Player<'_> {
    /// Gets a connection for a session that has something to send.
    pub(super) fn connect_session(&mut self, session: u32) {
        if self.replay.pooled {
            match self.free.pop() {
                Some(place) => self.bind(place, session),
                None => self.wait_for_turn(session),
            }
        } else if self.replay.is_open_loop() || self.open < self.most_open.max(1) {
            self.open_for(session);
        } else {
            self.wait_for_turn(session);
        }
    }

    pub(super) fn wait_for_turn(&mut self, session: u32) {
        self.sessions[session as usize].waits = true;
        self.waiting.push_back(session);
    }

    /// A connection of a pool serves a session until its transaction is over.
    pub(super) fn bind(&mut self, place: usize, session: u32) {
        let own = &mut self.sessions[session as usize];
        own.waits = false;
        own.connection = Some(place);
        self.connections[place].session = Some(session);
        self.send_next(place);
    }

    /// Opens a connection for a session.
    pub(super) fn open_for(&mut self, session: u32) {
        let place = self.vacant_place();
        self.connections[place].session = Some(session);
        let own = &mut self.sessions[session as usize];
        own.waits = false;
        own.connection = Some(place);
        match self.spare.pop() {
            Some(opened) => {
                if self.give(place, opened) {
                    self.send_next(place);
                }
            }
            None => self.dial(place),
        }
    }

    pub(super) fn vacant_place(&mut self) -> usize {
        self.open += 1;
        self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(Connection::default());
            self.connections.len() - 1
        })
    }

    /// Begins to open a connection, as soon as it has its turn.
    pub(super) fn dial(&mut self, place: usize) {
        self.connections[place].dialing_since_ns = self.last_ns;
        self.to_dial.push_back(place);
    }

    /// Whether a connection waits for its turn, and has it.
    pub(super) fn can_dial(&self) -> bool {
        self.dialing.len() < DIALS_AT_ONCE && !self.to_dial.is_empty()
    }

    /// Begins to open connections. Those that fail at once make room for others: not for all of them before the sockets and
    /// the clock are looked at.
    pub(super) fn dial_more(&mut self) {
        for _ in 0..DIALS_AT_ONCE {
            if !self.can_dial() {
                return;
            }
            let Some(place) = self.to_dial.pop_front() else {
                return;
            };
            let dialing = Dialing::new(self.assignment.dialer, place);
            self.connections[place].dialing = Some(Box::new(dialing));
            self.dialing.push(place);
            self.go_on_dialing(place);
        }
    }

    pub(super) fn go_on_dialing(&mut self, place: usize) {
        let Some(dialing) = &mut self.connections[place].dialing else {
            return;
        };
        let advanced = dialing.advance(&self.registry);
        let outcome = match advanced {
            Ok(None) => return,
            Ok(Some(opened)) => Ok(opened),
            Err(error) => Err(error),
        };
        self.dialing.retain(|one| *one != place);
        self.connections[place].dialing = None;
        match outcome {
            Ok(opened) => {
                let took_ns = self.last_ns - self.connections[place].dialing_since_ns;
                self.recorder.connected(took_ns);
                if self.give(place, opened) {
                    if self.connections[place].session.is_some() {
                        self.send_next(place);
                    } else {
                        self.release(place);
                    }
                }
            }
            Err(error) => self.not_connected(place, no_connection(error)),
        }
    }

    /// A place has got its connection. Returns false if it cannot be used.
    pub(super) fn give(&mut self, place: usize, mut opened: Opened) -> bool {
        if self.server_version.is_none() {
            let version = opened.session.parameter("server_version");
            self.server_version = version.map(str::to_owned);
        }
        opened.session.parameters = Vec::new();
        let given = self.connections[place].opened(opened, place, &self.registry);
        self.counts.connections += 1;
        self.counts.connections_at_once = self.counts.connections_at_once.max(self.open as u64);
        match given {
            Ok(()) => true,
            Err(error) => {
                let failure = failure(ErrorKind::Connect, format!("cannot watch it: {error}"));
                self.not_connected(place, failure);
                false
            }
        }
    }

    /// There is no connection to be had: what waits for it has failed. One of a pool is tried again.
    pub(super) fn not_connected(&mut self, place: usize, failure: Failure) {
        self.recorder
            .error(Place::default(), failure.clone(), self.last_ns);
        self.connections[place].close();
        let Some(session) = self.connections[place].session.take() else {
            let at_ns = self.last_ns + REDIAL_PAUSE_NS;
            self.timers.push(Reverse((at_ns, Timer::Redial(place))));
            return;
        };
        let own = &mut self.sessions[session as usize];
        own.connection = None;
        let given_up = std::mem::take(&mut own.queue);
        own.left -= given_up.len() as u64;
        for waiting in given_up {
            self.queued_bytes -= waiting.messages.len() + size_of::<Waiting>();
            self.pending -= 1;
            let began_ns = self.last_ns;
            self.record(&waiting.sent, began_ns, Outcome::Failed(failure.kind));
        }
        self.vacate(place);
    }

    /// A connection of a pool is free for the next session.
    pub(super) fn release(&mut self, place: usize) {
        match self.waiting.pop_front() {
            Some(session) => self.bind(place, session),
            None => self.free.push(place),
        }
    }

    /// A session has done all its statements.
    pub(super) fn session_ended(&mut self, session: u32) {
        let Some(place) = self.sessions[session as usize].connection else {
            return;
        };
        if self.replay.pooled {
            self.sessions[session as usize].connection = None;
            self.connections[place].session = None;
            if self.connections[place].in_block {
                // It ended within a transaction, which another session must not go on with.
                self.connections[place].close();
                self.dial(place);
            } else {
                self.release(place);
            }
            return;
        }
        let recorded = &self.replay.file.sessions[session as usize];
        let closes_ns = if recorded.has_end {
            self.replay.due_ns(recorded.last_us)
        } else {
            0
        };
        if closes_ns > self.last_ns {
            self.timers
                .push(Reverse((closes_ns, Timer::Close(session))));
        } else {
            self.close_session(session);
        }
    }

    pub(super) fn close_session(&mut self, session: u32) {
        if let Some(place) = self.sessions[session as usize].connection.take() {
            self.connections[place].close();
            self.connections[place].session = None;
            self.vacate(place);
        }
    }

    /// A place has no connection any more; another session may have one now.
    pub(super) fn vacate(&mut self, place: usize) {
        self.open -= 1;
        self.vacant.push(place);
        if let Some(session) = self.waiting.pop_front() {
            self.open_for(session);
        }
    }

    /// The connection is gone, and what it was at has failed.
    pub(super) fn lost(&mut self, place: usize, message: &str) {
        let (current, last_words) = self.connections[place].close();
        let lost =
            |failure: Option<Failure>| failure.unwrap_or_else(|| failure_of_connection(message));
        let session = self.connections[place].session;
        match current {
            Some(current) => {
                let failure = lost(current.failure.or(last_words));
                self.ended(place, &current.sent, current.began_ns, Some(failure));
                if let Some(session) = session {
                    self.sessions[session as usize].left -= 1;
                }
            }
            None => self
                .recorder
                .error(Place::default(), lost(last_words), self.last_ns),
        }
        if self.replay.pooled {
            if let Some(session) = self.connections[place].session.take() {
                self.sessions[session as usize].connection = None;
                if !self.sessions[session as usize].queue.is_empty() {
                    self.wait_for_turn(session);
                }
            }
            self.free.retain(|one| *one != place);
            let at_ns = self.last_ns + REDIAL_PAUSE_NS;
            self.timers.push(Reverse((at_ns, Timer::Redial(place))));
            return;
        }
        self.connections[place].session = None;
        let Some(session) = session else { return };
        self.sessions[session as usize].connection = None;
        self.vacate(place);
        // A connection that is lost is opened again for the next statement.
        if !self.sessions[session as usize].queue.is_empty() && !self.is_past_the_end() {
            self.connect_session(session);
        }
    }
}

fn failure(kind: ErrorKind, message: String) -> Failure {
    Failure {
        kind,
        sqlstate: None,
        message,
        in_full: None,
    }
}

fn failure_of_connection(message: &str) -> Failure {
    failure(ErrorKind::ConnectionLost, message.to_owned())
}

fn no_connection(error: DialError) -> Failure {
    match error {
        DialError::Connect(error) => Failure {
            sqlstate: error.sqlstate().map(str::to_owned),
            ..failure(
                if error.is_timeout() {
                    ErrorKind::Timeout
                } else {
                    ErrorKind::Connect
                },
                error.to_string(),
            )
        },
        DialError::System(error) => failure(ErrorKind::Connect, error.to_string()),
    }
}
