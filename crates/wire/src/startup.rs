//! From the first byte to the first `ReadyForQuery`: startup and authentication.

use std::sync::Arc;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::message::frontend;
use thiserror::Error;

use crate::encode::{EncodeError, encode};
use crate::methods::{Method, Methods};
use crate::notice::ServerError;
use crate::scan::{Frame, FrameError, Scanner};
use crate::scram::{Binding, SCRAM_SHA_256_PLUS, SaltedPasswords, Scram, ScramError};

/// `SSLRequest`: asks whether the server supports encryption; it answers with one byte, `S` or `N`.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// A limit for the number of reported parameters, well above what servers have.
const MOST_PARAMETERS: usize = 1000;

/// Lengths of an `ErrorResponse`. Any other is the beginning of an error in plain text, which servers before protocol 3
/// send, and a postmaster that cannot fork. The limits are libpq's.
const LENGTHS_OF_ERRORS: std::ops::RangeInclusive<i32> = 8..=30_000;

/// Maximum length that is read of such a text.
const LONGEST_TEXT_BYTES: usize = 8192;

/// The parameters of a login.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// Role.
    pub user: &'a str,
    /// The password, for the methods that need one.
    pub password: Option<&'a str>,
    /// Run-time parameters, the database among them: `("database", "postgres")`.
    pub parameters: &'a [(&'a str, &'a str)],
    /// The allowed authentication methods.
    pub methods: Methods,
    /// Whether SCRAM uses channel binding.
    pub channel_binding: ChannelBinding,
    /// The encryption of the connection.
    pub encryption: Encryption<'a>,
}

/// libpq's `channel_binding`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server offers it.
    #[default]
    Prefer,
    /// Without it, the login fails.
    Require,
}

/// The encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption<'a> {
    /// A plain connection.
    None,
    /// TLS, with the hash of the server's certificate (`tls-server-end-point`, RFC 5929), if its signature algorithm
    /// has one.
    Tls(Option<&'a [u8]>),
}

/// A login in progress. It takes the bytes that the server sends, and returns those to send.
pub struct Startup {
    scanner: Scanner,
    /// The server's first bytes, until there are enough to tell whether they begin a message.
    opening: Option<Vec<u8>>,
    user: String,
    password: Option<String>,
    methods: Methods,
    channel_binding: ChannelBinding,
    /// See [`Encryption`].
    is_encrypted: bool,
    certificate_hash: Option<Vec<u8>>,
    salted: Arc<SaltedPasswords>,
    scram: Option<Scram>,
    /// The method that the server has asked for, if it has.
    asked: Method,
    /// SCRAM with channel binding has succeeded.
    is_bound: bool,
    authenticated: bool,
    process_id: i32,
    secret_key: Vec<u8>,
    parameters: Vec<(String, String)>,
}

/// A session that is ready for the first query.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The process ID of the server process.
    pub process_id: i32,
    /// The secret key for cancel requests.
    pub secret_key: Vec<u8>,
    /// The reported parameters: `server_version`, `TimeZone`, ...
    pub parameters: Vec<(String, String)>,
    /// The scanner of the connection, with its state: it takes what the server sends next.
    pub scanner: Scanner,
}

