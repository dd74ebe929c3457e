//! A session on a blocking socket that yet notices when it is told to withdraw.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use plinth_connect::Opened;
use plinth_wire::{Frame, FrameError, Scanner, ServerError, frontend};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{RecvFlags, SendFlags};
use thiserror::Error;

use crate::control::Control;

/// How long a send or a receive blocks before it is looked whether to withdraw.
const GLANCE: Duration = Duration::from_millis(100);

/// How long a withdrawal may take before the connection is closed on it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a stream cannot go on.
#[derive(Debug, Error)]
pub(crate) enum SessionError {
    #[error("{0}")]
    Server(Box<ServerError>),
    #[error("the connection was lost: {0}")]
    Lost(io::Error),
    #[error("not what a server says during COPY: {0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Unexpected(String),
    /// Told to withdraw; not a failure of this stream.
    #[error("withdrawn")]
    Withdrawn,
}

/// What the server has said since the last command.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// It takes rows.
    pub(crate) copy_in: bool,
    /// How many rows a COPY that ended well has copied.
    pub(crate) rows: Option<u64>,
    /// The command has failed.
    pub(crate) error: Option<ServerError>,
    /// It waits for the next command.
    pub(crate) ready: bool,
}

/// A session of one stream.
pub(crate) struct Session<'c> {
    socket: OwnedFd,
    scanner: Scanner,
    control: &'c Control,
    pub(crate) said: Said,
}

impl<'c> Session<'c> {
    pub(crate) fn new(opened: Opened, control: &'c Control) -> Result<Self, SessionError> {
        for direction in [Timeout::Send, Timeout::Recv] {
            sockopt::set_socket_timeout(&opened.socket, direction, Some(GLANCE))
                .map_err(|errno| SessionError::Lost(errno.into()))?;
        }
        Ok(Self {
            socket: opened.socket,
            scanner: opened.session.scanner,
            control,
            said: Said::default(),
        })
    }

    /// Begins a command.
    pub(crate) fn command(&mut self, message: &[u8]) -> Result<(), SessionError> {
        self.said = Said::default();
        self.send(message)
    }

    /// Sends all bytes. What the server says meanwhile is read only when the connection breaks.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<(), SessionError> {
        while !bytes.is_empty() {
            match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::AGAIN | Errno::INTR) => self.check_patience()?,
                Err(errno) => return Err(self.last_words(errno.into())),
            }
        }
        Ok(())
    }

    /// Reads until `enough` has been said.
    pub(crate) fn until(&mut self, enough: impl Fn(&Said) -> bool) -> Result<(), SessionError> {
        while !enough(&self.said) {
            if !self.receive(RecvFlags::empty())? {
                self.check_patience()?;
            }
        }
        Ok(())
    }

    /// Reads what has come, without waiting.
    pub(crate) fn glance(&mut self) -> Result<(), SessionError> {
        while !self.said.ready && self.receive(RecvFlags::DONTWAIT)? {}
        Ok(())
    }

    /// Ends the session in good order. What fails now fails nobody.
    pub(crate) fn close(mut self) {
        let closed = self.send(&frontend::TERMINATE);
        drop(closed);
    }

    /// Reads once; whether something came before the timeout.
    fn receive(&mut self, flags: RecvFlags) -> Result<bool, SessionError> {
        let mut buffer = [0; 4096];
        match rustix::net::recv(&self.socket, &mut buffer, flags) {
            Ok((0, _)) => Err(self.without_words(Errno::CONNRESET.into())),
            Ok((received, _)) => self.hear(&buffer[..received]).map(|()| true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(self.without_words(errno.into())),
        }
    }

    fn hear(&mut self, mut input: &[u8]) -> Result<(), SessionError> {
        while let Some(frame) = self.scanner.next(&mut input)? {
            self.said.hear(frame)?;
        }
        Ok(())
    }

    /// The error of a broken connection: what the server said last, if it said why.
    fn last_words(&mut self, broken: io::Error) -> SessionError {
        loop {
            match self.receive(RecvFlags::DONTWAIT) {
                Ok(true) => {}
                Ok(false) => return self.without_words(broken),
                Err(error) => return error,
            }
        }
    }

    fn without_words(&mut self, broken: io::Error) -> SessionError {
        match self.said.error.take() {
            Some(error) => SessionError::Server(Box::new(error)),
            None => SessionError::Lost(broken),
        }
    }

    fn check_patience(&self) -> Result<(), SessionError> {
        match self.control.withdrawal() {
            Some((_, since)) if since > PATIENCE => Err(SessionError::Withdrawn),
            _ => Ok(()),
        }
    }
}

impl Said {
    fn hear(&mut self, frame: Frame<'_>) -> Result<(), SessionError> {
        match frame.tag {
            b'G' => self.copy_in = true,
            b'C' => self.rows = copied_rows(frame.body),
            b'Z' => self.ready = true,
            // The first error is the cause; after it, the server may say why it ends the session.
            b'E' => {
                self.error
                    .get_or_insert_with(|| ServerError::parse(frame.body));
            }
            b'N' | b'S' | b'A' => {}
            tag => {
                let message = format!("message '{}' in answer to COPY", tag as char);
                return Err(SessionError::Unexpected(message));
            }
        }
        Ok(())
    }
}

/// The number in `COPY 100`; none when the words did not come in one piece, for then they are not kept.
fn copied_rows(command_tag: &[u8]) -> Option<u64> {
    let words = command_tag.strip_suffix(b"\0")?.strip_prefix(b"COPY ")?;
    std::str::from_utf8(words).ok()?.parse().ok()
}
