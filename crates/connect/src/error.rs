//! Why there is no session.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use plinth_wire::StartupError;
use thiserror::Error;

use crate::address::Address;

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
    /// The host name is unknown.
    #[error("cannot find host {host:?}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Nobody answers there.
    #[error(
        "cannot connect to {address}: {source}; is the server running, and does it listen there?"
    )]
    Refused {
        /// The address tried last.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// Connected, but the session did not come in time.
    #[error("no session at {address} within {} s; does the server hang?", timeout.as_secs_f64())]
    Timeout {
        /// The address.
        address: Address,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The connection ended while logging in.
    #[error("{address} ended the connection while logging in: {source}")]
    Lost {
        /// The address.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// The login failed.
    #[error("cannot log in at {address}: {source}")]
    Login {
        /// The address.
        address: Address,
        /// What was wrong.
        source: StartupError,
    },
}

impl ConnectError {
    /// The server's error code, when it was the server that said no.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Login {
                source: StartupError::Server(error),
                ..
            } => Some(&error.sqlstate),
            _ => None,
        }
    }
}
