//! The parts of a certificate that webpki does not expose: names, signature, public key.

use std::net::IpAddr;

use ring::digest;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use x509_cert::der::asn1::{ObjectIdentifier, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::error::Distrust;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// A certificate, parsed.
pub(crate) struct Certificate(x509_cert::Certificate);

impl Certificate {
    pub(crate) fn parse(der: &CertificateDer<'_>) -> Result<Self, Distrust> {
        x509_cert::Certificate::from_der(der)
            .map(Self)
            .map_err(|error| Distrust(format!("it is no X.509 certificate: {error}")))
    }

    /// Its public key, as `SubjectPublicKeyInfo`.
    pub(crate) fn public_key(&self) -> SubjectPublicKeyInfoDer<'static> {
        let der = self.0.tbs_certificate.subject_public_key_info.to_der();
        SubjectPublicKeyInfoDer::from(der.unwrap_or_default())
    }

    /// Whether it has no extensions, and so nothing for webpki to go by.
    pub(crate) fn is_version_1(&self) -> bool {
        self.0.tbs_certificate.version == x509_cert::Version::V1
    }

    /// Whether `issuer` is named as the one who signed it.
    pub(crate) fn names_as_issuer(&self, issuer: &Self) -> bool {
        self.0.tbs_certificate.issuer == issuer.0.tbs_certificate.subject
    }

    /// The signed data, the algorithm as in webpki (without its outermost tag), and the signature.
    pub(crate) fn signed(&self) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        let message = self.0.tbs_certificate.to_der().ok()?;
        let algorithm = self.0.signature_algorithm.to_der().ok()?;
        // Tag and length take two bytes: no algorithm in use is named by more than 127.
        let algorithm = algorithm.get(2..)?.to_vec();
        Some((message, algorithm, self.0.signature.as_bytes()?.to_vec()))
    }

    pub(crate) fn check_validity(&self, now: UnixTime) -> Result<(), Distrust> {
        let validity = self.0.tbs_certificate.validity;
        let is_before = validity.not_before.to_unix_duration().as_secs() > now.as_secs();
        let is_after = validity.not_after.to_unix_duration().as_secs() < now.as_secs();
        match (is_before, is_after) {
            (true, _) => Err(Distrust("it is not valid yet".to_owned())),
            (_, true) => Err(Distrust("it has expired".to_owned())),
            _ => Ok(()),
        }
    }

    /// The hash that `tls-server-end-point` binds to (RFC 5929): of the whole certificate, by the algorithm that its
    /// signature uses, or SHA-256 in place of MD5 and SHA-1. `None` for signatures without a hash of their own, and
    /// for RSASSA-PSS, which names its hash elsewhere.
    pub(crate) fn end_point_hash(der: &CertificateDer<'_>) -> Option<Vec<u8>> {
        let certificate = x509_cert::Certificate::from_der(der).ok()?;
        let algorithm = match certificate.signature_algorithm.oid.to_string().as_str() {
            // md5, sha1 and sha256 with RSA; ecdsa with sha1 and sha256
            "1.2.840.113549.1.1.4"
            | "1.2.840.113549.1.1.5"
            | "1.2.840.113549.1.1.11"
            | "1.2.840.10045.4.1"
            | "1.2.840.10045.4.3.2" => &digest::SHA256,
            "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => &digest::SHA384,
            "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => &digest::SHA512,
            _ => return None,
        };
        Some(digest::digest(algorithm, der).as_ref().to_vec())
    }

    /// Checks that it is the certificate of `host`, as libpq does: by the alternative names, and by the common name
    /// when there are none of the host's kind (a name or an address).
    pub(crate) fn check_host(&self, host: &str) -> Result<(), Distrust> {
        let address: Option<IpAddr> = host.parse().ok();
        let mut names = Vec::new();
        let mut has_kind = false;
        for name in self.alternative_names()? {
            match name {
                GeneralName::DnsName(name) => {
                    has_kind |= address.is_none();
                    if name_matches(name.as_str(), host) {
                        return Ok(());
                    }
                    names.push(name.to_string());
                }
                GeneralName::IpAddress(bytes) => {
                    has_kind |= address.is_some();
                    let found = ip_address(bytes.as_bytes());
                    if found.is_some() && found == address {
                        return Ok(());
                    }
                    names.extend(found.map(|address| address.to_string()));
                }
                _ => {}
            }
        }
        if !has_kind && let Some(name) = self.common_name() {
            if name_matches(&name, host) {
                return Ok(());
            }
            names.push(name);
        }
        Err(Distrust(if names.is_empty() {
            "it names no host".to_owned()
        } else {
            format!("it is for {}, not for host {host:?}", names.join(", "))
        }))
    }

    fn alternative_names(&self) -> Result<Vec<GeneralName>, Distrust> {
        let found = self.0.tbs_certificate.get::<SubjectAltName>();
        let names = found.map_err(|error| Distrust(format!("its names are broken: {error}")))?;
        Ok(names.map_or_else(Vec::new, |(_, names)| names.0))
    }

    /// The last one, as OpenSSL finds it.
    fn common_name(&self) -> Option<String> {
        let names = self.0.tbs_certificate.subject.0.iter();
        let mut parts = names.flat_map(|name| name.0.iter());
        let value = &parts.rfind(|part| part.oid == COMMON_NAME)?.value;
        let utf8 = Utf8StringRef::try_from(value).map(|text| text.to_string());
        let printable = || PrintableStringRef::try_from(value).map(|text| text.to_string());
        let teletex = || TeletexStringRef::try_from(value).map(|text| text.to_string());
        utf8.or_else(|_| printable()).or_else(|_| teletex()).ok()
    }
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

/// A `*.` at the beginning matches one label, at least one character long; case does not matter.
fn name_matches(pattern: &str, host: &str) -> bool {
    // A zero byte in a certificate's name is an old trick to be taken for another host.
    if pattern.contains('\0') {
        return false;
    }
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    match (pattern.strip_prefix('*'), host.find('.')) {
        (Some(suffix), Some(dot)) if suffix.len() > 1 && suffix.starts_with('.') => {
            dot > 0 && suffix.eq_ignore_ascii_case(&host[dot..])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_libpq() {
        for (pattern, host, matches) in [
            ("db.example.org", "db.example.org", true),
            ("DB.Example.org", "db.eXAMPLE.org", true),
            ("db.example.org", "db2.example.org", false),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("d*.example.org", "db.example.org", false),
            ("*", "localhost", false),
            ("*.", "localhost.", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("*.0.0.1", "127.0.0.1", true),
            ("db.example.org\0.evil.org", "db.example.org", false),
        ] {
            assert_eq!(name_matches(pattern, host), matches, "{pattern} {host}");
        }
    }
}