impl Session {
    /// A reported parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The reason why a login failed.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The server refused the login.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server asks for a password, and none was given.
    #[error("the server asks for a password ({method}), and none was given")]
    NoPassword {
        /// Authentication method.
        method: Method,
    },
    /// A method that is not supported here.
    #[error(
        "the server asks for {0}; known are trust, password, md5, scram-sha-256 and cert (see pg_hba.conf)"
    )]
    Method(String),
    /// A method that `require_auth` rules out.
    #[error("require_auth allows {allowed}, and the server asks for {asked}")]
    NotAllowed {
        /// The method that the server asked for.
        asked: Method,
        /// The allowed methods.
        allowed: Methods,
    },
    /// `channel_binding=require`, and channel binding is not possible.
    #[error("channel_binding=require, and {0}")]
    NoChannelBinding(&'static str),
    /// The server's certificate has no hash for channel binding.
    #[error(
        "the server's certificate is signed by an algorithm without a hash of its own, to which nothing can be bound; \
         use channel_binding=disable"
    )]
    NoCertificateHash,
    /// The client rejected the SCRAM exchange: an altered message, or a server that does not know the password.
    #[error("SCRAM authentication failed: {0}")]
    Scram(#[from] ScramError),
    /// An unexpected message.
    #[error("unexpected message '{}' while logging in", .0.escape_ascii())]
    Unexpected(u8),
    /// The server asks for another version of the protocol.
    #[error("the server does not speak protocol 3.0 as it was asked to, but 3.{minor}{}", unknown(*.options))]
    Protocol {
        /// Newest minor version that the server supports.
        minor: i32,
        /// Number of protocol options that it does not know; none were requested.
        options: i32,
    },
    /// The server sends more than a login can need.
    #[error("the server reports more than {MOST_PARAMETERS} parameters")]
    TooMuch,
    /// Bytes that do not follow the protocol.
    #[error("not a PostgreSQL server? {0}")]
    Frame(#[from] FrameError),
    /// A name or password that cannot be sent.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

fn unknown(options: i32) -> String {
    match options {
        0 => String::new(),
        count => format!(", and knows {count} options not"),
    }
}

impl std::fmt::Debug for Startup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Startup");
        shown.field("user", &self.user);
        shown.field("authenticated", &self.authenticated);
        shown.finish_non_exhaustive()
    }
}

impl Startup {
    /// Begins a login; appends the startup message to `out`. `salted` is shared by the logins of a role.
    ///
    /// # Errors
    /// When a name or a value contains a zero byte; when channel binding is required and there is no encryption.
    pub fn new(
        login: &Login<'_>,
        salted: &Arc<SaltedPasswords>,
        out: &mut Vec<u8>,
    ) -> Result<Self, StartupError> {
        let (is_encrypted, certificate_hash) = match login.encryption {
            Encryption::None => (false, None),
            Encryption::Tls(hash) => (true, hash.map(<[u8]>::to_vec)),
        };
        let user = [("user", login.user)].into_iter();
        let parameters = user.chain(login.parameters.iter().copied());
        out.extend_from_slice(&encode("the startup message", |buffer| {
            frontend::startup_message(parameters, buffer)
        })?);
        Ok(Self {
            scanner: Scanner::new(),
            opening: Some(Vec::new()),
            user: login.user.to_owned(),
            password: login.password.map(str::to_owned),
            methods: login.methods,
            channel_binding: login.channel_binding,
            is_encrypted,
            certificate_hash,
            salted: Arc::clone(salted),
            scram: None,
            asked: Method::None,
            is_bound: false,
            authenticated: false,
            process_id: 0,
            secret_key: Vec::new(),
            parameters: Vec::new(),
        })
    }

    /// Whether the server has accepted the authentication: later errors have nothing to do with the method or
    /// encryption.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Takes bytes from the server and appends the answer to `out`. Returns the session once it is ready.
    ///
    /// # Errors
    /// The login failed; close the connection.
    pub fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Session>, StartupError> {
        let Some(mut opening) = self.opening.take() else {
            return self.frames(input, out);
        };
        opening.extend_from_slice(input);
        if opening.len() < 5 || is_cut_text(&opening) {
            self.opening = Some(opening);
            return Ok(None);
        }
        refuse_plain_text(&opening)?;
        self.frames(&opening, out)
    }

