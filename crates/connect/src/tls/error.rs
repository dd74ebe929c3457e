//! The reasons why there is no encrypted connection.

use std::fmt;
use std::io;
use std::path::PathBuf;

use rustls::CertificateError;
use thiserror::Error;

/// The reason why there is no encrypted connection.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file of certificates or keys cannot be used.
    #[error("{parameter} {}: {problem}", path.display())]
    File {
        /// libpq's name for it.
        parameter: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason, and a remedy.
        problem: FileProblem,
    },
    /// A certificate is to be checked, and there is nothing to check it with.
    #[error(
        "sslmode={sslmode} checks the server's certificate, and there is no file of trusted authorities; \
         set sslrootcert to one, or to system"
    )]
    NoRoots {
        /// The mode.
        sslmode: &'static str,
    },
    /// The host's name is to be checked, and there is none.
    #[error(
        "sslmode=verify-full checks the host's name, and only hostaddr was given; set host, too"
    )]
    NoHost,
    /// The system has no authorities to trust.
    #[error("sslrootcert=system: the system's trusted certificates cannot be read: {0}")]
    NoSystemRoots(String),
    /// The server cannot, or will not.
    #[error("the server does not speak TLS, and sslmode={sslmode} asks for it")]
    Unwilling {
        /// The mode.
        sslmode: &'static str,
    },
    /// Not how a server answers.
    #[error("not a PostgreSQL server? It answers the request for TLS with {:?}", char::from(*.0))]
    Answer(u8),
    /// The server does not confirm that it speaks PostgreSQL's protocol within TLS.
    #[error(
        "the server did not agree to speak postgresql (ALPN), as sslnegotiation=direct needs; it is older than 17"
    )]
    NoAlpn,
    /// The handshake failed.
    #[error("TLS: {}", Words(.0))]
    Handshake(#[from] rustls::Error),
    /// The connection ended within the handshake.
    #[error("the connection ended within the TLS handshake: {0}")]
    Lost(io::Error),
}

/// The defect of a file.
#[derive(Debug, Error)]
pub enum FileProblem {
    /// The file cannot be read.
    #[error("{0}")]
    Read(io::Error),
    /// The file is malformed.
    #[error("{0}")]
    Content(String),
    /// libpq takes no key that others may read.
    #[error(
        "the private key has mode {mode:04o}: others may read it; chmod 0600 (0640 for a key that root owns)"
    )]
    Permissions {
        /// Its mode.
        mode: u32,
    },
}

/// A reason to distrust a certificate that rustls has no error for.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Distrust(pub(crate) String);

/// The message of an error of rustls, or of webpki within it.
pub(crate) struct Words<'a>(pub(crate) &'a rustls::Error);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rustls::Error::InvalidCertificate(CertificateError::Other(other)) => {
                write!(f, "the server's certificate is not trusted: {}", other.0)
            }
            rustls::Error::AlertReceived(alert) => {
                write!(f, "the server broke off: {alert:?}")
            }
            error => error.fmt(f),
        }
    }
}
