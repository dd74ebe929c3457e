//! From the first byte to the first `ReadyForQuery`: startup and authentication.

use postgres_protocol::authentication::{
    md5_hash,
    sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
};
use postgres_protocol::message::frontend;
use thiserror::Error;

use crate::encode::{EncodeError, encode};
use crate::notice::ServerError;
use crate::scan::{Frame, FrameError, Scanner};

/// Who logs in, and where.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// Role.
    pub user: &'a str,
    /// For the methods that ask for one.
    pub password: Option<&'a str>,
    /// Run-time parameters, the database among them: `("database", "postgres")`.
    pub parameters: &'a [(&'a str, &'a str)],
}

/// A login under way. Feed it what the server sends; send what it gives.
pub struct Startup {
    scanner: Scanner,
    user: String,
    password: Option<String>,
    scram: Option<ScramSha256>,
    authenticated: bool,
    process_id: i32,
    secret_key: Vec<u8>,
    parameters: Vec<(String, String)>,
}

/// A session that waits for the first query.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The server process.
    pub process_id: i32,
    /// What a cancel request has to show.
    pub secret_key: Vec<u8>,
    /// What the server reported: `server_version`, `TimeZone`, ...
    pub parameters: Vec<(String, String)>,
    /// Where the stream of frames stands: whatever the server sends next goes on here.
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

/// Why a login failed.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The server said no.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server asks for a password, and there is none.
    #[error("the server asks for a password ({method}), and none was given")]
    NoPassword {
        /// Authentication method.
        method: &'static str,
    },
    /// A method that is not spoken here.
    #[error(
        "the server asks for {0}; known are trust, password, md5 and scram-sha-256 (see pg_hba.conf)"
    )]
    Method(String),
    /// The SCRAM exchange failed on this side: an altered message, or a server that does not know the password.
    #[error("SCRAM authentication failed: {0}")]
    Scram(std::io::Error),
    /// A message out of place.
    #[error("unexpected message '{}' while logging in", *.0 as char)]
    Unexpected(u8),
    /// Bytes that are not the protocol.
    #[error("not a PostgreSQL server? {0}")]
    Frame(#[from] FrameError),
    /// A name or password that cannot be sent.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl Startup {
    /// Begins a login; appends the startup message to `out`.
    ///
    /// # Errors
    /// When a name or a value has a zero byte.
    pub fn new(login: &Login<'_>, out: &mut Vec<u8>) -> Result<Self, StartupError> {
        let parameters = [("user", login.user), ("client_encoding", "UTF8")];
        let parameters = parameters
            .into_iter()
            .chain(login.parameters.iter().copied());
        out.extend_from_slice(&encode("the startup message", |buffer| {
            frontend::startup_message(parameters, buffer)
        })?);
        Ok(Self {
            scanner: Scanner::new(),
            user: login.user.to_owned(),
            password: login.password.map(str::to_owned),
            scram: None,
            authenticated: false,
            process_id: 0,
            secret_key: Vec::new(),
            parameters: Vec::new(),
        })
    }

    /// Takes bytes from the server; appends the answer to `out`. The session, once it is ready.
    ///
    /// # Errors
    /// The login failed; close the connection.
    pub fn receive(
        &mut self,
        mut input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Session>, StartupError> {
        let mut scanner = std::mem::take(&mut self.scanner);
        let mut ready = false;
        while let Some(frame) = scanner.next(&mut input)? {
            ready |= self.frame(frame, out)?;
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
            b'E' => {
                return Err(StartupError::Server(Box::new(ServerError::parse(
                    frame.body,
                ))));
            }
            b'S' => {
                let mut words = frame
                    .body
                    .split(|&byte| byte == 0)
                    .map(String::from_utf8_lossy);
                let name = words.next().unwrap_or_default().into_owned();
                self.parameters
                    .push((name, words.next().unwrap_or_default().into_owned()));
            }
            b'K' => {
                let (process_id, secret_key) = frame.body.split_first_chunk().ok_or(unexpected)?;
                self.process_id = i32::from_be_bytes(*process_id);
                self.secret_key = secret_key.to_vec();
            }
            b'Z' if self.authenticated => return Ok(true),
            b'N' | b'v' => {}
            _ => return Err(unexpected),
        }
        Ok(false)
    }

    fn authenticate(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), StartupError> {
        let (code, data) = body
            .split_first_chunk()
            .ok_or(StartupError::Unexpected(b'R'))?;
        match (i32::from_be_bytes(*code), &mut self.scram) {
            // A server that stops the exchange short has not shown that it knows the password.
            (0, Some(_)) => return Err(StartupError::Unexpected(b'R')),
            (0, None) => self.authenticated = true,
            (3, _) => {
                let password = self.password("password")?.as_bytes();
                out.extend(encode("the password", |buffer| {
                    frontend::password_message(password, buffer)
                })?);
            }
            (5, _) => {
                let salt = data
                    .try_into()
                    .map_err(|_| StartupError::Unexpected(b'R'))?;
                let hash = md5_hash(self.user.as_bytes(), self.password("md5")?.as_bytes(), salt);
                out.extend(encode("the password", |buffer| {
                    frontend::password_message(hash.as_bytes(), buffer)
                })?);
            }
            (10, _) => self.begin_scram(data, out)?,
            (11, Some(scram)) => {
                scram.update(data).map_err(StartupError::Scram)?;
                out.extend(encode("the password proof", |buffer| {
                    frontend::sasl_response(scram.message(), buffer)
                })?);
            }
            (12, Some(scram)) => {
                scram.finish(data).map_err(StartupError::Scram)?;
                self.scram = None;
            }
            (code, _) => return Err(StartupError::Method(method_name(code))),
        }
        Ok(())
    }

    fn begin_scram(&mut self, mechanisms: &[u8], out: &mut Vec<u8>) -> Result<(), StartupError> {
        if !mechanisms
            .split(|&byte| byte == 0)
            .any(|name| name == SCRAM_SHA_256.as_bytes())
        {
            let offered = String::from_utf8_lossy(mechanisms).replace('\0', " ");
            return Err(StartupError::Method(format!(
                "SASL with {}",
                offered.trim()
            )));
        }
        let scram = ScramSha256::new(
            self.password("scram-sha-256")?.as_bytes(),
            ChannelBinding::unsupported(),
        );
        out.extend(encode("the password proof", |buffer| {
            frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), buffer)
        })?);
        self.scram = Some(scram);
        Ok(())
    }

    fn password(&self, method: &'static str) -> Result<&str, StartupError> {
        self.password
            .as_deref()
            .ok_or(StartupError::NoPassword { method })
    }
}

