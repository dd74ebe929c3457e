//! A session that waits for its server, and yet notices when it is told to withdraw.

use std::io;
use std::time::Duration;

use plinth_connect::{Opened, Stream};
use plinth_wire::{Frame, FrameError, Scanner, ServerError, frontend};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thiserror::Error;

use crate::run::Control;

/// How long it is waited for the server before it is looked whether to withdraw.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

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
    stream: Stream,
    scanner: Scanner,
    control: &'c Control,
    pub(crate) said: Said,
}

impl<'c> Session<'c> {
    pub(crate) fn new(opened: Opened, control: &'c Control) -> Self {
        Self {
            stream: opened.stream,
            scanner: opened.session.scanner,
            control,
            said: Said::default(),
        }
    }

    /// Begins a statement.
    pub(crate) fn query(&mut self, sql: &str) -> Result<(), SessionError> {
        let message =
            frontend::query(sql).map_err(|error| SessionError::Unexpected(error.to_string()))?;
        self.said = Said::default();
        self.send(&message)
    }

    /// Runs a statement to its end.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<(), SessionError> {
        self.query(sql)?;
        self.until(|said| said.ready)?;
        match self.said.error.take() {
            Some(error) => Err(SessionError::Server(Box::new(error))),
            None => Ok(()),
        }
    }

    /// Sends all bytes. What the server says meanwhile is read only when the connection breaks.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let mut sent = self.stream.send(bytes);
        while sent.is_ok() && self.stream.has_unsent() {
            if !self.wait(PollFlags::OUT)? {
                self.check_patience()?;
            }
            sent = self.stream.flush();
        }
        sent.map(|_| ()).map_err(|error| self.last_words(error))
    }

    /// Reads until `enough` has been said.
    pub(crate) fn until(&mut self, enough: impl Fn(&Said) -> bool) -> Result<(), SessionError> {
        while !enough(&self.said) {
            if !self.receive()? && !self.wait(PollFlags::IN)? {
                self.check_patience()?;
            }
        }
        Ok(())
    }

    /// Reads what has come, without waiting.
    pub(crate) fn glance(&mut self) -> Result<(), SessionError> {
        while !self.said.ready && self.receive()? {}
        Ok(())
    }

    /// Ends the session in good order. What fails now fails nobody.
    pub(crate) fn close(mut self) {
        self.stream.close();
    }

    /// Waits for the socket, but not long; whether it is ready.
    fn wait(&self, readiness: PollFlags) -> Result<bool, SessionError> {
        let socket = self.stream.socket();
        match poll(&mut [PollFd::new(&socket, readiness)], Some(&GLANCE)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(SessionError::Lost(errno.into())),
        }
    }

    /// Reads once; whether something was there.
    fn receive(&mut self) -> Result<bool, SessionError> {
        let mut buffer = [0; 4096];
        match self.stream.receive(&mut buffer) {
            Ok(0) => Err(self.without_words(Errno::CONNRESET.into())),
            Ok(received) => self.hear(&buffer[..received]).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.without_words(error)),
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
            match self.receive() {
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
            b'C' => self.rows = self.rows.or(copied_rows(frame.body)),
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
