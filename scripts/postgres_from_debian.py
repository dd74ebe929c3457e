"""Make a prefix with a PostgreSQL of a newer Debian, for tests of versions and builds that this system does not have.

    python scripts/postgres_from_debian.py 19 PREFIX --suite experimental --suite sid
    python scripts/postgres_from_debian.py 18 PREFIX --suite forky

Debian builds PostgreSQL with io_uring, SSL, LZ4 and zstd. Its packages, and the libraries that they need down to the C library, are
unpacked below PREFIX, and its programs are made to use these (patchelf), so that nothing of the system is changed. `server.bindir` is
then the folder that is printed.

Packages come from the mirror that apt uses, or --mirror URL. Only what Debian's key has signed is unpacked: the list of a suite by its
InRelease, each package by the list.
"""

import argparse
import gzip
import hashlib
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_COMPONENT = "main"
_TIMEOUT_S = 60
_LISTS: dict[str, Callable[[bytes], bytes]] = {"Packages.xz": lzma.decompress, "Packages.gz": gzip.decompress}
_HASH = re.compile(r"^ ([0-9a-f]{64}) +(\d+) (\S+)$", re.MULTILINE)
_ELF = b"\x7fELF"


class Package(NamedTuple):
    """A package of a suite: what its list says of it."""

    name: str
    version: str
    file: str
    sha256: str
    depends: tuple[str, ...]
    """The first of each group of alternatives."""


def main() -> int:
    """Make the prefix; prints the folder of its programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", type=int, help="major version, such as 19")
    parser.add_argument("prefix", type=Path, help="a folder that is not there yet, or empty")
    parser.add_argument(
        "--suite", action="append", required=True, help="of Debian; the first that has a package counts"
    )
    parser.add_argument("--mirror", help="default: that of apt")
    asked = parser.parse_args()
    for program, package in (("patchelf", "patchelf"), ("dpkg-deb", "dpkg"), ("gpgv", "gpgv")):
        if shutil.which(program) is None:
            sys.exit(f"error: {program} is not installed\nhint: apt-get install {package}")
    if asked.prefix.exists() and any(asked.prefix.iterdir()):
        sys.exit(f"error: {asked.prefix} is not empty\nhint: name another folder, or remove it")
    mirror = (asked.mirror or _mirror_of_apt()).rstrip("/")
    packages: dict[str, Package] = {}
    for suite in asked.suite:
        print(f"read the list of {suite}", file=sys.stderr)
        for package in _packages(mirror, suite):
            packages.setdefault(package.name, package)
    wanted = list(_closure([f"postgresql-{asked.version}", f"postgresql-client-{asked.version}"], packages))
    root = asked.prefix.resolve()
    for number, package in enumerate(wanted, 1):
        print(f"{number} of {len(wanted)}: {package.name} {package.version}", file=sys.stderr)
        _unpack(mirror, package, root)
    bindir = root / "usr" / "lib" / "postgresql" / str(asked.version) / "bin"
    _use_own_libraries(root)
    for program in ("postgres", "initdb", "psql"):
        said = subprocess.run([bindir / program, "--version"], capture_output=True, text=True, check=True).stdout
        print(said.strip(), file=sys.stderr)
    print(bindir)
    return 0


def _mirror_of_apt() -> str:
    """Return the place from which apt gets its packages."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True
    ).stdout.split()
    found = next((one for one in said if one.startswith(("http://", "https://")) and "security" not in one), None)
    if found is None:
        sys.exit("error: apt has no mirror that could be asked\nhint: --mirror URL names one")
    return found


def _fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            return answer.read()
    except OSError as error:
        sys.exit(f"error: {url} cannot be fetched: {error}")


def _packages(mirror: str, suite: str) -> Iterator[Package]:
    """Yield the packages of a suite for this processor, by a list that its signed InRelease names."""
    release = _signed(_fetched(f"{mirror}/dists/{suite}/InRelease"), suite)
    hashes = {name: digest for digest, _, name in _HASH.findall(release[release.index("SHA256:") :])}
    machine = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for name, unpacked in _LISTS.items():
        listed = f"{_COMPONENT}/binary-{machine}/{name}"
        if listed in hashes:
            data = _fetched(f"{mirror}/dists/{suite}/{listed}")
            _check(data, hashes[listed], listed)
            text = unpacked(data).decode()
            break
    else:
        sys.exit(f"error: the suite {suite} has no packages for {machine}")
    for entry in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", entry, re.MULTILINE))
        if {"Package", "Version", "Filename", "SHA256"} <= fields.keys():
            depends = tuple(_first_of(fields.get("Pre-Depends", "")) + _first_of(fields.get("Depends", "")))
            yield Package(fields["Package"], fields["Version"], fields["Filename"], fields["SHA256"], depends)


def _first_of(depends: str) -> list[str]:
    return [re.split(r"[ :(|]", group.strip())[0] for group in depends.split(",") if group.strip()]


def _signed(document: bytes, suite: str) -> str:
    """Return the text that a document of Debian's key signs."""
    with tempfile.TemporaryDirectory() as folder:
        signed, text = Path(folder) / "InRelease", Path(folder) / "text"
        signed.write_bytes(document)
        command = ["gpgv", "--quiet", "--keyring", _KEYRING, "--output", text, signed]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"error: the InRelease of {suite} is not signed by a key of {_KEYRING}:\n{done.stderr.strip()}")
        return text.read_text()


def _check(data: bytes, sha256: str, what: str) -> None:
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        sys.exit(f"error: {what} has the SHA-256 {found}, and its list has {sha256}")


def _closure(names: Iterable[str], packages: dict[str, Package]) -> Iterator[Package]:
    """Yield packages and the libraries that they need, each once."""
    left, seen = [*names], set()
    while left:
        name = left.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name not in packages:
            if name.startswith("postgresql-"):
                sys.exit(f"error: the suites have no package {name}")
            continue  # a virtual one, such as libc-bin's
        package = packages[name]
        yield package
        left += [one for one in package.depends if one.startswith("lib")]


def _unpack(mirror: str, package: Package, root: Path) -> None:
    data = _fetched(f"{mirror}/{package.file}")
    _check(data, package.sha256, package.file)
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    with tempfile.NamedTemporaryFile(suffix=".deb") as file:
        file.write(data)
        file.flush()
        subprocess.run(["dpkg-deb", "--extract", file.name, root], check=True)


def _use_own_libraries(root: Path) -> None:
    """Have all programs of PostgreSQL below `root` use the C library and the libraries there."""
    (loader,) = {path.resolve() for path in root.rglob("ld-linux*.so*")}
    folders = sorted({str(path.parent) for path in root.rglob("lib*.so*") if "postgresql" not in path.parts})
    for path in sorted((root / "usr" / "lib" / "postgresql").rglob("*")):
        if path.is_symlink() or not path.is_file() or path.open("rb").read(4) != _ELF:
            continue
        # DT_RPATH and not DT_RUNPATH: it counts for the libraries of libraries, too.
        command = ["patchelf", "--force-rpath", "--set-rpath", ":".join(folders)]
        if ".so" not in path.suffixes:
            command += ["--set-interpreter", str(loader)]
        subprocess.run([*command, path], check=True)


if __name__ == "__main__":
    sys.exit(main())
