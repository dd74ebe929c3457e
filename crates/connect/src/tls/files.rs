//! Files of certificates and keys, by libpq's rules.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer,
};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::error::{FileProblem, TlsError};
use super::settings::Tls;
use crate::secret::Secret;

const ROOT_UID: u32 = 0;

/// The certificates of a PEM file, at least one.
pub(crate) fn certificates(
    parameter: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = all(parameter, path, "certificate")?;
    if found.is_empty() {
        let problem = "it has no certificate (-----BEGIN CERTIFICATE-----)";
        return Err(bad(parameter, path, problem));
    }
    Ok(found)
}

/// The revocation lists of `sslcrl` and of all files in `sslcrldir`.
pub(crate) fn revocation_lists(
    settings: &Tls,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut lists = Vec::new();
    if let Some(path) = &settings.sslcrl {
        lists.extend(all("sslcrl", path, "revocation list")?);
    }
    if let Some(folder) = &settings.sslcrldir {
        let unreadable = |error| file_error("sslcrldir", folder, FileProblem::Read(error));
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_file() {
                lists.extend(all("sslcrldir", &path, "revocation list")?);
            }
        }
    }
    Ok(lists)
}

/// The client's certificate and its key; `None` without `sslcert`, or when there is no such file, as in libpq.
pub(crate) fn identity(settings: &Tls) -> Result<Option<CertifiedKey>, TlsError> {
    let Some(path) = settings.sslcert.as_deref().filter(|path| path.exists()) else {
        return Ok(None);
    };
    let chain = certificates("sslcert", path)?;
    let Some(key_path) = &settings.sslkey else {
        return Err(bad("sslcert", path, "there is no sslkey that goes with it"));
    };
    let der = private_key(key_path, settings.sslpassword.as_ref())?;
    let key = rustls::crypto::ring::sign::any_supported_type(&der)
        .map_err(|error| bad("sslkey", key_path, &error.to_string()))?;
    let certificate =
        Certificate::parse(&chain[0]).map_err(|error| bad("sslcert", path, &error.0))?;
    if key
        .public_key()
        .is_some_and(|public| public != certificate.public_key())
    {
        return Err(bad(
            "sslkey",
            key_path,
            "it is not the key of the certificate in sslcert",
        ));
    }
    Ok(Some(CertifiedKey::new(chain, key)))
}

fn private_key(path: &Path, password: Option<&Secret>) -> Result<PrivateKeyDer<'static>, TlsError> {
    check_permissions(path)?;
    let bytes = read("sslkey", path)?;
    if bytes.starts_with(b"\x30") {
        return PrivateKeyDer::try_from(bytes).map_err(|error| bad("sslkey", path, error));
    }
    let text = String::from_utf8_lossy(&bytes);
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(bad(
            "sslkey",
            path,
            "it is encrypted in OpenSSL's old form, which is not read here; convert it with \
             openssl pkcs8 -topk8 -in KEY -out NEW",
        ));
    }
    if let Some((_, encrypted)) = text.split_once("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        return decrypt(path, encrypted, password);
    }
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| bad("sslkey", path, &format!("it has no private key: {error}")))
}

fn decrypt(
    path: &Path,
    after_label: &str,
    password: Option<&Secret>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let Some(password) = password else {
        return Err(bad("sslkey", path, "it is encrypted; set sslpassword"));
    };
    let pem = format!("-----BEGIN ENCRYPTED PRIVATE KEY-----{after_label}");
    let broken = |error: &dyn ToString| bad("sslkey", path, &error.to_string());
    let (_, der) =
        pkcs8::der::pem::decode_vec(pem.trim_end().as_bytes()).map_err(|error| broken(&error))?;
    let encrypted =
        pkcs8::EncryptedPrivateKeyInfo::try_from(der.as_slice()).map_err(|error| broken(&error))?;
    let key = encrypted.decrypt(password.reveal()).map_err(|error| {
        let problem = format!("it cannot be decrypted: is sslpassword right? ({error})");
        bad("sslkey", path, &problem)
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// Checks permissions as libpq does: 0600 or less for our own key, 0640 or less for one of root's.
fn check_permissions(path: &Path) -> Result<(), TlsError> {
    let metadata =
        fs::metadata(path).map_err(|error| file_error("sslkey", path, FileProblem::Read(error)))?;
    let mode = metadata.mode() & 0o7777;
    if !metadata.is_file() {
        return Err(bad("sslkey", path, "it is no file"));
    }
    let forbidden = if metadata.uid() == ROOT_UID {
        0o037
    } else {
        0o077
    };
    if mode & forbidden != 0 {
        return Err(file_error(
            "sslkey",
            path,
            FileProblem::Permissions { mode },
        ));
    }
    Ok(())
}

fn all<T: PemObject>(parameter: &'static str, path: &Path, what: &str) -> Result<Vec<T>, TlsError> {
    let bytes = read(parameter, path)?;
    let items: Result<Vec<T>, pem::Error> = T::pem_slice_iter(&bytes).collect();
    items.map_err(|error| {
        bad(
            parameter,
            path,
            &format!("a {what} cannot be read: {error}"),
        )
    })
}

fn read(parameter: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| file_error(parameter, path, FileProblem::Read(error)))
}

pub(crate) fn is_missing(error: &TlsError) -> bool {
    matches!(error, TlsError::File { problem: FileProblem::Read(error), .. }
        if error.kind() == io::ErrorKind::NotFound)
}

fn bad(parameter: &'static str, path: &Path, problem: &str) -> TlsError {
    file_error(parameter, path, FileProblem::Content(problem.to_owned()))
}

fn file_error(parameter: &'static str, path: &Path, problem: FileProblem) -> TlsError {
    let path = path.to_owned();
    TlsError::File {
        parameter,
        path,
        problem,
    }
}
