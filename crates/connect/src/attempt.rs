//! Opens one connection to one address: socket, login, and check of the session.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plinth_wire::{Encryption, Login, SSL_REQUEST, Session, Startup, StartupError};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::address::Address;
use crate::check::{Check, CheckError};
use crate::dialer::Dialer;
use crate::error::ConnectError;
use crate::secret::Secret;
use crate::socket;
use crate::stream::Stream;
use crate::target::SessionAttrs;
use crate::tls::{Negotiation, TlsError};

/// How long to wait before a Unix socket is tried again whose queue of connections is full: there is no event for
/// when it has room again.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(2);

/// The size of a read: larger than any reply during a login.
const READ_BYTES: usize = 8192;

/// A connection under way.
#[derive(Debug)]
pub(crate) struct Attempt {
    host: usize,
    address: Address,
    stream: Stream,
    stage: Stage,
    deadline: Option<Instant>,
    /// When a full queue is tried again.
    again_at: Option<Instant>,
    policy: ConnectPolicy,
}

/// The kind of session that an attempt has to open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectPolicy {
    pub(crate) session: SessionAttrs,
    pub(crate) encrypted: bool,
    /// Whether a session without encryption is accepted if the server offers none.
    pub(crate) or_plain: bool,
}

#[derive(Debug)]
enum Stage {
    /// The socket is not connected yet.
    Connecting,
    /// The server was asked whether it can encrypt.
    Asking,
    ShakingHands,
    LoggingIn(Box<Startup>),
    /// Logged in; the server is asked what kind of session it is.
    Checking(Box<Check>),
}

/// The outcome of one step.
#[derive(Debug)]
pub(crate) enum Step {
    /// To the next one.
    On,
    /// Nowhere before the socket is ready.
    Wait,
    Opened(Session),
}

/// The reason why there is no session at this address, and where to continue.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: ConnectError,
    pub(crate) then: Then,
}

/// The action of libpq after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Tries the same address with encryption, or without, whichever it has not tried; else gives up.
    OtherEncryption,
    NextAddress,
    NextHost,
    GiveUp,
}

impl Attempt {
    /// Makes the socket. Connecting begins with the first step.
    pub(crate) fn begin(
        dialer: &Dialer,
        host: usize,
        address: Address,
        policy: ConnectPolicy,
        deadline: Option<Instant>,
    ) -> Result<Self, ConnectError> {
        let socket = socket::prepare(&address, &dialer.target.tcp).map_err(|errno| {
            ConnectError::Refused {
                address: address.clone(),
                source: errno.into(),
            }
        })?;
        Ok(Self {
            host,
            address,
            stream: Stream::new(socket),
            stage: Stage::Connecting,
            deadline,
            again_at: None,
            policy,
        })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    pub(crate) fn waits_to_send(&self) -> bool {
        let connecting = matches!(self.stage, Stage::Connecting) && self.again_at.is_none();
        connecting || self.stream.has_unsent()
    }

    /// When to continue even if the socket is not ready.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.again_at.into_iter().chain(self.deadline).min()
    }

