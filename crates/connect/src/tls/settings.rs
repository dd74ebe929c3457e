//! libpq's parameters of encryption.

use std::path::PathBuf;

use serde::Deserialize;

use crate::secret::Secret;

/// Names and meanings are libpq's. Default files (`~/.postgresql/root.crt`, ...) have been looked for already.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Whether to encrypt, and how much to check.
    pub sslmode: SslMode,
    /// Whether the server is asked first.
    pub sslnegotiation: Negotiation,
    /// Certificates of authorities that are trusted: a file, or `system` for the system's. Where it is there, the
    /// server's certificate is checked in every mode.
    pub sslrootcert: Option<PathBuf>,
    /// Certificate of the client, with those between it and an authority.
    pub sslcert: Option<PathBuf>,
    /// Its private key.
    pub sslkey: Option<PathBuf>,
    /// For a private key that is encrypted.
    pub sslpassword: Option<Secret>,
    /// Certificates that are revoked.
    pub sslcrl: Option<PathBuf>,
    /// Or a directory of such files.
    pub sslcrldir: Option<PathBuf>,
    /// Whether the host's name is sent to the server (SNI).
    pub sslsni: bool,
    /// Oldest version that is accepted.
    pub ssl_min_protocol_version: Option<TlsVersion>,
    /// Newest version that is accepted.
    pub ssl_max_protocol_version: Option<TlsVersion>,
}

impl Default for Tls {
    /// No encryption, and no files.
    fn default() -> Self {
        Self {
            sslmode: SslMode::default(),
            sslnegotiation: Negotiation::default(),
            sslrootcert: None,
            sslcert: None,
            sslkey: None,
            sslpassword: None,
            sslcrl: None,
            sslcrldir: None,
            sslsni: true,
            ssl_min_protocol_version: None,
            ssl_max_protocol_version: None,
        }
    }
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never.
    #[default]
    Disable,
    /// When the server will not have us otherwise.
    Allow,
    /// When the server can.
    Prefer,
    /// Or not at all.
    Require,
    /// And the certificate comes from an authority that is trusted.
    VerifyCa,
    /// And it is the certificate of the host that was meant.
    VerifyFull,
}

/// libpq's `sslnegotiation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Negotiation {
    /// The server is asked whether it can.
    #[default]
    Postgres,
    /// The server is assumed to support it: versions from 17 on.
    Direct,
}

/// Versions by libpq's names, which for all before 1.2 mean 1.2 here: rustls speaks nothing older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum TlsVersion {
    /// 1.2.
    #[serde(rename = "TLSv1.2")]
    V12,
    /// 1.3.
    #[serde(rename = "TLSv1.3")]
    V13,
}

impl SslMode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    /// Whether there must be authorities to trust.
    pub(crate) fn needs_roots(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyFull)
    }
}
