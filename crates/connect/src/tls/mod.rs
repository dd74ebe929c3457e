//! Encryption, by rustls: what libpq does with OpenSSL.

mod certificate;
mod client;
mod error;
mod files;
mod session;
mod settings;
mod verifier;

pub(crate) use client::TlsClient;
pub use error::{FileProblem, TlsError};
pub(crate) use session::TlsSession;
pub use settings::{Negotiation, SslMode, Tls, TlsVersion};
