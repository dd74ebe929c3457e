"""Installations that the user who runs servers can reach: copied into Plinth's cache where they stand in the way.

Started by root from a virtual environment in root's home, the wheel's programs are closed to everybody else.
"""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError
from plinth.model.facts import Installation
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner
from plinth.system.paths import cache_dir, ensure
from plinth.system.runner import Runner

_SHARED_PREFIXES = (Path("/"), Path("/usr"), Path("/usr/local"), Path("/opt"))
_NOT_COPIED = shutil.ignore_patterns("include", "doc", "man", "pgxs", "*.a", "*.pc", "__pycache__")


def for_owner(installation: Installation, owner: Owner, runner: Runner) -> Installation:
    """`installation` itself where `owner` can run it, else a copy in the cache that `owner` can run.

    Raises MissingCapability where it cannot be copied, because its parts are spread over the system.
    """
    if _runs(installation.bindir, owner, runner):
        return installation
    prefix = _prefix(installation, owner, runner)
    copy = _copied(prefix, installation.version)
    bindir = copy / Path(installation.bindir).resolve().name
    if not _runs(str(bindir), owner, runner):
        raise MissingCapability(
            f"user {owner.name} can run neither {installation.bindir} nor a copy of it",
            where=str(bindir),
            hint=f"set PLINTH_STATE_DIR to a directory that user {owner.name} can enter, or install PostgreSQL in one",
        )
    return installation.model_copy(
        update={
            "bindir": str(bindir),
            "origin": f"{installation.origin}, copied because user {owner.name} cannot reach {installation.bindir}",
        }
    )


def _runs(bindir: str, owner: Owner, runner: Runner) -> bool:
    """Whether `owner` can start the server program, and read what it reads at once: its shared libraries."""
    try:
        runner.run([f"{bindir}/postgres", "--version"], owner=owner, timeout_s=30)
    except PlinthError:
        return False
    return True


def _prefix(installation: Installation, owner: Owner, runner: Runner) -> Path:
    """The one directory that holds programs, libraries and shared files; programs find those by relative paths."""
    bindir = Path(installation.bindir).resolve()
    prefix = bindir.parent
    try:
        parts = runner.run([str(bindir / "pg_config"), "--sharedir", "--pkglibdir"], timeout_s=30).stdout.split("\n")
    except PlinthError:
        parts = [str(prefix / "share"), str(prefix / "lib")]  # some installations come without pg_config
    outside = [part for part in parts if part and not Path(part).is_relative_to(prefix)]
    if outside or prefix in _SHARED_PREFIXES:
        raise MissingCapability(
            f"user {owner.name} cannot run the programs in {bindir}, and they cannot be copied: "
            f"this installation does not have a directory to itself ({', '.join([str(bindir), *outside])})",
            where=str(bindir),
            hint=f"let user {owner.name} enter that directory, or set server.bindir to another installation",
        )
    return prefix


def _copied(prefix: Path, version: str) -> Path:
    """A copy of `prefix` in the cache, named after version and content, made whole or not at all."""
    folder = ensure(cache_dir() / "postgresql")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        copy = folder / f"{version}-{_content_digest(prefix)}"
        if copy.is_dir():
            return copy
        unfinished = folder / ".unfinished"
        try:
            if unfinished.exists():  # left by one that was killed while it held the lock
                shutil.rmtree(unfinished)
            shutil.copytree(prefix, unfinished, symlinks=True, ignore=_NOT_COPIED)
            _open_to_all(unfinished)
            unfinished.rename(copy)
        except OSError as error:
            raise from_os_error(error, f"copy PostgreSQL {version} from {prefix}", copy) from error
        return copy


def _open_to_all(folder: Path) -> None:
    """Readable by everybody, and executable where the owner may execute."""
    for parent, _, files in os.walk(folder):
        Path(parent).chmod(0o755)
        for name in files:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _content_digest(prefix: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()):
        digest.update(f"{path.relative_to(prefix)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
