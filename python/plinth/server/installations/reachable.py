"""Installations that the user who runs servers can reach: copied into Plinth's cache where that user cannot enter their folders.

Started by root from a virtual environment in root's home, the wheel's programs are closed to everybody else.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError
from plinth.model.facts import Installation
from plinth.system.failures import from_os_error
from plinth.system.lock import wait_for_lock
from plinth.system.owner import Owner
from plinth.system.paths import cache_dir, ensure
from plinth.system.regular_file import open_output, open_regular_file
from plinth.system.runner import Runner

PROGRAMS = ("postgres", "initdb")
_SYSTEM = tuple(map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")))
_LIBRARY = re.compile(r"=> (/.*) \(0x")
_LARGEST_COPY_BYTES = 512 * 1024**2  # PostgreSQL takes 50 MB; what is larger holds something else as well
_PART_BYTES = 2**20
_NOT_COPIED = shutil.ignore_patterns("include", "doc", "man", "pgxs", "*.a", "*.pc", "__pycache__")


def for_owner(installation: Installation, owner: Owner, runner: Runner) -> Installation:
    """Return `installation` itself where `owner` can run it, else a copy in the cache that `owner` can run.

    Raises MissingCapability where it cannot be copied, because its parts are spread over the system.
    """
    if _runs(Path(installation.bindir), owner, runner):
        return installation
    bindir = Path(installation.bindir).resolve()
    parts = [_prefix(bindir, owner, runner), *_libraries(bindir, runner)]
    root = Path(os.path.commonpath(parts))
    copied = _copied(parts, root, installation.version) / bindir.relative_to(root)
    if not _runs(copied, owner, runner):
        raise MissingCapability(
            f"user {owner.name} can run neither {installation.bindir} nor a copy of it",
            where=str(copied),
            hint=f"set PLINTH_STATE_DIR to a directory that user {owner.name} can enter, or install PostgreSQL in one",
        )
    return installation.model_copy(
        update={
            "bindir": str(copied),
            "origin": f"{installation.origin}, copied because user {owner.name} cannot reach {installation.bindir}",
        }
    )


def _runs(bindir: Path, owner: Owner, runner: Runner) -> bool:
    """Return whether `owner` can run the programs, and read the libraries that they load."""
    try:
        for program in PROGRAMS:
            runner.run([str(bindir / program), "--version"], owner=owner, timeout_s=30)
    except PlinthError:
        return False
    return True


def _prefix(bindir: Path, owner: Owner, runner: Runner) -> Path:
    """Return the one directory that holds programs, extensions and shared files; programs find those by relative paths."""
    prefix = bindir.parent
    try:
        argv = [str(bindir / "pg_config"), "--sharedir", "--pkglibdir"]
        shown = runner.run(argv, timeout_s=30).stdout
        outside = [part for part in shown.splitlines() if not Path(part).is_relative_to(prefix)]
    except PlinthError:
        outside = []  # some installations come without pg_config
    if outside or _size_bytes(prefix) > _LARGEST_COPY_BYTES:
        raise MissingCapability(
            f"user {owner.name} cannot run the programs in {bindir}, and they cannot be copied: "
            + (f"parts of them are elsewhere ({', '.join(outside)})" if outside else f"{prefix} holds much else"),
            where=str(bindir),
            hint=f"let user {owner.name} enter that directory, or set server.bindir to another installation",
        )
    return prefix


def _libraries(bindir: Path, runner: Runner) -> list[Path]:
    """Return folders outside of the prefix with libraries that programs find by relative paths, as wheels have them."""
    loaded = runner.run(["ldd", *(str(bindir / program) for program in PROGRAMS)], timeout_s=30).stdout
    folders = {Path(os.path.normpath(path)).parent for path in _LIBRARY.findall(loaded)}
    known = (*_SYSTEM, bindir.parent)
    return sorted(folder for folder in folders if not any(folder.is_relative_to(other) for other in known))


def _copied(parts: Sequence[Path], root: Path, version: str) -> Path:
    """Copy `parts`, as they are under `root`, into the cache, named by version and content; whole or not at all."""
    folder = ensure(cache_dir() / "postgresql")
    with _locked(folder / ".lock"):
        copy = folder / f"{version}-{_content_digest(parts, root)}"
        if copy.is_dir():
            return copy
        unfinished = folder / ".unfinished"
        try:
            if unfinished.exists():  # left by one that was killed while it held the lock
                shutil.rmtree(unfinished)
            for part in parts:
                shutil.copytree(part, unfinished / part.relative_to(root), symlinks=True, ignore=_NOT_COPIED)
            _open_to_all(unfinished)
            unfinished.rename(copy)
        except OSError as error:
            raise from_os_error(error, f"copy PostgreSQL {version} from {root}", copy) from error
        return copy


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock on the cache, which others hold while they copy."""
    try:
        lock = open_output(path)
    except OSError as error:
        raise from_os_error(error, "lock the cache of installations", path) from error
    with lock:
        wait_for_lock(lock.fileno())
        yield


def _open_to_all(folder: Path) -> None:
    """Make it readable for everybody, and executable where the owner may execute."""
    for parent, _, files in os.walk(folder):
        Path(parent).chmod(0o755)
        for name in files:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _content_digest(parts: Sequence[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for part in parts for path in _files(part)):
        digest.update(f"{path.relative_to(root)}\0".encode())
        try:
            with open_regular_file(path) as file:
                while part := file.read(_PART_BYTES):
                    digest.update(part)
        except OSError as error:
            raise from_os_error(error, "copy the installation", path) from error
    return digest.hexdigest()[:16]


def _size_bytes(folder: Path) -> int:
    total_bytes = 0
    for path in _files(folder):
        total_bytes += path.stat().st_size
        if total_bytes > _LARGEST_COPY_BYTES:
            break
    return total_bytes


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