    /// Whether it is to be encrypted, after what the server said about it.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.policy.encrypted
    }

    pub(crate) fn into_parts(self) -> (Address, Stream) {
        (self.address, self.stream)
    }

    /// Advances until it has to wait.
    pub(crate) fn advance(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        loop {
            let step = match &self.stage {
                Stage::Connecting => self.connect(dialer),
                Stage::Asking => self.receive_tls_reply(dialer),
                Stage::ShakingHands => self.shake_hands(dialer),
                Stage::LoggingIn(_) => self.log_in(),
                Stage::Checking(_) => self.check(),
            }?;
            match step {
                Step::On => {}
                Step::Wait if self.deadline.is_some_and(|at| at <= Instant::now()) => {
                    let timeout = dialer.timeout.unwrap_or_default();
                    let address = self.address.clone();
                    let error = ConnectError::Timeout { address, timeout };
                    return Err(failed(error, Then::NextAddress));
                }
                step => return Ok(step),
            }
        }
    }

    fn connect(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        if self.again_at.is_some_and(|at| at > Instant::now()) {
            return Ok(Step::Wait);
        }
        self.again_at = None;
        match socket::connect(self.socket(), &self.address) {
            Ok(()) => self.connected(dialer),
            Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Ok(Step::Wait),
            Err(Errno::AGAIN) => {
                self.again_at = Some(Instant::now() + FULL_QUEUE_PAUSE);
                Ok(Step::Wait)
            }
            Err(errno) => {
                let (address, source) = (self.address.clone(), errno.into());
                Err(failed(
                    ConnectError::Refused { address, source },
                    Then::NextAddress,
                ))
            }
        }
    }

    fn connected(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        self.check_peer(dialer)?;
        match (self.policy.encrypted, dialer.target.tls.sslnegotiation) {
            (false, _) => self.begin_login(dialer),
            (true, Negotiation::Direct) => self.begin_tls(dialer),
            (true, Negotiation::Postgres) => {
                self.send(&SSL_REQUEST)?;
                self.stage = Stage::Asking;
                Ok(Step::On)
            }
        }
    }

    /// Whether the server at a Unix socket runs as who it should.
    fn check_peer(&self, dialer: &Dialer) -> Result<(), Failed> {
        let (Some(wanted), Address::Unix(_)) = (dialer.target.requirepeer_uid, &self.address)
        else {
            return Ok(());
        };
        let peer = sockopt::socket_peercred(self.socket());
        let found = peer.map_err(|errno| self.lost(errno.into()))?.uid.as_raw();
        if found == wanted {
            return Ok(());
        }
        let address = self.address.clone();
        let error = ConnectError::Peer {
            address,
            wanted,
            found,
        };
        Err(failed(error, Then::GiveUp))
    }

    fn receive_tls_reply(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        // One byte, and no more: further bytes were injected before the encryption began (CVE-2021-23222).
        let mut answer = [0];
        let Some(_) = self.receive(&mut answer)? else {
            return Ok(Step::Wait);
        };
        match answer {
            [b'S'] => self.begin_tls(dialer),
            [b'N'] if self.policy.or_plain => {
                self.policy.encrypted = false;
                self.begin_login(dialer)
            }
            [b'N'] => {
                let sslmode = dialer.target.tls.sslmode.name();
                Err(self.tls_failed(TlsError::Unwilling { sslmode }))
            }
            // An error in plain text: the server could not even make a process for us.
            [b'E'] => Err(self.tls_failed(TlsError::Answer(b'E'))),
            [other] => {
                let mut failed = self.tls_failed(TlsError::Answer(other));
                failed.then = Then::GiveUp;
                Err(failed)
            }
        }
    }

    fn begin_tls(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        let begun = dialer.tls(self.host).and_then(|client| Ok(client.begin()?));
        let session = begun.map_err(|error| self.tls_failed(error))?;
        self.stream.encrypt(session);
        self.stage = Stage::ShakingHands;
        Ok(Step::On)
    }

    fn shake_hands(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        let Some((tls, socket)) = self.stream.tls() else {
            return Ok(Step::On);
        };
        let shaken = tls.shake_hands(socket).map_err(Arc::new);
        let outcome = shaken.and_then(|is_done| {
            if is_done {
                dialer.tls(self.host)?.check_alpn(tls)?;
            }
            Ok(is_done)
        });
        match outcome.map_err(|error| self.tls_failed(error))? {
            true => self.begin_login(dialer),
            false => Ok(Step::Wait),
        }
    }

    fn begin_login(&mut self, dialer: &Dialer) -> Result<Step, Failed> {
        let target = &dialer.target;
        let certificate_hash = self
            .stream
            .tls()
            .and_then(|(tls, _)| tls.certificate_hash());
        let login = Login {
            user: &target.user,
            password: dialer.hosts[self.host]
                .password
                .as_ref()
                .map(Secret::reveal),
            parameters: &target.parameters(),
            methods: dialer.methods,
            channel_binding: target.channel_binding.into(),
            encryption: match self.policy.encrypted {
                true => Encryption::Tls(certificate_hash.as_deref()),
                false => Encryption::None,
            },
        };
        let mut out = Vec::new();
        let startup = Startup::new(&login, &dialer.salted, &mut out)
            .map_err(|error| self.login_failed(error, Then::GiveUp))?;
        self.send(&out)?;
        self.stage = Stage::LoggingIn(Box::new(startup));
        Ok(Step::On)
    }

    fn log_in(&mut self) -> Result<Step, Failed> {
        let mut buffer = [0; READ_BYTES];
        let Some(received) = self.receive(&mut buffer)? else {
            return Ok(Step::Wait);
        };
        let Stage::LoggingIn(startup) = &mut self.stage else {
            return Ok(Step::On);
        };
        let mut out = Vec::new();
        let session = startup.receive(&buffer[..received], &mut out);
        let then = match startup.is_authenticated() {
            true => Then::GiveUp,
            false => Then::OtherEncryption,
        };
        // The last bytes may report why it failed: they are sent before the connection is closed.
        self.send(&out)?;
        match session.map_err(|error| self.login_failed(error, then))? {
            None => Ok(Step::On),
            Some(session) => self.logged_in(session),
        }
    }

    fn logged_in(&mut self, session: Session) -> Result<Step, Failed> {
        let mut out = Vec::new();
        let check = Check::new(self.policy.session, session, &mut out);
        self.send(&out)?;
        self.stage = Stage::Checking(Box::new(check));
        self.conclude()
    }

    fn check(&mut self) -> Result<Step, Failed> {
        let mut buffer = [0; READ_BYTES];
        let Some(received) = self.receive(&mut buffer)? else {
            return Ok(Step::Wait);
        };
        if let Stage::Checking(check) = &mut self.stage {
            check.receive(&buffer[..received]);
        }
        self.conclude()
    }

    /// The session, when it is one that will do.
    fn conclude(&mut self) -> Result<Step, Failed> {
        let Stage::Checking(check) = &mut self.stage else {
            return Ok(Step::On);
        };
        let error = match check.conclude() {
            Ok(Some(session)) => return Ok(Step::Opened(session)),
            Ok(None) => return Ok(Step::On),
            Err(error) => error,
        };
        let address = self.address.clone();
        self.stream.close();
        Err(match error {
            CheckError::Otherwise(found) => failed(
                ConnectError::SessionAttrs { address, found },
                Then::NextHost,
            ),
            CheckError::Broken(source) => {
                failed(ConnectError::Login { address, source }, Then::GiveUp)
            }
        })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        let sent = self.stream.send(bytes);
        sent.map(|_| ()).map_err(|source| self.lost(source))
    }

    /// The number of bytes received; `None` if there are none yet.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failed> {
        let flushed = self.stream.flush();
        match flushed.and_then(|_| self.stream.receive(buffer)) {
            Ok(0) => Err(self.lost(Errno::CONNRESET.into())),
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn lost(&self, source: io::Error) -> Failed {
        let address = self.address.clone();
        failed(ConnectError::Lost { address, source }, Then::GiveUp)
    }

    fn tls_failed(&self, error: impl Into<Arc<TlsError>>) -> Failed {
        let (address, source) = (self.address.clone(), error.into());
        failed(ConnectError::Tls { address, source }, Then::OtherEncryption)
    }

    /// A server that takes no connections now is passed over, as libpq does. One that says no otherwise may say yes to
    /// another encryption (`then`); what failed on our side would fail again.
    fn login_failed(&self, source: StartupError, then: Then) -> Failed {
        let then = match &source {
            StartupError::Server(error) if error.sqlstate == "57P03" => Then::NextHost,
            StartupError::Server(_) => then,
            _ => Then::GiveUp,
        };
        let address = self.address.clone();
        failed(ConnectError::Login { address, source }, then)
    }
}

fn failed(error: ConnectError, then: Then) -> Failed {
    Failed { error, then }
}
