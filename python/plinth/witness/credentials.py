"""Authentication of a load and its witness: the witness by the fingerprint of its certificate, the load by a
token."""

import hmac
import os
import re
import secrets
import ssl
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import RunError, UsageError
from plinth.system.certificates import new_identity
from plinth.system.directory import for_owner_only
from plinth.system.failures import from_os_error
from plinth.system.framed_tls import connect_tls, fingerprint_of, peer_fingerprint, tls_context
from plinth.system.regular_file import check_regular_if_there, read_given
from plinth.witness.protocol import Link

TOKEN_VARIABLE = "PLINTH_WITNESS_TOKEN"
_CERTIFICATE, _KEY, _TOKEN = "certificate.pem", "key.pem", "token"
_TOKEN_BYTES = 32
_MAX_FILE_BYTES = 64 * 1024
_PREFIX = "sha256:"


class Credentials(NamedTuple):
    """The certificate of a witness, and the token that it requires of a load."""

    context: ssl.SSLContext
    fingerprint: str
    token: str
    token_file: Path


def witness_credentials(folder: Path, certificate: Path | None, key: Path | None) -> Credentials:
    """Return the credentials in the witness's folder, made when they are missing; or the user's own certificate and key.

    The folder is closed to others (0700). Raises UsageError for a certificate or key that cannot be used.
    """
    with for_owner_only(folder):
        if certificate is None or key is None:
            if (certificate is None) != (key is None):
                raise UsageError("--cert and --key go together", hint="name both, or neither for one that is made")
            certificate, key = folder / _CERTIFICATE, folder / _KEY
            if not (certificate.exists() and key.exists()):
                made = new_identity("plinth-witness")
                key.unlink(missing_ok=True)
                certificate.unlink(missing_ok=True)
                _write_new(key, made.key)
                _write_new(certificate, made.certificate)
        token_file = folder / _TOKEN
        if not token_file.exists():
            _write_new(token_file, secrets.token_urlsafe(_TOKEN_BYTES) + "\n")
    context = tls_context("server")
    try:
        for file in (certificate, key):
            check_regular_if_there(file, _MAX_FILE_BYTES)
        context.load_cert_chain(certificate, key)
        der = ssl.PEM_cert_to_DER_cert(_first_certificate(certificate))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise UsageError(
            f"certificate and key cannot be used: {error}", where=f"{certificate}, {key}", hint="both are PEM files"
        ) from error
    return Credentials(context, fingerprint_of(der), token_of(token_file), token_file)


def token_of(file: Path | None) -> str:
    """Return the token in a file, or in the environment where none is named. Raises UsageError."""
    if file is None:
        if token := os.environ.get(TOKEN_VARIABLE):
            return token.strip()
        raise UsageError(
            "no token for the witness", where="--token-file", hint=f"name its token file, or set {TOKEN_VARIABLE}"
        )
    try:
        token = read_given(file, _MAX_FILE_BYTES).decode("ascii").strip()
    except OSError as error:
        raise from_os_error(error, "read the token", file) from error
    except UnicodeDecodeError as error:
        raise UsageError("this is no token: it is not ASCII", where=str(file)) from error
    if not re.fullmatch(r"[!-~]{16,256}", token):
        raise UsageError(
            "this is no token: 16 to 256 characters without spaces are needed",
            where=str(file),
            hint="copy the file `token` from the witness's folder",
        )
    return token


def same_token(given: str, own: str) -> bool:
    """Return whether two tokens are equal, compared in constant time."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), own.encode())


def parsed_fingerprint(text: str) -> str:
    """Read a fingerprint as `plinth durability witness` or openssl prints it. Raises UsageError."""
    digits = text.strip().lower().removeprefix(_PREFIX).replace(":", "")
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise UsageError(
            f"--fingerprint: got {text!r}; the SHA-256 of the witness's certificate is needed, 64 hexadecimal digits",
            hint="`plinth durability witness` prints it",
        )
    return _PREFIX + digits


def connect_to_witness(host: str, port: int, fingerprint: str, timeout_s: float) -> Link:
    """Connect to the witness with this certificate; nothing is sent to any other. Raises RunError."""
    where = f"--witness {host}:{port}"
    try:
        # The fingerprint says whose certificate it is: more than a name that an authority has signed.
        connection = connect_tls(host, port, tls_context("client"), timeout_s)
    except OSError as error:
        raise RunError(
            f"cannot connect to the witness: {error}",
            where=where,
            hint="start `plinth durability witness DIR` there, and let the port through the firewall",
        ) from error
    except RunError as error:
        error.where = where
        raise
    found = peer_fingerprint(connection)
    if not hmac.compare_digest(found, fingerprint):
        connection.close()
        raise RunError(
            f"this is another witness: its certificate has the fingerprint {found}, not {fingerprint}",
            where=where,
            hint="compare with what `plinth durability witness` printed there; if that differs, "
            "another machine is intercepting the connection",
        )
    return Link(connection)


def _first_certificate(path: Path) -> str:
    found = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", path.read_text("ascii"), re.DOTALL)
    if found is None:
        raise ValueError("it has no certificate")
    return found[0]


def _write_new(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise from_os_error(error, "write the credentials", path) from error
