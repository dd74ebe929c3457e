//! A session that waits for its server, but notices when it has to withdraw.

use std::io;
use std::time::Duration;

use plinth_connect::{Opened, Stream};
use plinth_wire::{Frame, FrameError, Scanner, ServerError, frontend};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thiserror::Error;

use crate::control::CopyControl;

/// The interval at which a wait for the server checks whether to withdraw.
const POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The time that a withdrawal may take before the connection is closed.
const WITHDRAWAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a stream cannot continue.
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

/// The server's reply since the last command.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The server is ready for the rows of a COPY.
    pub(crate) copy_in: bool,
    /// The number of rows that a COPY which succeeded has copied.
    pub(crate) rows: Option<u64>,
    /// The command has failed.
    pub(crate) error: Option<ServerError>,
    /// The server is ready for the next command.
    pub(crate) ready: bool,
}

/// A session of one stream.
pub(crate) struct Session<'c> {
    stream: Stream,
    scanner: Scanner,
    control: &'c CopyControl,
    pub(crate) answer: Answer,
}

impl<'c> Session<'c> {
    pub(crate) fn new(opened: Opened, control: &'c CopyControl) -> Self {
        Self {
            stream: opened.stream,
            scanner: opened.session.scanner,
            control,
            answer: Answer::default(),
        }
    }

    /// Begins a statement.
    pub(crate) fn query(&mut self, sql: &str) -> Result<(), SessionError> {
        let message =
            frontend::query(sql).map_err(|error| SessionError::Unexpected(error.to_string()))?;
        self.answer = Answer::default();
        self.send(&message)
    }

    /// Runs a statement to its end.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<(), SessionError> {
        self.query(sql)?;
        self.until(|answer| answer.ready)?;
        match self.answer.error.take() {
            Some(error) => Err(SessionError::Server(Box::new(error))),
            None => Ok(()),
        }
    }

    /// Sends all bytes. Replies that arrive meanwhile are read only when the connection breaks.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let mut sent = self.stream.send(bytes);
        while sent.is_ok() && self.stream.has_unsent() {
            if !self.wait(PollFlags::OUT)? {
                self.check_withdrawal()?;
            }
            sent = self.stream.flush();
        }
        sent.map(|_| ()).map_err(|error| self.cause_of(error))
    }

    /// Reads until `is_enough` is true of the answer.
    pub(crate) fn until(
        &mut self,
        is_enough: impl Fn(&Answer) -> bool,
    ) -> Result<(), SessionError> {
        while !is_enough(&self.answer) {
            if !self.receive()? && !self.wait(PollFlags::IN)? {
                self.check_withdrawal()?;
            }
        }
        Ok(())
    }

    /// Reads what has arrived, without waiting.
    pub(crate) fn drain(&mut self) -> Result<(), SessionError> {
        while !self.answer.ready && self.receive()? {}
        Ok(())
    }

    /// Closes the session. The work is done, so errors are ignored.
    pub(crate) fn close(mut self) {
        self.stream.close();
    }

    /// Waits at most one poll interval for the socket. Returns whether it is ready.
    fn wait(&self, readiness: PollFlags) -> Result<bool, SessionError> {
        let socket = self.stream.socket();
        match poll(&mut [PollFd::new(&socket, readiness)], Some(&POLL_INTERVAL)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(SessionError::Lost(errno.into())),
        }
    }

    /// Reads once. Returns whether anything had arrived.
    fn receive(&mut self) -> Result<bool, SessionError> {
        let mut buffer = [0; 4096];
        match self.stream.receive(&mut buffer) {
            Ok(0) => Err(self.lost(Errno::CONNRESET.into())),
            Ok(received) => self.read(&buffer[..received]).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn read(&mut self, mut input: &[u8]) -> Result<(), SessionError> {
        while let Some(frame) = self.scanner.next(&mut input)? {
            self.answer.read(frame)?;
        }
        Ok(())
    }

    /// The reason why a connection broke: the last error of the server, if it sent one.
    fn cause_of(&mut self, broken: io::Error) -> SessionError {
        loop {
            match self.receive() {
                Ok(true) => {}
                Ok(false) => return self.lost(broken),
                Err(error) => return error,
            }
        }
    }

    fn lost(&mut self, broken: io::Error) -> SessionError {
        match self.answer.error.take() {
            Some(error) => SessionError::Server(Box::new(error)),
            None => SessionError::Lost(broken),
        }
    }

    fn check_withdrawal(&self) -> Result<(), SessionError> {
        match self.control.withdrawal() {
            Some((_, since)) if since > WITHDRAWAL_TIMEOUT => Err(SessionError::Withdrawn),
            _ => Ok(()),
        }
    }
}

impl Answer {
    fn read(&mut self, frame: Frame<'_>) -> Result<(), SessionError> {
        match frame.tag {
            b'G' => self.copy_in = true,
            b'C' => self.rows = self.rows.or(copied_rows(frame.body)),
            b'Z' => self.ready = true,
            // The first error is the cause. After it, the server may report why it ends the session.
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

/// The number in `COPY 100`; `None` when the tag arrived in parts, since those are not kept.
fn copied_rows(command_tag: &[u8]) -> Option<u64> {
    let words = command_tag.strip_suffix(b"\0")?.strip_prefix(b"COPY ")?;
    std::str::from_utf8(words).ok()?.parse().ok()
}
