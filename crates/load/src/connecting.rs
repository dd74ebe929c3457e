//! How the clients of a thread get their connections: several at a time.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::time::Instant;

use mio::{Events, Poll};
use plinth_connect::{ConnectError, Opened};
use plinth_thread::POLL_INTERVAL;

use crate::assignment::Assignment;
use crate::errors::{ErrorKind, Failure};
use crate::link::{DialError, Dialing};

/// How many connections a thread opens at once: enough to hide a network's delay, and few enough that a server, which
/// makes a process for each, answers all of them in time.
const AT_ONCE: usize = 32;

/// Clients that connected, in the order of their numbers, and why others did not.
#[derive(Debug, Default)]
pub(crate) struct Connected {
    pub(crate) opened: Vec<(usize, Opened)>,
    /// As the first server to answer reports it.
    pub(crate) server_version: Option<String>,
    /// Each with the number of clients that it kept from connecting.
    pub(crate) failures: Vec<(Failure, u64)>,
    /// With the number of its client.
    pub(crate) first_error: Option<(usize, ConnectError)>,
}

impl Assignment<'_> {
    /// Connects the thread's clients. When one gets no answer in time, no further ones are tried: each would wait as
    /// long.
    pub(crate) fn connect(&self) -> io::Result<Connected> {
        let mut connecting = Connecting {
            assignment: self,
            poll: Poll::new()?,
            waiting: self.numbers_to_connect(false),
            dialing: HashMap::new(),
            connected: Connected::default(),
        };
        connecting.connect_all()?;
        let mut connected = connecting.connected;
        connected.opened.sort_by_key(|(number, _)| *number);
        Ok(connected)
    }
}

struct Connecting<'a> {
    assignment: &'a Assignment<'a>,
    poll: Poll,
    /// Numbers of clients not begun yet.
    waiting: Range<usize>,
    /// By number, which is also the token.
    dialing: HashMap<usize, Dialing>,
    connected: Connected,
}

impl Connecting<'_> {
    fn connect_all(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(AT_ONCE);
        loop {
            if self.assignment.control.is_stopping() {
                return Ok(());
            }
            while self.dialing.len() < AT_ONCE
                && let Some(number) = self.waiting.next()
            {
                let dialing = Dialing::new(self.assignment.dialer, number);
                self.dialing.insert(number, dialing);
                self.advance(number)?;
            }
            if self.dialing.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            let wake_at = self.dialing.values().filter_map(Dialing::wake_at).min();
            let wait = wake_at.map_or(POLL_INTERVAL, |at| {
                at.saturating_duration_since(now).min(POLL_INTERVAL)
            });
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                self.advance(event.token().0)?;
            }
            for number in self.due() {
                self.advance(number)?;
            }
        }
    }

    /// Connections that have to advance now, whether or not their sockets are ready.
    fn due(&self) -> Vec<usize> {
        let now = Instant::now();
        let is_due = |dialing: &Dialing| dialing.wake_at().is_some_and(|at| at <= now);
        let due = self.dialing.iter().filter(|(_, dialing)| is_due(dialing));
        due.map(|(number, _)| *number).collect()
    }

    fn advance(&mut self, number: usize) -> io::Result<()> {
        let Some(dialing) = self.dialing.get_mut(&number) else {
            return Ok(());
        };
        match dialing.advance(self.poll.registry()) {
            Ok(None) => return Ok(()),
            Ok(Some(opened)) => self.connected.add(number, opened),
            Err(DialError::Connect(error)) if error.is_timeout() => {
                let given_up = std::mem::take(&mut self.waiting).len() as u64;
                self.connected
                    .failed(number, ErrorKind::Timeout, 1 + given_up, error);
            }
            Err(DialError::Connect(error)) => {
                self.connected.failed(number, ErrorKind::Connect, 1, error);
            }
            Err(DialError::System(error)) => return Err(error),
        }
        self.dialing.remove(&number);
        Ok(())
    }
}

impl Connected {
    /// What the server reports of itself, the same for each session, is not kept with all of them: it would be most of what
    /// thousands of connections need.
    fn add(&mut self, number: usize, mut opened: Opened) {
        if self.server_version.is_none() {
            let version = opened.session.parameter("server_version");
            self.server_version = version.map(str::to_owned);
        }
        opened.session.parameters = Vec::new();
        self.opened.push((number, opened));
    }

    /// Client `number` has no connection, and `clients` in all have none for that reason.
    fn failed(&mut self, number: usize, kind: ErrorKind, clients: u64, error: ConnectError) {
        let sqlstate = error.sqlstate().map(str::to_owned);
        let message = error.to_string();
        self.failures.push((
            Failure {
                kind,
                sqlstate,
                message,
                in_full: None,
            },
            clients,
        ));
        self.first_error.get_or_insert((number, error));
    }
}
