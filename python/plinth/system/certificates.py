"""Certificates that are known beforehand, by openssl: each is signed with its own key, and no authority vouches for it."""

from collections.abc import Sequence
from typing import NamedTuple

from plinth.system.runner import Runner

_VALID_DAYS = 3650
_BEGIN = "-----BEGIN CERTIFICATE-----"


class Identity(NamedTuple):
    """A certificate and its private key, both in PEM."""

    certificate: str
    key: str


def new_identity(name: str = "plinth", addresses: Sequence[str] = ()) -> Identity:
    """Make a key, which is in memory only, and a certificate for `name`, and for these IP addresses where programs compare them.

    Raises MissingCapability without openssl.
    """
    others = ("-addext", "subjectAltName=" + ",".join(f"IP:{one}" for one in addresses)) if addresses else ()
    runner = Runner()  # not one that records commands with their output
    made = runner.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", "/dev/stdout", "-days", str(_VALID_DAYS), "-subj", f"/CN={name}"),
            *others,
        ]
    )
    key, begin, certificate = made.stdout.partition(_BEGIN)
    return Identity(begin + certificate, key)