    fn frames(
        &mut self,
        mut input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Session>, StartupError> {
        let mut scanner = std::mem::take(&mut self.scanner);
        let mut ready = false;
        while let Some(frame) = scanner.next(&mut input)? {
            match frame.tag {
                // Messages that a server may send between two queries.
                b'N' | b'S' | b'A' if ready => {}
                b'E' => return Err(refusal(frame.body)),
                tag if ready => return Err(StartupError::Unexpected(tag)),
                _ => ready = self.frame(frame, out)?,
            }
        }
        if !ready {
            self.scanner = scanner;
            return Ok(None);
        }
        Ok(Some(Session {
            process_id: self.process_id,
            secret_key: std::mem::take(&mut self.secret_key),
            parameters: std::mem::take(&mut self.parameters),
            scanner,
        }))
    }

    /// Whether the frame is the `ReadyForQuery` of a finished login.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Result<bool, StartupError> {
        let unexpected = StartupError::Unexpected(frame.tag);
        match frame.tag {
            b'R' => self.authenticate(frame.body, out)?,
            b'S' => self.report(frame.body)?,
            b'K' => {
                let (process_id, secret_key) = frame.body.split_first_chunk().ok_or(unexpected)?;
                self.process_id = i32::from_be_bytes(*process_id);
                self.secret_key = secret_key.to_vec();
            }
            b'v' => {
                let (minor, rest) = frame.body.split_first_chunk().ok_or(unexpected)?;
                let options = rest
                    .first_chunk()
                    .ok_or(StartupError::Unexpected(frame.tag))?;
                return Err(StartupError::Protocol {
                    minor: i32::from_be_bytes(*minor) & 0xffff,
                    options: i32::from_be_bytes(*options),
                });
            }
            b'Z' if self.authenticated => return Ok(true),
            b'N' => {}
            _ => return Err(unexpected),
        }
        Ok(false)
    }

    /// `ParameterStatus`.
    fn report(&mut self, body: &[u8]) -> Result<(), StartupError> {
        let mut words = body
            .split(|&byte| byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned());
        let name = words.next().unwrap_or_default();
        let value = words.next().unwrap_or_default();
        self.parameters.retain(|(known, _)| *known != name);
        if self.parameters.len() == MOST_PARAMETERS {
            return Err(StartupError::TooMuch);
        }
        self.parameters.push((name, value));
        Ok(())
    }

    fn authenticate(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), StartupError> {
        let out_of_place = || StartupError::Unexpected(b'R');
        let (code, data) = body.split_first_chunk().ok_or_else(out_of_place)?;
        match (i32::from_be_bytes(*code), &mut self.scram) {
            (0, None) if !self.authenticated => self.let_in()?,
            (3, None) => {
                let password = self.password(Method::Password)?;
                out.extend(password_message(password.as_bytes())?);
            }
            (5, None) => {
                let salt = data.try_into().map_err(|_| out_of_place())?;
                let user = self.user.clone();
                let password = self.password(Method::Md5)?.as_bytes();
                let hash = md5_hash(user.as_bytes(), password, salt);
                out.extend(password_message(hash.as_bytes())?);
            }
            (10, None) => self.begin_scram(data, out)?,
            (11, Some(scram)) => {
                let proof = scram.last(data, &self.salted)?;
                out.extend(encode("the password proof", |buffer| {
                    frontend::sasl_response(proof.as_bytes(), buffer)
                })?);
            }
            (12, Some(scram)) => {
                scram.finish(data)?;
                self.is_bound = scram.binds_channel();
                self.scram = None;
            }
            (code @ (2 | 7..=9), None) => {
                let (name, method) = match code {
                    2 => ("Kerberos V5", Method::Gss),
                    9 => ("SSPI", Method::Sspi),
                    _ => ("GSSAPI", Method::Gss),
                };
                self.allow(method)?;
                return Err(StartupError::Method(name.to_owned()));
            }
            // A server that ends the exchange early has not proved that it knows the password.
            (_, Some(_)) | (0 | 11 | 12, None) => return Err(out_of_place()),
            (code, None) => {
                let name = format!("authentication method {code}");
                return Err(StartupError::Method(name));
            }
        }
        Ok(())
    }

    /// `AuthenticationOk`.
    fn let_in(&mut self) -> Result<(), StartupError> {
        if self.asked == Method::None {
            self.allow(Method::None)?;
        }
        if self.channel_binding == ChannelBinding::Require && !self.is_bound {
            let reason = if self.is_encrypted {
                "the server let us in without it"
            } else {
                "the connection is not encrypted"
            };
            return Err(StartupError::NoChannelBinding(reason));
        }
        self.authenticated = true;
        Ok(())
    }

