//! How the clients of a thread get their connections.

use plinth_connect::{ConnectError, Opened};

use crate::errors::{ErrorKind, Failure};
use crate::worker::Assignment;

/// Clients that connected, in the order of their numbers, and why others did not.
#[derive(Debug, Default)]
pub(crate) struct Connected {
    pub(crate) opened: Vec<(usize, Opened)>,
    /// Each with the number of clients that it kept from connecting.
    pub(crate) failures: Vec<(Failure, u64)>,
    pub(crate) first_error: Option<ConnectError>,
}

impl Assignment<'_> {
    /// Connects the thread's clients one after the other, as pgbench does. When one gets no answer in time,
    /// the rest are not tried: each would wait as long.
    pub(crate) fn connect(&self) -> Connected {
        let mut connected = Connected::default();
        let mut clients = self.seeds.clients.clone();
        while let Some(number) = clients.next() {
            if self.control.is_stopping() {
                break;
            }
            let timeout = self.config.connect_timeout();
            match plinth_connect::open(&self.config.connection, self.addresses, timeout) {
                Ok(opened) => connected.opened.push((number, opened)),
                Err(error @ ConnectError::Timeout { .. }) => {
                    connected.failed(ErrorKind::Timeout, 1 + clients.len() as u64, error);
                    break;
                }
                Err(error) => connected.failed(ErrorKind::Connect, 1, error),
            }
        }
        connected
    }
}

impl Connected {
    fn failed(&mut self, kind: ErrorKind, clients: u64, error: ConnectError) {
        let sqlstate = error.sqlstate().map(str::to_owned);
        let message = error.to_string();
        self.failures.push((
            Failure {
                kind,
                sqlstate,
                message,
            },
            clients,
        ));
        self.first_error.get_or_insert(error);
    }
}
