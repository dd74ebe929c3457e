//! Verifies a server's certificate exactly as libpq does.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, PeerMisbehaved, SignatureScheme,
};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RawPublicKeyEntity, RevocationOptionsBuilder,
};

use super::certificate::Certificate;
use super::error::Distrust;

/// Checks the chain when there are authorities to trust, the host's name when one is given; and always that the
/// server has the private key, without which a certificate, and a channel bound to it, prove nothing.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
    pub(crate) roots: Option<Roots>,
    pub(crate) host: Option<String>,
}

/// Authorities that are trusted.
#[derive(Debug)]
pub(crate) struct Roots {
    certificates: Vec<CertificateDer<'static>>,
    anchors: Vec<TrustAnchor<'static>>,
    revoked: Vec<CertRevocationList<'static>>,
}

impl Roots {
    /// Certificates that cannot be authorities are trusted when a server shows that very one.
    pub(crate) fn new(
        certificates: Vec<CertificateDer<'static>>,
        revoked: Vec<OwnedCertRevocationList>,
    ) -> Self {
        let anchors = certificates
            .iter()
            .filter_map(|certificate| webpki::anchor_from_trusted_cert(certificate).ok())
            .map(|anchor| anchor.to_owned())
            .collect();
        Self {
            certificates,
            anchors,
            revoked: revoked.into_iter().map(CertRevocationList::from).collect(),
        }
    }
}

impl Verifier {
    fn check_chain(
        &self,
        roots: &Roots,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Distrust> {
        let certificate = Certificate::parse(shown)?;
        // The usual certificate of a server without an authority: self-signed, and given to the client to trust.
        if roots.certificates.contains(shown) && certificate.names_as_issuer(&certificate) {
            return certificate.check_validity(now);
        }
        if certificate.is_version_1() {
            return self.check_version_1(roots, &certificate, now);
        }
        let lists: Vec<_> = roots.revoked.iter().collect();
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            let options = options.with_expiration_policy(ExpirationPolicy::Enforce);
            options.build()
        });
        let entity = EndEntityCert::try_from(shown).map_err(|error| distrust(&error))?;
        entity
            .verify_for_usage(
                self.algorithms.all,
                &roots.anchors,
                intermediates,
                now,
                KeyUsage::server_auth(),
                revocation,
                None,
            )
            .map(|_| ())
            .map_err(|error| distrust(&error))
    }

    /// webpki reads certificates of version 3 only; those that PostgreSQL's manual makes with openssl are of version 1.
    /// Such a certificate is accepted if an authority has signed it directly.
    fn check_version_1(
        &self,
        roots: &Roots,
        certificate: &Certificate,
        now: UnixTime,
    ) -> Result<(), Distrust> {
        if !roots.revoked.is_empty() {
            let problem = "it is an X.509 certificate of version 1, which cannot be looked up among the revoked ones";
            return Err(Distrust(problem.to_owned()));
        }
        certificate.check_validity(now)?;
        for root in &roots.certificates {
            let root = Certificate::parse(root)?;
            if certificate.names_as_issuer(&root)
                && self.has_signed(&root, certificate)
                && root.check_validity(now).is_ok()
            {
                return Ok(());
            }
        }
        Err(distrust(&webpki::Error::UnknownIssuer))
    }

    fn has_signed(&self, root: &Certificate, certificate: &Certificate) -> bool {
        let public_key = root.public_key();
        let (Ok(key), Some((message, algorithm, signature))) = (
            RawPublicKeyEntity::try_from(&public_key),
            certificate.signed(),
        ) else {
            return false;
        };
        self.algorithms
            .all
            .iter()
            .filter(|known| known.signature_alg_id().as_ref() == algorithm)
            .any(|known| key.verify_signature(*known, &message, &signature).is_ok())
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = match &self.roots {
            Some(roots) => self.check_chain(roots, end_entity, intermediates, now),
            None => Ok(()),
        };
        let host = self.host.as_deref().map_or(Ok(()), |host| {
            Certificate::parse(end_entity)?.check_host(host)
        });
        match chain.and(host) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(distrust) => {
                let other = OtherError(Arc::new(distrust));
                Err(Error::InvalidCertificate(CertificateError::Other(other)))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let public_key = public_key(certificate)?;
        let key =
            RawPublicKeyEntity::try_from(&public_key).map_err(|_| CertificateError::BadEncoding)?;
        let mut mapping = self.algorithms.mapping.iter();
        let (_, algorithms) = mapping
            .find(|(scheme, _)| *scheme == signed.scheme)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let is_right = |algorithm: &&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            key.verify_signature(*algorithm, message, signed.signature())
                .is_ok()
        };
        if algorithms.iter().any(is_right) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        Err(CertificateError::BadSignature.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let public_key = public_key(certificate)?;
        verify_tls13_signature_with_raw_key(message, &public_key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn public_key(
    certificate: &CertificateDer<'_>,
) -> Result<rustls::pki_types::SubjectPublicKeyInfoDer<'static>, Error> {
    Certificate::parse(certificate)
        .map(|certificate| certificate.public_key())
        .map_err(|_| CertificateError::BadEncoding.into())
}

/// The message of an error of webpki.
fn distrust(error: &webpki::Error) -> Distrust {
    Distrust(match error {
        webpki::Error::CertExpired { .. } => "it has expired".to_owned(),
        webpki::Error::CertNotValidYet { .. } => "it is not valid yet".to_owned(),
        webpki::Error::CertRevoked => "it has been revoked".to_owned(),
        webpki::Error::UnknownRevocationStatus => {
            "its authority has no list of revoked certificates in sslcrl or sslcrldir".to_owned()
        }
        webpki::Error::CrlExpired { .. } => {
            "the list of revoked certificates has expired".to_owned()
        }
        webpki::Error::UnknownIssuer => {
            "none of the authorities in sslrootcert has signed it".to_owned()
        }
        webpki::Error::CaUsedAsEndEntity => {
            "it is the certificate of an authority, and not one of those in sslrootcert".to_owned()
        }
        error => error.to_string(),
    })
}
