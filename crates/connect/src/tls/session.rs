//! An encrypted connection over a non-blocking socket.

use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;

use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags};
use rustls::ClientConnection;

use super::certificate::Certificate;
use super::error::{TlsError, Words};

/// The TLS of a connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    connection: ClientConnection,
}

/// A socket as rustls reads and writes it.
struct Wire<'s> {
    socket: BorrowedFd<'s>,
    /// The last read took less than it could: there is no more.
    is_empty: bool,
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len();
        let received =
            retry_on_intr(|| rustix::net::recv(self.socket, &mut *buffer, RecvFlags::empty()));
        let (received, _) = received?;
        self.is_empty = received < room;
        Ok(received)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = retry_on_intr(|| rustix::net::send(self.socket, bytes, SendFlags::NOSIGNAL));
        Ok(sent?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsSession {
    pub(crate) fn new(mut connection: ClientConnection) -> Self {
        // What the socket does not take is kept, as it is for connections that are not encrypted.
        connection.set_buffer_limit(None);
        Self { connection }
    }

    pub(crate) fn alpn_protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// The data for channel binding of a login.
    pub(crate) fn certificate_hash(&self) -> Option<Vec<u8>> {
        let shown = self.connection.peer_certificates()?.first()?;
        Certificate::end_point_hash(shown)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Goes on with the handshake; whether it is done.
    pub(crate) fn shake_hands(&mut self, socket: BorrowedFd<'_>) -> Result<bool, TlsError> {
        loop {
            self.flush(socket).map_err(TlsError::Lost)?;
            if !self.connection.is_handshaking() {
                return Ok(true);
            }
            let mut wire = Wire {
                socket,
                is_empty: false,
            };
            match self.connection.read_tls(&mut wire) {
                Ok(0) => return Err(TlsError::Lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(TlsError::Lost(error)),
            }
            if let Err(error) = self.connection.process_new_packets() {
                // Sends the alert. Whether the server receives it makes no difference.
                let _ = self.flush(socket);
                return Err(error.into());
            }
        }
    }

    /// Encrypts `bytes`, and sends what the socket takes.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        self.connection.writer().write_all(bytes)?;
        self.flush(socket)
    }

    /// Sends what is encrypted already, as far as the socket takes it.
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut wire = Wire {
            socket,
            is_empty: false,
        };
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut wire) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// As [`crate::Stream::receive`]: reads until the buffer is full or the socket is empty.
    pub(crate) fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let mut wire = Wire {
            socket,
            is_empty: false,
        };
        let mut filled = 0;
        loop {
            filled += match self.connection.reader().read(&mut buffer[filled..]) {
                // The server has closed the session, with or without close_notify.
                Ok(0) if filled < buffer.len() => return Ok(filled),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(filled),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                read => read?,
            };
            if filled == buffer.len() || (wire.is_empty && filled > 0) {
                return Ok(filled);
            }
            match self.connection.read_tls(&mut wire) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && filled > 0 => {
                    return Ok(filled);
                }
                read => read?,
            };
            if let Err(error) = self.connection.process_new_packets() {
                let _ = self.flush(socket);
                return Err(io::Error::other(format!("TLS: {}", Words(&error))));
            }
        }
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self, socket: BorrowedFd<'_>) {
        self.connection.send_close_notify();
        let _ = self.flush(socket);
    }
}
