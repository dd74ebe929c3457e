//! A target made ready to be connected to, any number of times.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plinth_wire::{Methods, SaltedPasswords};

use crate::address::Address;
use crate::error::ConnectError;
use crate::host::Host;
use crate::resolve::resolve;
use crate::target::Target;
use crate::tls::{SslMode, TlsClient, TlsError};

/// Opens sessions with one target. What is the same for all of them is done once: host names are looked up here.
#[derive(Debug)]
pub struct Dialer {
    pub(crate) target: Target,
    pub(crate) hosts: Vec<Host>,
    /// The addresses to try, in order: hosts as given, and the addresses of each as resolved.
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) methods: Methods,
    pub(crate) salted: Arc<SaltedPasswords>,
    /// Of each host; made when a server first wants it, since until then nothing may be wrong with its files.
    tls: Vec<OnceLock<Result<TlsClient, Arc<TlsError>>>>,
}

/// One address to try.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its host's number.
    pub(crate) host: usize,
    /// Or why the host has none.
    pub(crate) address: Result<Address, (io::ErrorKind, String)>,
}

impl Dialer {
    /// Looks up the target's hosts. `timeout` is how long one address may take when the target does not say;
    /// without either, there is no limit.
    ///
    /// # Errors
    /// When no host can be found, or an address is none.
    pub fn new(target: Target, timeout: Option<Duration>) -> Result<Arc<Self>, ConnectError> {
        let hosts = target.hosts();
        let mut candidates = Vec::new();
        let mut unknown = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            let mut add = |address| {
                candidates.push(Candidate {
                    host: number,
                    address,
                })
            };
            match resolve(host) {
                Ok(addresses) => addresses.into_iter().for_each(|address| add(Ok(address))),
                Err(ConnectError::Resolve { host, source }) => {
                    add(Err((source.kind(), source.to_string())));
                    unknown.push(ConnectError::Resolve { host, source });
                }
                Err(error) => return Err(error),
            }
        }
        if unknown.len() == hosts.len() {
            return Err(ConnectError::of(unknown));
        }
        let methods = target.require_auth.as_deref().map(Methods::parse);
        Ok(Arc::new(Self {
            timeout: target.connect_timeout(timeout),
            methods: methods
                .unwrap_or(Ok(Methods::ALL))
                .map_err(ConnectError::RequireAuth)?,
            salted: Arc::default(),
            tls: hosts.iter().map(|_| OnceLock::new()).collect(),
            target,
            hosts,
            candidates,
        }))
    }

    /// The TLS configuration for a host.
    pub(crate) fn tls(&self, host: usize) -> Result<&TlsClient, Arc<TlsError>> {
        let make = || TlsClient::new(&self.target.tls, &self.hosts[host]).map_err(Arc::new);
        self.tls[host]
            .get_or_init(make)
            .as_ref()
            .map_err(Arc::clone)
    }

    /// Whether to encrypt, as it is tried one after the other: libpq's order.
    pub(crate) fn encryptions(&self, address: &Address) -> &'static [bool] {
        match (address, self.target.tls.sslmode) {
            // A process that can listen in on a Unix socket needs no network for it.
            (Address::Unix(_), _) | (_, SslMode::Disable) => &[false],
            (_, SslMode::Allow) => &[false, true],
            (_, SslMode::Prefer) => &[true, false],
            (_, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => &[true],
        }
    }
}
