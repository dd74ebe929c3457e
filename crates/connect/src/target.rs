//! The target of a connection: libpq's parameters, already resolved (defaults, services, password files).

use std::time::Duration;

use serde::Deserialize;

use crate::host::Host;
use crate::secret::Secret;
use crate::tls::Tls;

/// A server and a login. Names and meanings are libpq's, where it has them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Directory of the Unix socket (begins with `/`, or with `@` in the abstract name space), host name or address.
    pub host: String,
    /// Port, also a part of the Unix socket's name.
    pub port: u16,
    /// Numeric address of the host, which is then not looked up.
    #[serde(default)]
    pub hostaddr: Option<String>,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// For servers that ask for one.
    #[serde(default)]
    pub password: Option<Secret>,
    /// Command-line options for the session's server process: `-c work_mem=64MB`.
    #[serde(default)]
    pub options: Option<String>,
    /// The name shown in `pg_stat_activity`.
    #[serde(default = "default_application_name")]
    pub application_name: String,
    /// Encoding of what is sent and received.
    #[serde(default = "default_client_encoding")]
    pub client_encoding: String,
    /// Hosts to try after the first.
    #[serde(default)]
    pub further_hosts: Vec<Host>,
    /// The required kind of session.
    #[serde(default)]
    pub target_session_attrs: SessionAttrs,
    /// Whether hosts, and the addresses of each, are tried in random order.
    #[serde(default)]
    pub load_balance_hosts: bool,
    /// The timeout of one address: 0 for no limit; by default, the caller's timeout.
    #[serde(default)]
    pub connect_timeout_s: Option<f64>,
    /// Settings of TCP connections.
    #[serde(default)]
    pub tcp: Tcp,
    /// Settings of encryption, over TCP only.
    #[serde(default)]
    pub tls: Tls,
    /// Whether SCRAM is to be bound to the encryption.
    #[serde(default)]
    pub channel_binding: ChannelBinding,
    /// The accepted authentication methods; by default, all.
    #[serde(default)]
    pub require_auth: Option<String>,
    /// Number of the user that the server at a Unix socket must run as.
    #[serde(default)]
    pub requirepeer_uid: Option<u32>,
}

/// libpq's `channel_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Encryption is used if the server offers it.
    #[default]
    Prefer,
    /// Or no login.
    Require,
}

impl From<ChannelBinding> for plinth_wire::ChannelBinding {
    fn from(binding: ChannelBinding) -> Self {
        match binding {
            ChannelBinding::Disable => Self::Disable,
            ChannelBinding::Prefer => Self::Prefer,
            ChannelBinding::Require => Self::Require,
        }
    }
}

/// The accepted sessions: libpq's `target_session_attrs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionAttrs {
    /// All.
    #[default]
    Any,
    /// Sessions that can write by default.
    ReadWrite,
    /// Sessions that cannot write by default.
    ReadOnly,
    /// Sessions of a server that is not in recovery.
    Primary,
    /// Sessions of a server in hot standby.
    Standby,
    /// Sessions of a standby if there is one, else any.
    PreferStandby,
}

/// Settings of TCP connections; what is not set is left to the system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Whether an idle connection is probed.
    pub keepalives: bool,
    /// Idle time before the first probe.
    pub keepalives_idle_s: Option<u32>,
    /// Time between probes.
    pub keepalives_interval_s: Option<u32>,
    /// Probes without an answer before the connection counts as lost.
    pub keepalives_count: Option<u32>,
    /// The time that sent data may stay unacknowledged.
    pub tcp_user_timeout_ms: Option<u32>,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            keepalives: true,
            keepalives_idle_s: None,
            keepalives_interval_s: None,
            keepalives_count: None,
            tcp_user_timeout_ms: None,
        }
    }
}

fn default_application_name() -> String {
    "plinth".to_owned()
}

fn default_client_encoding() -> String {
    "UTF8".to_owned()
}

impl Target {
    /// A login without a password at one host, and everything else as it is by default.
    #[must_use]
    pub fn new(host: &str, port: u16, user: &str, database: &str) -> Self {
        Self {
            host: host.to_owned(),
            port,
            hostaddr: None,
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            options: None,
            application_name: default_application_name(),
            client_encoding: default_client_encoding(),
            further_hosts: Vec::new(),
            target_session_attrs: SessionAttrs::default(),
            load_balance_hosts: false,
            connect_timeout_s: None,
            tcp: Tcp::default(),
            tls: Tls::default(),
            channel_binding: ChannelBinding::default(),
            require_auth: None,
            requirepeer_uid: None,
        }
    }

    /// All hosts, in the order given.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        let first = Host {
            host: self.host.clone(),
            port: self.port,
            hostaddr: self.hostaddr.clone(),
            password: self.password.clone(),
        };
        let further = self.further_hosts.iter().cloned();
        std::iter::once(first).chain(further).collect()
    }

    /// The timeout of one address, given the caller's `timeout`.
    pub(crate) fn connect_timeout(&self, timeout: Option<Duration>) -> Option<Duration> {
        match self.connect_timeout_s {
            None => timeout,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|limit| !limit.is_zero()),
        }
    }

    /// The run-time parameters of the startup message.
    pub(crate) fn parameters(&self) -> Vec<(&str, &str)> {
        let mut parameters = vec![
            ("database", self.database.as_str()),
            ("application_name", self.application_name.as_str()),
        ];
        if !self.client_encoding.is_empty() {
            parameters.push(("client_encoding", self.client_encoding.as_str()));
        }
        parameters.extend(self.options.as_deref().map(|options| ("options", options)));
        parameters
    }
}
