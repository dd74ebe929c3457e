//! Opening a session: which host, address and encryption to try next, by libpq's rules.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use plinth_wire::Session;

use crate::address::Address;
use crate::attempt::{Attempt, ConnectPolicy, Failed, Step, Then};
use crate::cancel::Canceller;
use crate::dialer::{Candidate, Dialer};
use crate::error::ConnectError;
use crate::stream::Stream;
use crate::target::SessionAttrs;

/// A session, and the connection it runs on.
#[derive(Debug)]
pub struct Opened {
    /// Does not block; `TCP_NODELAY` and keepalives as libpq sets them.
    pub stream: Stream,
    /// The result of the login.
    pub session: Session,
    /// The address of the connection.
    pub address: Address,
}

impl Opened {
    /// The key that cancels this session's statements.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller::new(self.address.clone(), &self.session)
    }
}

/// The state of an [`Opening`].
#[derive(Debug)]
pub enum Progress {
    /// The opening waits: see [`Opening::socket`] and [`Opening::wake_at`].
    Waiting,
    /// The opening has finished, and must not be polled again.
    Opened(Box<Opened>),
}

/// A session being opened. It never blocks: the caller calls [`Opening::advance`] at first, whenever its socket
/// is ready, and at the time of [`Opening::wake_at`].
#[derive(Debug)]
pub struct Opening {
    dialer: Arc<Dialer>,
    /// Candidates, and how many of them have been tried.
    order: Vec<usize>,
    tried: usize,
    /// Host of the last one tried.
    host: usize,
    /// How many encryptions of it.
    encryptions_tried: usize,
    /// Until when that address may take.
    deadline: Option<Instant>,
    attempt: Option<Attempt>,
    sockets: usize,
    /// The required session; `prefer-standby` accepts any session if no host is a standby.
    wanted: SessionAttrs,
    failures: Vec<ConnectError>,
}

impl Opening {
    /// Nothing happens before the first [`Opening::advance`].
    #[must_use]
    pub fn new(dialer: &Arc<Dialer>) -> Self {
        Self {
            order: order(dialer),
            tried: 0,
            host: 0,
            encryptions_tried: 0,
            deadline: None,
            wanted: dialer.target.target_session_attrs,
            dialer: Arc::clone(dialer),
            attempt: None,
            sockets: 0,
            failures: Vec::new(),
        }
    }

    /// Goes on as far as it can without waiting.
    ///
    /// # Errors
    /// There is no session to be had. The opening is over.
    pub fn advance(&mut self) -> Result<Progress, ConnectError> {
        loop {
            let Some(attempt) = &mut self.attempt else {
                self.begin_attempt()?;
                continue;
            };
            match attempt.advance(&self.dialer) {
                Ok(Step::On) => {}
                Ok(Step::Wait) => return Ok(Progress::Waiting),
                Ok(Step::Opened(session)) => return Ok(Progress::Opened(self.opened(session)?)),
                Err(failed) => self.after(failed)?,
            }
        }
    }

