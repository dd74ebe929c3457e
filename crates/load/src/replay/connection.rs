//! A connection of a replay: sends a statement and waits for its end.

use mio::Registry;
use plinth_connect::{Canceller, Opened};
use plinth_script::lossless;
use plinth_wire::{Frame, Scanner, ServerError};

use crate::errors::{ErrorKind, Failure};
use crate::link::{Dialing, Link};
use crate::replay::answer::kind_of;
use crate::replay::statement::Sent;

/// What a connection was told by the server.
#[derive(Debug)]
pub(super) enum Told {
    /// Nothing that ends a statement.
    Nothing,
    /// The statement has ended.
    Ready,
}

/// A statement that the server is at.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) sent: Sent,
    pub(super) began_ns: u64,
    /// The first error.
    pub(super) failure: Option<Failure>,
    /// How many rollbacks the server has answered with.
    rolled_back: u32,
}

/// A connection, or the place of one.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) link: Option<Link>,
    pub(super) dialing: Option<Box<Dialing>>,
    pub(super) dialing_since_ns: u64,
    pub(super) canceller: Option<Box<Canceller>>,
    scanner: Scanner,
    /// How often there was one in this place, by which bytes of one before are known.
    pub(super) openings: u64,
    /// Whose it is, while it is in use.
    pub(super) session: Option<u32>,
    /// By number of the text, a bit.
    prepared: Vec<u64>,
    pub(super) in_block: bool,
    /// The transaction that is open has failed.
    pub(super) has_failed: bool,
    /// Why the transaction that is open has failed, if the reason is one that its other statements share.
    pub(super) shared_reason: Option<ErrorKind>,
    pub(super) current: Option<Current>,
    /// The text that is being prepared.
    parsing: Option<u32>,
    /// What the server said before it ended the session.
    last_words: Option<Failure>,
}

/// Returns the words of an error without values of a recording, which may be personal: details have them, and messages of data
/// exceptions (class 22) and of functions (P0).
fn without_values(error: &ServerError) -> String {
    let has_values = error.sqlstate.starts_with("22") || error.sqlstate.starts_with("P0");
    let message = if has_values {
        "an error about values, which are not shown"
    } else {
        &error.message
    };
    format!(
        "{}: {message} (SQLSTATE {})",
        error.severity, error.sqlstate
    )
}

impl Connection {
    /// Whether it can take a statement.
    pub(super) fn is_idle(&self) -> bool {
        self.link.is_some() && self.current.is_none()
    }

    pub(super) fn is_open(&self) -> bool {
        self.link.is_some()
    }

    pub(super) fn opened(
        &mut self,
        opened: Opened,
        token: usize,
        registry: &Registry,
    ) -> std::io::Result<()> {
        self.canceller = Some(Box::new(opened.canceller()));
        self.link = Some(Link::new(opened.stream, token, registry)?);
        self.scanner = opened.session.scanner;
        self.openings += 1;
        self.prepared.clear();
        self.parsing = None;
        self.last_words = None;
        self.in_block = false;
        self.has_failed = false;
        self.shared_reason = None;
        Ok(())
    }

    pub(super) fn has_prepared(&self, number: u32) -> bool {
        let word = self.prepared.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 > 0)
    }

    fn set_prepared(&mut self, number: u32) {
        let at = number as usize / 64;
        if self.prepared.len() <= at {
            self.prepared.resize(at + 1, 0);
        }
        self.prepared[at] |= 1 << (number % 64);
    }

    /// A statement is on its way; `parsing` is the text that is prepared with it.
    pub(super) fn sent(&mut self, sent: Sent, parsing: Option<u32>, now_ns: u64) {
        self.parsing = parsing;
        self.current = Some(Current {
            sent,
            began_ns: now_ns,
            failure: None,
            rolled_back: 0,
        });
    }

    /// Takes bytes of the server up to what has to be acted on.
    pub(super) fn receive(&mut self, bytes: &mut &[u8]) -> Result<Told, String> {
        loop {
            let mut scanner = std::mem::take(&mut self.scanner);
            let told = match scanner.next(bytes) {
                Ok(None) => {
                    self.scanner = scanner;
                    return Ok(Told::Nothing);
                }
                Ok(Some(frame)) => self.frame(frame),
                Err(error) => Err(error.to_string()),
            };
            self.scanner = scanner;
            match told? {
                Told::Nothing => {}
                told => return Ok(told),
            }
        }
    }

    fn frame(&mut self, frame: Frame<'_>) -> Result<Told, String> {
        match frame.tag {
            b'Z' => {
                self.in_block = frame.body.first() != Some(&b'I');
                self.has_failed = frame.body.first() == Some(&b'E');
                self.parsing = None;
                return Ok(Told::Ready);
            }
            b'E' => {
                let body = lossless::from_bytes(frame.body);
                self.failed(&ServerError::parse(body.as_bytes()));
            }
            b'1' => {
                if let Some(number) = self.parsing.take() {
                    self.set_prepared(number);
                }
            }
            // The session has no prepared statements any more. The tag says so, whichever statement did it.
            b'C' if matches!(frame.body, b"DEALLOCATE ALL\0" | b"DISCARD ALL\0") => {
                self.prepared.clear();
            }
            b'C' if frame.body == b"ROLLBACK\0" => self.rolled_back(),
            b'G' => {
                return Err(
                    "the statement is a COPY from the client, whose rows are not recorded".into(),
                );
            }
            b'W' => return Err("the statement is a COPY in both directions".into()),
            // Rows, results of COPY ... TO STDOUT, and what a server may say at any time.
            b'2' | b'3' | b'C' | b'D' | b'H' | b'I' | b'N' | b'T' | b'A' | b'S' | b'c' | b'd'
            | b'n' | b's' | b't' => {}
            other => return Err(format!("unexpected message '{}'", other as char)),
        }
        Ok(Told::Nothing)
    }

    /// The server has ended a transaction by a rollback, or gone back to a savepoint. If the statement did not ask for it, it is
    /// one that ends a transaction well, and it did not.
    fn rolled_back(&mut self) {
        if let Some(current) = &mut self.current {
            current.rolled_back += 1;
            if current.rolled_back > current.sent.rollbacks {
                current.failure.get_or_insert_with(Failure::without_commit);
            }
        }
    }

    fn failed(&mut self, error: &ServerError) {
        let is_fatal = error.is_fatal();
        let failure = Failure {
            kind: if is_fatal {
                ErrorKind::ConnectionLost
            } else {
                kind_of(&error.sqlstate)
            },
            sqlstate: (!error.sqlstate.is_empty()).then(|| error.sqlstate.clone()),
            message: without_values(error),
            in_full: None,
        };
        match &mut self.current {
            Some(current) => {
                current.failure.get_or_insert(failure);
            }
            None => self.last_words = Some(failure),
        }
    }

    /// Ends the connection. Returns the statement that it was at, and what the server said at last.
    pub(super) fn close(&mut self) -> (Option<Current>, Option<Failure>) {
        if let Some(mut link) = self.link.take() {
            link.close();
        }
        self.dialing = None;
        self.canceller = None;
        self.scanner = Scanner::new();
        (self.current.take(), self.last_words.take())
    }
}
