"""Certificates for tests, by openssl: the tests' own authority and what it signs, well or badly."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CONFIG = """\
[ca]
default_ca = ours
[ours]
dir = {folder}
database = {folder}/index
serial = {folder}/serial
crlnumber = {folder}/crlnumber
new_certs_dir = {folder}
certificate = {folder}/ca.crt
private_key = {folder}/ca.key
default_md = sha256
default_crl_days = 30
policy = anything
copy_extensions = copy
unique_subject = no
[anything]
commonName = supplied
[req]
distinguished_name = name
[name]
"""
_KEYS = {
    "rsa": ["rsa", "-pkeyopt", "rsa_keygen_bits:2048"],
    "p256": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "p384": ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
    "ed25519": ["ed25519"],
}
_NOW, _LONG_AGO = ("20200101000000Z", "20491231000000Z"), ("20200101000000Z", "20200201000000Z")


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key, mode 0600."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path, name: str = "an authority") -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        self.certificate = folder / "ca.crt"
        self._config = folder / "openssl.cnf"
        self._config.write_text(_CONFIG.format(folder=folder))
        (folder / "index").touch()
        (folder / "serial").write_text("01\n")
        (folder / "crlnumber").write_text("01\n")
        self._key("ca", "rsa")
        self.openssl(
            *("req", "-x509", "-key", self._path("ca.key"), "-out", str(self.certificate), "-days", "3650"),
            *("-subj", f"/CN={name}", "-config", str(self._config)),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )

    def issue(
        self, name: str, common_name: str, alternative: str = "", key: str = "rsa", expired: bool = False
    ) -> Issued:
        """Sign a certificate; `alternative` is a list of other names: "DNS:localhost,IP:127.0.0.1"."""
        issued = self._request(name, common_name, key, alternative)
        start, end = _LONG_AGO if expired else _NOW
        self.openssl(
            *("ca", "-batch", "-notext", "-config", str(self._config), "-startdate", start, "-enddate", end),
            *("-in", self._path(f"{name}.csr"), "-out", str(issued.certificate)),
        )
        return issued

    def issue_version_1(self, name: str, common_name: str) -> Issued:
        """As PostgreSQL's manual makes them: without extensions, and so an X.509 certificate of version 1."""
        issued = self._request(name, common_name, "rsa")
        self.openssl(
            *("x509", "-req", "-in", self._path(f"{name}.csr"), "-days", "30", "-out", str(issued.certificate)),
            *("-CA", str(self.certificate), "-CAkey", self._path("ca.key"), "-CAcreateserial"),
        )
        assert "Version: 1" in self.openssl("x509", "-in", str(issued.certificate), "-noout", "-text")
        return issued

    def self_signed(self, name: str, common_name: str) -> Issued:
        """A certificate that no authority has signed."""
        issued = Issued(self.folder / f"{name}.crt", self._key(name, "rsa"))
        self.openssl(
            *("req", "-x509", "-key", str(issued.key), "-out", str(issued.certificate), "-days", "30"),
            *("-subj", f"/CN={common_name}", "-config", str(self._config)),
        )
        return issued

    def revoked(self, *revoked: Issued) -> Path:
        """The list of revoked certificates."""
        for one in revoked:
            self.openssl("ca", "-config", str(self._config), "-revoke", str(one.certificate))
        path = self.folder / f"revoked-{len(revoked)}.crl"
        self.openssl("ca", "-config", str(self._config), "-gencrl", "-out", str(path))
        return path

    def encrypted(self, key: Path, password: str, *options: str) -> Path:
        """A private key, encrypted."""
        path = key.with_suffix(".encrypted")
        self.openssl("pkcs8", "-topk8", *options, "-in", str(key), "-passout", f"pass:{password}", "-out", str(path))
        path.chmod(0o600)
        return path

    def openssl(self, *arguments: str) -> str:
        """Run openssl."""
        program = shutil.which("openssl")
        assert program is not None, "these tests need the package openssl"
        ran = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{arguments}: {ran.stderr}"
        return ran.stdout

    def _request(self, name: str, common_name: str, key: str, alternative: str = "") -> Issued:
        issued = Issued(self.folder / f"{name}.crt", self._key(name, key))
        extension = ["-addext", f"subjectAltName={alternative}"] if alternative else []
        self.openssl(
            *("req", "-new", "-key", str(issued.key), "-out", self._path(f"{name}.csr")),
            *("-subj", f"/CN={common_name}", "-config", str(self._config), *extension),
        )
        return issued

    def _key(self, name: str, kind: str) -> Path:
        path = self.folder / f"{name}.key"
        algorithm, *options = _KEYS[kind]
        self.openssl("genpkey", "-algorithm", algorithm, *options, "-out", str(path))
        path.chmod(0o600)
        return path

    def _path(self, name: str) -> str:
        return str(self.folder / name)
