//! A connection that does not block, plain or encrypted, and what its socket would not take yet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use plinth_wire::frontend;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::tls::TlsSession;

/// The bytes of a connection, in both directions. Nothing here waits: who finds nothing to read, or has something
/// unsent, waits for the socket to be ready and comes back.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
    /// The buffer of plain connections; encrypted ones have their own.
    unsent: Vec<u8>,
    tls: Option<Box<TlsSession>>,
}

impl Stream {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            unsent: Vec::new(),
            tls: None,
        }
    }

    pub(crate) fn encrypt(&mut self, session: TlsSession) {
        self.tls = Some(Box::new(session));
    }

    /// The encryption, with the socket that it runs over.
    pub(crate) fn tls(&mut self) -> Option<(&mut TlsSession, BorrowedFd<'_>)> {
        let socket = self.socket.as_fd();
        self.tls.as_deref_mut().map(|tls| (tls, socket))
    }

    /// Whether it is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The socket, for waiting.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends `bytes`, now or with [`Stream::flush`]; how many went now. Of an encrypted connection all count at once.
    ///
    /// # Errors
    /// The connection is broken. One that the server has closed is no error: its last messages are still to be read.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tls.is_some() {
            return self.send_encrypted(bytes);
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(0);
        }
        let sent = self.send_now(bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(sent)
    }

    fn send_encrypted(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some((tls, socket)) = self.tls() {
            ignore_closed(tls.send(socket, bytes))?;
        }
        Ok(bytes.len())
    }

    #[inline]
    fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match retry_on_intr(|| rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)) {
            Ok(sent) => Ok(sent),
            Err(Errno::AGAIN) => Ok(0),
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(bytes.len()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether there is something for [`Stream::flush`] to send when the socket takes it.
    #[must_use]
    #[inline]
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Sends on what the socket would not take before; how many bytes of it went.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub fn flush(&mut self) -> io::Result<usize> {
        if let Some((tls, socket)) = self.tls() {
            return ignore_closed(tls.flush(socket)).map(|()| 0);
        }
        if self.unsent.is_empty() {
            return Ok(0);
        }
        let sent = self.send_now(&self.unsent)?;
        self.unsent.drain(..sent);
        Ok(sent)
    }

    /// Reads what there is, at most what `buffer` holds; 0 at the end of the connection. What leaves room in the
    /// buffer has emptied the socket.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing; else the connection is broken.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((tls, socket)) = self.tls() {
            return tls.receive(socket, buffer);
        }
        match retry_on_intr(|| rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty())) {
            Ok((received, _)) => Ok(received),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Ends the connection with a Terminate message: a server that no longer reads it sees the
    /// end all the same.
    pub fn close(&mut self) {
        let _ = self.send(&frontend::TERMINATE);
        if let Some((tls, socket)) = self.tls() {
            tls.close(socket);
        }
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        self.unsent = Vec::new();
    }
}

/// A server that has closed the connection has sent the reason, which is still to be read.
fn ignore_closed(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            ) =>
        {
            Ok(())
        }
        sent => sent,
    }
}
