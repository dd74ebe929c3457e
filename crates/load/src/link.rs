//! A client's socket: sends at once what it takes, and the rest when it takes it.

use std::io;
use std::os::fd::OwnedFd;

use mio::Registry;
use plinth_wire::frontend;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::readiness;

/// A connected socket that does not block, and what it would not take yet.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
    /// What its events carry.
    token: usize,
    unsent: Vec<u8>,
}

impl Link {
    /// Makes the socket not block, and begins to watch it.
    pub(crate) fn new(socket: OwnedFd, token: usize, registry: &Registry) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        readiness::watch(registry, &socket, token)?;
        Ok(Self {
            socket,
            token,
            unsent: Vec::new(),
        })
    }

    /// Sends `bytes`, now or as the socket takes them; how many went now.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8], registry: &Registry) -> io::Result<usize> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(0);
        }
        let sent = match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            // The server's last words may still be in the socket: reading them tells what happened.
            Err(Errno::PIPE | Errno::CONNRESET) => bytes.len(),
            Err(errno) => return Err(errno.into()),
        };
        if sent < bytes.len() {
            self.unsent.extend_from_slice(&bytes[sent..]);
            readiness::change(registry, &self.socket, self.token, readiness::READ_WRITE)?;
        }
        Ok(sent)
    }

    /// The socket takes something again: sends on what it would not take before.
    pub(crate) fn flush(&mut self, registry: &Registry) -> io::Result<usize> {
        let unsent = std::mem::take(&mut self.unsent);
        if unsent.is_empty() {
            return Ok(0);
        }
        let sent = self.send(&unsent, registry)?;
        if self.unsent.is_empty() {
            readiness::change(registry, &self.socket, self.token, readiness::READ)?;
        }
        Ok(sent)
    }

    /// Reads what there is, at most what `buffer` holds; 0 at the end of the connection.
    #[inline]
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(&self.socket, buffer, RecvFlags::empty()).map(|(bytes, _)| bytes)
    }

    /// Ends the connection with a farewell: a server that does not hear it any more is none the worse, and sees
    /// the end all the same.
    pub(crate) fn close(&mut self) {
        let _ = rustix::net::send(&self.socket, &frontend::TERMINATE, SendFlags::NOSIGNAL);
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        self.unsent = Vec::new();
    }
}
