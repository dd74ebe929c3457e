"""TLS between a coordinator and an agent that it has started: each shows a certificate that was made for this one connection.

Either side gets the other's certificate from who started the agent, and takes no other. Keys are in memory only, and no authority
vouches for anybody.
"""

import datetime
import os
import ssl
from typing import NamedTuple

_YEAR = datetime.timedelta(days=365)
"""Before and after now: the clocks of machines may differ by days, and who is trusted is known without the time."""
_NAME = "plinth"


class Identity(NamedTuple):
    """A certificate and its private key, both in PEM."""

    certificate: str
    key: bytes


def new_identity() -> Identity:
    """A new key, with a certificate signed by itself. Raises MissingCapability without the package that makes them."""
    from plinth.system.extras import require_package

    require_package("cryptography", "a fleet on Ray", where="fleet.address")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _YEAR)
        .not_valid_after(now + _YEAR)
        .sign(key, hashes.SHA256())
    )
    return Identity(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def context_of(side: ssl._SSLMethod, own: Identity, peer: str) -> ssl.SSLContext:
    """For connections whose other end has the certificate `peer`: PROTOCOL_TLS_CLIENT or PROTOCOL_TLS_SERVER."""
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # it is the certificate itself that is known
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=peer)
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)  # ssl reads keys from files only
    try:
        os.write(descriptor, own.certificate.encode() + own.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context