    /// The socket to watch. It changes after an attempt that failed: see [`Opening::sockets`].
    #[must_use]
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.attempt.as_ref().map(Attempt::socket)
    }

    /// The number of sockets so far: distinguishes one from the next, which may have the same descriptor.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.sockets
    }

    /// Whether it waits for the socket to take something, and not only for something to read.
    #[must_use]
    pub fn waits_to_send(&self) -> bool {
        self.attempt.as_ref().is_some_and(Attempt::waits_to_send)
    }

    /// When to continue even if the socket is not ready; `None` without a timeout.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.attempt.as_ref().and_then(Attempt::wake_at)
    }

    fn opened(&mut self, session: Session) -> Result<Box<Opened>, ConnectError> {
        let attempt = self.attempt.take().ok_or_else(|| self.nothing_left())?;
        let (address, stream) = attempt.into_parts();
        Ok(Box::new(Opened {
            stream,
            session,
            address,
        }))
    }

    /// Begins the next attempt that can be begun.
    fn begin_attempt(&mut self) -> Result<(), ConnectError> {
        while let Some(candidate) = self.next_candidate() {
            self.encryptions_tried = 0;
            self.deadline = self.dialer.timeout.map(|timeout| Instant::now() + timeout);
            match self.attempt(candidate) {
                Ok(attempt) => {
                    self.attempt = Some(attempt);
                    return Ok(());
                }
                Err(error) => self.failures.push(error),
            }
        }
        Err(self.nothing_left())
    }

    fn attempt(&mut self, candidate: usize) -> Result<Attempt, ConnectError> {
        let Candidate { host, address } = &self.dialer.candidates[candidate];
        self.host = *host;
        self.sockets += 1;
        let address = address
            .as_ref()
            .map_err(|(kind, message)| ConnectError::Resolve {
                host: self.dialer.hosts[*host].host.clone(),
                source: io::Error::new(*kind, message.clone()),
            })?;
        let encryptions = self.dialer.encryptions(address);
        let policy = ConnectPolicy {
            session: self.wanted,
            encrypted: encryptions[self.encryptions_tried],
            or_plain: encryptions[self.encryptions_tried..].contains(&false),
        };
        self.encryptions_tried += 1;
        Attempt::begin(&self.dialer, *host, address.clone(), policy, self.deadline)
    }

    fn next_candidate(&mut self) -> Option<usize> {
        if self.tried == self.dialer.candidates.len() && self.wanted == SessionAttrs::PreferStandby
        {
            // No standby anywhere: now any session will do.
            self.wanted = SessionAttrs::Any;
            self.tried = 0;
        }
        let candidate = *self.order.get(self.tried)?;
        self.tried += 1;
        Some(candidate)
    }

    fn after(&mut self, failed: Failed) -> Result<(), ConnectError> {
        let tried_plain = self
            .attempt
            .take()
            .is_some_and(|attempt| !attempt.is_encrypted());
        self.failures.push(failed.error);
        match failed.then {
            Then::NextAddress => Ok(()),
            Then::NextHost => {
                let candidates = &self.dialer.candidates;
                let same = |&&candidate: &&usize| candidates[candidate].host == self.host;
                self.tried += self.order[self.tried..].iter().take_while(same).count();
                Ok(())
            }
            Then::OtherEncryption => self.encrypt_otherwise(tried_plain),
            Then::GiveUp => Err(self.nothing_left()),
        }
    }

    fn encrypt_otherwise(&mut self, tried_plain: bool) -> Result<(), ConnectError> {
        let candidate = self.order[self.tried - 1];
        let address = self.dialer.candidates[candidate].address.as_ref();
        let left = address.map_or(&[][..], |address| {
            &self.dialer.encryptions(address)[self.encryptions_tried..]
        });
        match left {
            [] => Err(self.nothing_left()),
            // The server had no encryption, and was tried without.
            [false, ..] if tried_plain => Err(self.nothing_left()),
            _ => match self.attempt(candidate) {
                Ok(attempt) => {
                    self.attempt = Some(attempt);
                    Ok(())
                }
                Err(error) => {
                    self.failures.push(error);
                    Err(self.nothing_left())
                }
            },
        }
    }

    /// All that went wrong, as one error.
    fn nothing_left(&mut self) -> ConnectError {
        ConnectError::of(std::mem::take(&mut self.failures))
    }
}

/// Numbers of the candidates in the order to try them: as they are, or hosts at random, and at random the addresses
/// of each.
fn order(dialer: &Dialer) -> Vec<usize> {
    let mut order: Vec<usize> = (0..dialer.candidates.len()).collect();
    if dialer.target.load_balance_hosts {
        let mut hosts: Vec<usize> = (0..dialer.hosts.len()).collect();
        fastrand::shuffle(&mut hosts);
        fastrand::shuffle(&mut order);
        order.sort_by_key(|&candidate| hosts[dialer.candidates[candidate].host]);
    }
    order
}
