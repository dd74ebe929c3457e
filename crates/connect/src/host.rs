//! A host of a connection string.

use std::path::PathBuf;

use serde::Deserialize;

use crate::secret::Secret;

/// One of several hosts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// As [`crate::Target::host`].
    pub host: String,
    /// As [`crate::Target::port`].
    pub port: u16,
    /// As [`crate::Target::hostaddr`].
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// As [`crate::Target::password`].
    #[serde(default)]
    pub password: Option<Secret>,
}

impl Host {
    /// The path of its Unix socket, or after `@` a name in the abstract namespace.
    pub(crate) fn unix_socket(&self) -> Option<PathBuf> {
        (self.hostaddr.is_none() && self.host.starts_with(['/', '@']))
            .then(|| PathBuf::from(format!("{}/.s.PGSQL.{}", self.host, self.port)))
    }
}
