//! A client's connection among the others of its thread: being opened, then watched.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use mio::Registry;
use plinth_connect::{ConnectError, Dialer, Opened, Opening, Progress, Stream};

use crate::readiness;

/// A connection that is being opened. Its events carry its token; it does not block.
#[derive(Debug)]
pub(crate) struct Dialing {
    opening: Opening,
    token: usize,
    /// Number of the socket that is watched.
    watched: usize,
}

impl Dialing {
    /// Nothing happens before the first [`Dialing::advance`].
    pub(crate) fn new(dialer: &Arc<Dialer>, token: usize) -> Self {
        Self {
            opening: Opening::new(dialer),
            token,
            watched: 0,
        }
    }

    /// Goes on as far as it can: at first, when there was an event, and at [`Dialing::wake_at`]. The session, once
    /// there is one; its socket is still watched, for reading and writing.
    pub(crate) fn advance(&mut self, registry: &Registry) -> Result<Option<Opened>, DialError> {
        if let Progress::Opened(opened) = self.opening.advance().map_err(DialError::Connect)? {
            return Ok(Some(*opened));
        }
        if let Some(socket) = self.opening.socket()
            && self.watched != self.opening.sockets()
        {
            // A socket that was watched before is closed, and thereby forgotten.
            self.watched = self.opening.sockets();
            readiness::watch(registry, socket, self.token, readiness::READ_WRITE)
                .map_err(DialError::System)?;
        }
        Ok(None)
    }

    /// When to continue even without an event.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.opening.wake_at()
    }
}

/// Why a connection could not be opened.
#[derive(Debug)]
pub(crate) enum DialError {
    /// There is no session to be had.
    Connect(ConnectError),
    /// The socket cannot be watched.
    System(io::Error),
}

/// A client's connection: sends at once what its socket takes, and the rest when it takes it.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    /// What its events carry.
    token: usize,
}

impl Link {
    /// Watches a connection from now on for reading; it may be one that a [`Dialing`] watched in the same registry.
    pub(crate) fn new(stream: Stream, token: usize, registry: &Registry) -> io::Result<Self> {
        let link = Self { stream, token };
        readiness::watch(registry, link.socket(), token, readiness::READ)?;
        Ok(link)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// Sends `bytes`, now or as the socket takes them; how many went now.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8], registry: &Registry) -> io::Result<usize> {
        let was_waiting = self.stream.has_unsent();
        let sent = self.stream.send(bytes)?;
        if self.stream.has_unsent() && !was_waiting {
            readiness::change(registry, self.socket(), self.token, readiness::READ_WRITE)?;
        }
        Ok(sent)
    }

    /// The socket is writable again: sends the bytes that are left.
    pub(crate) fn flush(&mut self, registry: &Registry) -> io::Result<usize> {
        if !self.stream.has_unsent() {
            return Ok(0);
        }
        let sent = self.stream.flush()?;
        if !self.stream.has_unsent() {
            readiness::change(registry, self.socket(), self.token, readiness::READ)?;
        }
        Ok(sent)
    }

    /// Reads what there is, at most what `buffer` holds; 0 at the end of the connection.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.receive(buffer)
    }

    /// Ends the connection with a farewell.
    pub(crate) fn close(&mut self) {
        self.stream.close();
    }
}
