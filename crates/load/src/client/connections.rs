//! A client's connection when each transaction gets one of its own, pgbench's `--connect`, and when one that was lost is
//! opened again.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use plinth_connect::Opened;
use plinth_script::lossless;
use plinth_wire::ServerError;

use crate::client::{Client, State};
use crate::context::Context;
use crate::errors::{ClientError, ErrorKind, Failure};
use crate::events::EventKind;
use crate::link::{DialError, Dialing, Link};
use crate::recorder::Outcome;

impl Client {
    /// Whether the events of this client are about a connection that is not there yet.
    pub(crate) fn is_connecting(&self) -> bool {
        self.state == State::Connecting
    }

    /// Goes on connecting: there was an event, or its time has come.
    pub(crate) fn go_on_connecting(&mut self, context: &mut Context<'_>, now_ns: u64) {
        if !self.is_connecting() {
            return;
        }
        let connected = self.connect(context, now_ns);
        let result = match connected {
            Ok(true) => self.run(context, now_ns),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        self.end_on_error(result, context, now_ns);
    }

    /// Goes on connecting as far as possible; whether the transaction has begun.
    pub(super) fn connect(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<bool, ClientError> {
        let index = self.index;
        let dialing = self
            .dialing
            .get_or_insert_with(|| Box::new(Dialing::new(context.dialer, index)));
        match dialing.advance(&context.registry).map_err(no_connection)? {
            Some(opened) => {
                self.dialing = None;
                self.connected(opened, context, now_ns)?;
                Ok(true)
            }
            None => {
                if let Some(at) = dialing.wake_at() {
                    wake(at, index, context, now_ns);
                }
                Ok(false)
            }
        }
    }

    fn connected(
        &mut self,
        opened: Opened,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        self.canceller = Some(Box::new(opened.canceller()));
        let link = Link::new(opened.stream, self.index, &context.registry);
        let link = link.map_err(|error| ClientError::lost(format!("cannot watch it: {error}")))?;
        self.link = Some(link);
        self.scanner = opened.session.scanner;
        self.prepared.fill(false);
        self.in_block = false;
        context
            .recorder
            .connected(now_ns - self.connecting_since_ns);
        // In a closed loop latency is without the connection, as pgbench has it.
        if context.arrivals.is_none() {
            self.intended_ns = now_ns;
        }
        self.began_ns = now_ns;
        self.state = State::Turn;
        Ok(())
    }

    pub(super) fn is_disconnected(&self) -> bool {
        matches!(self.state, State::Disconnected { .. })
    }

    /// There is no connection. A transaction that was under way has failed; one that had not begun stays due. Another
    /// connection is tried after a pause.
    #[cold]
    pub(super) fn disconnected(
        &mut self,
        kind: ErrorKind,
        pause_ns: u64,
        context: &mut Context<'_>,
        now_ns: u64,
    ) {
        let is_before_transaction = matches!(self.state, State::Waiting | State::Connecting);
        if !is_before_transaction {
            self.emit(EventKind::Failed, context, now_ns);
            self.end_transaction(Outcome::Failed(kind), context, now_ns);
        }
        self.is_due = is_before_transaction;
        self.hang_up();
        self.pipeline.close();
        self.shell = None;
        self.keeps = false;
        self.failed = None;
        self.failure = None;
        // Its answer will never come: the ledger keeps it as indeterminate.
        self.commit = None;
        let until_ns = now_ns + pause_ns;
        self.state = State::Disconnected { until_ns };
        context.sleepers.push(Reverse((until_ns, self.index)));
    }

    /// What the server said before it closed the connection, which shows first when something cannot be sent.
    #[cold]
    pub(super) fn add_last_words(&mut self, failure: &mut Failure) {
        let Some(link) = &mut self.link else { return };
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = link.receive(&mut buffer) {
            let mut bytes = &buffer[..count];
            while let Ok(Some(frame)) = self.scanner.next(&mut bytes) {
                let body = lossless::from_bytes(frame.body);
                let error = ServerError::parse(body.as_bytes());
                if frame.tag == b'E' && error.is_fatal() {
                    failure.sqlstate = Some(error.sqlstate.clone());
                    failure.message = error.to_string();
                    failure.in_full = Some(error.in_full(None));
                    return;
                }
            }
        }
    }

    /// The pause is over.
    pub(super) fn connect_again(&mut self, context: &mut Context<'_>, now_ns: u64) {
        if now_ns >= context.ends_ns {
            return self.give_up_connecting(context);
        }
        let begun = if !self.is_due {
            self.begin(context, now_ns)
        } else if self.intended_ns > now_ns {
            self.state = State::Waiting;
            let sleeper = (self.intended_ns, self.index);
            context.sleepers.push(Reverse(sleeper));
            Ok(false)
        } else {
            self.begin_or_connect(context, now_ns)
        };
        let result = match begun {
            Ok(true) => self.run(context, now_ns),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        self.end_on_error(result, context, now_ns);
    }

    /// The run ends, and there is still no connection. In an open loop, the transaction that waits for it was due.
    pub(super) fn give_up_connecting(&mut self, context: &mut Context<'_>) {
        if self.is_due && context.arrivals.is_some() {
            context.recorder.never_begun(1);
        }
        self.close();
    }

    /// Ends the connection, if there is one.
    pub(super) fn hang_up(&mut self) {
        if let Some(mut link) = self.link.take() {
            link.close();
        }
        self.dialing = None;
        self.canceller = None;
    }
}

/// A retry is soon, and gets its time; deadlines, which are rarely reached, are looked at when a second is over.
fn wake(at: Instant, index: usize, context: &mut Context<'_>, now_ns: u64) {
    const SOON: Duration = Duration::from_millis(100);
    let wait = at.saturating_duration_since(Instant::now());
    if wait < SOON {
        let until_ns = now_ns + wait.as_nanos() as u64;
        context.sleepers.push(Reverse((until_ns, index)));
    }
}

fn no_connection(error: DialError) -> ClientError {
    let (kind, sqlstate, message) = match error {
        DialError::Connect(error) => {
            let kind = if error.is_timeout() {
                ErrorKind::Timeout
            } else {
                ErrorKind::Connect
            };
            let sqlstate = error.sqlstate().map(str::to_owned);
            (kind, sqlstate, error.to_string())
        }
        DialError::System(error) => (ErrorKind::Connect, None, error.to_string()),
    };
    ClientError {
        failure: Failure {
            kind,
            sqlstate,
            message,
            in_full: None,
        },
        line: None,
    }
}