/// Name of an authentication method that is not spoken here.
fn method_name(code: i32) -> String {
    match code {
        2 => "Kerberos V5".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("authentication method {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: Login<'_> = Login {
        user: "u",
        password: Some("secret"),
        parameters: &[("database", "d")],
    };

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        [
            &[tag],
            (body.len() as i32 + 4).to_be_bytes().as_slice(),
            body,
        ]
        .concat()
    }

    fn authentication(code: i32, data: &[u8]) -> Vec<u8> {
        frame(b'R', &[code.to_be_bytes().as_slice(), data].concat())
    }

    fn started(login: &Login<'_>) -> Startup {
        Startup::new(login, &mut Vec::new()).unwrap()
    }

    #[test]
    fn trust_byte_by_byte() {
        let mut startup = started(&Login {
            password: None,
            ..LOGIN
        });
        let bytes = [
            authentication(0, &[]),
            frame(b'S', b"server_version\x0018.6\0"),
            frame(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]),
            frame(b'Z', b"I"),
        ]
        .concat();
        let (last, head) = bytes.split_last().unwrap();
        let mut out = Vec::new();
        for byte in head {
            assert!(startup.receive(&[*byte], &mut out).unwrap().is_none());
        }
        let session = startup.receive(&[*last], &mut out).unwrap().unwrap();
        assert_eq!(session.parameter("server_version"), Some("18.6"));
        assert_eq!(
            (session.process_id, session.secret_key.as_slice()),
            (7, [1, 2, 3, 4].as_slice())
        );
        assert!(out.is_empty());
    }

    #[test]
    fn md5_and_cleartext_answers() {
        let mut out = Vec::new();
        started(&LOGIN)
            .receive(&authentication(3, &[]), &mut out)
            .unwrap();
        assert_eq!(out, frame(b'p', b"secret\0"));
        out.clear();
        started(&LOGIN)
            .receive(&authentication(5, &[1, 2, 3, 4]), &mut out)
            .unwrap();
        let hash = format!("{}\0", md5_hash(b"u", b"secret", [1, 2, 3, 4]));
        assert_eq!(out, frame(b'p', hash.as_bytes()));
    }

    #[test]
    fn failures_are_typed() {
        let no_password = Login {
            password: None,
            ..LOGIN
        };
        let cases: [(&Login<'_>, Vec<u8>, &str); 8] = [
            (
                &LOGIN,
                frame(b'E', b"VFATAL\0C28P01\0Mno\0\0"),
                "FATAL: no (SQLSTATE 28P01)",
            ),
            (
                &no_password,
                authentication(10, b"SCRAM-SHA-256\0\0"),
                "asks for a password (scram-sha-256)",
            ),
            (
                &LOGIN,
                authentication(10, b"OAUTHBEARER\0\0"),
                "SASL with OAUTHBEARER",
            ),
            (&LOGIN, authentication(7, &[]), "asks for GSSAPI"),
            (&LOGIN, frame(b'Z', b"I"), "unexpected message 'Z'"),
            (&LOGIN, frame(b'D', b""), "unexpected message 'D'"),
            (&LOGIN, frame(b'R', b"\0"), "unexpected message 'R'"),
            (
                &LOGIN,
                b"HTTP/1.1 400 Bad Request".to_vec(),
                "not a PostgreSQL server?",
            ),
        ];
        for (login, bytes, message) in cases {
            let error = started(login)
                .receive(&bytes, &mut Vec::new())
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(message),
                "{error:?} does not contain {message:?}"
            );
        }
    }

    #[test]
    fn a_server_that_cuts_scram_short_is_not_believed() {
        let mut startup = started(&LOGIN);
        startup
            .receive(&authentication(10, b"SCRAM-SHA-256\0\0"), &mut Vec::new())
            .unwrap();
        let error = startup
            .receive(&authentication(0, &[]), &mut Vec::new())
            .unwrap_err();
        assert!(matches!(error, StartupError::Unexpected(b'R')));
    }
}
