//! A host's encrypted connections: files read and settings checked once.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, SupportedProtocolVersion};

use super::error::{FileProblem, TlsError};
use super::files;
use super::session::TlsSession;
use super::settings::{Negotiation, SslMode, Tls, TlsVersion};
use super::verifier::{Roots, Verifier};
use crate::host::Host;

/// The ALPN protocol, which servers from version 17 on check.
const ALPN: &[u8] = b"postgresql";

/// Makes the encrypted connections with one host.
#[derive(Debug)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    is_direct: bool,
}

impl TlsClient {
    pub(crate) fn new(settings: &Tls, host: &Host) -> Result<Self, TlsError> {
        let sslmode = settings.sslmode;
        let checks_host = sslmode == SslMode::VerifyFull;
        if checks_host && host.host.is_empty() {
            return Err(TlsError::NoHost);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier {
            algorithms: provider.signature_verification_algorithms,
            roots: roots(settings)?,
            host: checks_host.then(|| host.host.clone()),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(settings))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match files::identity(settings)? {
            Some(identity) => {
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity)))
            }
            None => builder.with_no_client_auth(),
        };
        // PostgreSQL does not resume sessions, and a load has to include the cost of a full handshake.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Addresses are not sent as names; nor is what cannot be one.
        let name = ServerName::try_from(host.host.clone()).ok();
        config.enable_sni = settings.sslsni && name.is_some();
        Ok(Self {
            config: Arc::new(config),
            name: name.unwrap_or_else(|| ServerName::from(IpAddr::from([0, 0, 0, 0]))),
            is_direct: settings.sslnegotiation == Negotiation::Direct,
        })
    }

    /// The client's side of a new connection.
    pub(crate) fn begin(&self) -> Result<TlsSession, TlsError> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        Ok(TlsSession::new(connection))
    }

    /// Whether a server that was not asked first has shown that it understood.
    pub(crate) fn check_alpn(&self, session: &TlsSession) -> Result<(), TlsError> {
        if self.is_direct && session.alpn_protocol() != Some(ALPN) {
            return Err(TlsError::NoAlpn);
        }
        Ok(())
    }
}

/// The trusted authorities. Without any, libpq checks nothing, unless the mode requires it.
fn roots(settings: &Tls) -> Result<Option<Roots>, TlsError> {
    let needed = || TlsError::NoRoots {
        sslmode: settings.sslmode.name(),
    };
    let certificates = match &settings.sslrootcert {
        None if settings.sslmode.needs_roots() => return Err(needed()),
        None => return Ok(None),
        Some(path) if path.as_os_str() == "system" => {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
                return Err(TlsError::NoSystemRoots(reasons.join("; ")));
            }
            found.certs
        }
        Some(path) => match files::certificates("sslrootcert", path) {
            Err(error) if files::is_missing(&error) && !settings.sslmode.needs_roots() => {
                return Ok(None);
            }
            found => found?,
        },
    };
    let revoked = files::revocation_lists(settings)?
        .into_iter()
        .map(|list| {
            webpki::OwnedCertRevocationList::from_der(&list).map_err(|error| TlsError::File {
                parameter: "sslcrl",
                path: settings.sslcrl.clone().unwrap_or_default(),
                problem: FileProblem::Content(error.to_string()),
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Some(Roots::new(certificates, revoked)))
}

fn versions(settings: &Tls) -> Vec<&'static SupportedProtocolVersion> {
    let least = settings.ssl_min_protocol_version.unwrap_or(TlsVersion::V12);
    let most = settings.ssl_max_protocol_version.unwrap_or(TlsVersion::V13);
    [(TlsVersion::V12, &TLS12), (TlsVersion::V13, &TLS13)]
        .into_iter()
        .filter(|(version, _)| (least..=most).contains(version))
        .map(|(_, version)| version)
        .collect()
}
