//! Opens sessions: finds the server, connects a blocking socket and logs in, all before a deadline.
//!
//! The load engine and the bulk loader both start from here; what they do with the socket afterwards is
//! their own affair.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod error;
mod open;

use serde::Deserialize;

pub use address::Address;
pub use error::ConnectError;
pub use open::{Opened, open};

/// A server and a login.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Directory of the Unix socket (begins with `/`), host name or address.
    pub host: String,
    /// Port, also a part of the Unix socket's name.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// For servers that ask for one.
    #[serde(default)]
    pub password: Option<String>,
    /// Command-line options for the session's server process: `-c work_mem=64MB`.
    #[serde(default)]
    pub options: Option<String>,
    /// As `pg_stat_activity` shows it.
    #[serde(default = "default_application_name")]
    pub application_name: String,
}

fn default_application_name() -> String {
    "plinth".to_owned()
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("options", &self.options)
            .field("application_name", &self.application_name)
            .finish()
    }
}

impl Target {
    /// The run-time parameters of the startup message.
    fn parameters(&self) -> Vec<(&str, &str)> {
        let mut parameters = vec![
            ("database", self.database.as_str()),
            ("application_name", self.application_name.as_str()),
        ];
        parameters.extend(self.options.as_deref().map(|options| ("options", options)));
        parameters
    }
}
