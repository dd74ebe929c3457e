//! The reasons why there is no session.

use std::io;
use std::net::AddrParseError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plinth_wire::StartupError;
use thiserror::Error;

use crate::address::Address;
use crate::tls::TlsError;

/// A session that could not be opened.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The path of the Unix socket is longer than the system allows.
    #[error("socket path {} has {bytes} bytes, at most {longest} are allowed; use a shorter socket directory", path.display())]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        longest: usize,
    },
    /// `hostaddr` is no numeric address.
    #[error(
        "hostaddr {hostaddr:?}: {source}; give an address as 127.0.0.1 or ::1, and a name as host"
    )]
    NumericAddress {
        /// The given value.
        hostaddr: String,
        /// The reason why it is invalid.
        source: AddrParseError,
    },
    /// The host name is unknown.
    #[error("cannot find host {host:?}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error(
        "cannot connect to {address}: {source}; is the server running, and does it listen there?"
    )]
    Refused {
        /// The address tried.
        address: Address,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Connected or not, the session did not come in time.
    #[error("no session at {address} within {} s; does the server hang?", timeout.as_secs_f64())]
    Timeout {
        /// The address.
        address: Address,
        /// The timeout that expired.
        timeout: Duration,
    },
    /// The connection ended while logging in.
    #[error("{address} ended the connection while logging in: {source}")]
    Lost {
        /// The address.
        address: Address,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The connection could not be encrypted.
    #[error("cannot encrypt the connection with {address}: {source}")]
    Tls {
        /// The address.
        address: Address,
        /// What was wrong.
        source: Arc<TlsError>,
    },
    /// The server at a Unix socket belongs to another user.
    #[error("the server at {address} runs as user {found}, and requirepeer asks for {wanted}")]
    Peer {
        /// The address.
        address: Address,
        /// User number that was asked for.
        wanted: u32,
        /// User number of the server.
        found: u32,
    },
    /// A method of `require_auth` that is none.
    #[error(
        "require_auth: {0:?} is not allowed; names are password, md5, gss, sspi, scram-sha-256, oauth and none"
    )]
    RequireAuth(String),
    /// The login failed.
    #[error("cannot log in at {address}: {source}")]
    Login {
        /// The address.
        address: Address,
        /// What was wrong.
        source: StartupError,
    },
    /// The session is not of the kind that `target_session_attrs` asks for.
    #[error("the session at {address} is not as target_session_attrs asks: {found}")]
    SessionAttrs {
        /// The address.
        address: Address,
        /// The actual kind of session.
        found: &'static str,
    },
    /// None of several attempts gave a session: all reasons, in the order of the attempts.
    #[error("{}", each_and_why(.0))]
    All(Vec<ConnectError>),
}

fn each_and_why(errors: &[ConnectError]) -> String {
    let reasons: Vec<_> = errors.iter().map(ToString::to_string).collect();
    format!(
        "{} attempts failed: {}",
        errors.len(),
        reasons.join("; then: ")
    )
}

impl ConnectError {
    /// One error for several attempts.
    pub(crate) fn of(mut errors: Vec<Self>) -> Self {
        if errors.len() == 1 {
            errors.remove(0)
        } else {
            Self::All(errors)
        }
    }

    /// The error of the last attempt, which decides what kind of failure it was.
    fn last(&self) -> &Self {
        match self {
            Self::All(errors) => errors.last().map_or(self, Self::last),
            error => error,
        }
    }

    /// The server's error code, when it was the server that said no.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self.last() {
            Self::Login {
                source: StartupError::Server(error),
                ..
            } => Some(&error.sqlstate),
            _ => None,
        }
    }

    /// Whether the time was over: another attempt would take as long.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.last(), Self::Timeout { .. })
    }
}