    fn begin_scram(&mut self, mechanisms: &[u8], out: &mut Vec<u8>) -> Result<(), StartupError> {
        let offers = |wanted: &str| {
            let mut names = mechanisms.split(|&byte| byte == 0);
            names.any(|name| name == wanted.as_bytes())
        };
        let wants_binding = self.is_encrypted && self.channel_binding != ChannelBinding::Disable;
        let offers_binding = offers(SCRAM_SHA_256_PLUS);
        if offers_binding && !self.is_encrypted {
            let name = "SCRAM-SHA-256-PLUS on a connection that is not encrypted";
            return Err(StartupError::Method(name.to_owned()));
        }
        let binding = match (wants_binding, offers_binding) {
            (true, true) => {
                let hash = self.certificate_hash.clone();
                Binding::ServerEndPoint(hash.ok_or(StartupError::NoCertificateHash)?)
            }
            (true, false) => Binding::NotOffered,
            (false, _) => Binding::None,
        };
        if !offers(binding.mechanism()) {
            if offers("OAUTHBEARER") {
                self.allow(Method::Oauth)?;
            }
            let offered = String::from_utf8_lossy(mechanisms).replace('\0', " ");
            return Err(StartupError::Method(format!(
                "SASL with {}",
                offered.trim()
            )));
        }
        let password = self.password(Method::ScramSha256)?;
        let scram = Scram::new(password, binding)?;
        out.extend(encode("the password proof", |buffer| {
            frontend::sasl_initial_response(scram.mechanism(), scram.first().as_bytes(), buffer)
        })?);
        self.scram = Some(scram);
        Ok(())
    }

    fn allow(&self, asked: Method) -> Result<(), StartupError> {
        if self.methods.allows(asked) {
            return Ok(());
        }
        let allowed = self.methods;
        Err(StartupError::NotAllowed { asked, allowed })
    }

    /// The password, if the method that the server asks for is allowed.
    fn password(&mut self, method: Method) -> Result<&str, StartupError> {
        self.allow(method)?;
        if self.channel_binding == ChannelBinding::Require && method != Method::ScramSha256 {
            let reason = "the server asks for the password in another way";
            return Err(StartupError::NoChannelBinding(reason));
        }
        self.asked = method;
        self.password
            .as_deref()
            .ok_or(StartupError::NoPassword { method })
    }
}

/// `ErrorResponse`.
fn refusal(body: &[u8]) -> StartupError {
    StartupError::Server(Box::new(ServerError::parse(body)))
}

fn password_message(password: &[u8]) -> Result<Vec<u8>, EncodeError> {
    encode("the password", |buffer| {
        frontend::password_message(password, buffer)
    })
}

/// Whether the server's first bytes begin an error in plain text.
fn is_plain_text(opening: &[u8]) -> bool {
    let [b'E', length @ ..] = opening else {
        return false;
    };
    let length = length.first_chunk().map(|word| i32::from_be_bytes(*word));
    length.is_some_and(|length| !LENGTHS_OF_ERRORS.contains(&length))
}

/// The text of such an error, up to a zero byte or a newline.
fn plain_text(opening: &[u8]) -> &[u8] {
    let end = opening.iter().position(|byte| matches!(byte, 0 | b'\n'));
    &opening[1..end.unwrap_or(opening.len()).min(LONGEST_TEXT_BYTES)]
}

fn is_cut_text(opening: &[u8]) -> bool {
    is_plain_text(opening) && plain_text(opening).len() + 1 == opening.len()
}

/// An error in plain text as a [`ServerError`].
fn refuse_plain_text(opening: &[u8]) -> Result<(), StartupError> {
    if !is_plain_text(opening) {
        return Ok(());
    }
    Err(StartupError::Server(Box::new(ServerError {
        severity: "FATAL".to_owned(),
        message: String::from_utf8_lossy(plain_text(opening)).into_owned(),
        ..ServerError::default()
    })))
}

#[cfg(test)]
mod tests;
