"""Paths of Plinth's files: journals, keys of runs, storages without a configured path, the cache; and how long a socket's may be."""

import os
import re
from pathlib import Path

from plinth.model.errors import Refused, UsageError
from plinth.system.failures import from_os_error

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def state_dir() -> Path:
    """Return $PLINTH_STATE_DIR; else /var/lib/plinth for root; else $XDG_STATE_HOME/plinth or ~/.local/state/plinth.

    Nothing is made: see `ensure`.
    """
    if chosen := os.environ.get("PLINTH_STATE_DIR"):
        return Path(os.path.realpath(chosen))
    if os.geteuid() == 0:
        return Path("/var/lib/plinth")
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        # The XDG Base Directory Specification says to ignore relative paths; `clean` in another directory would not find it.
        return (base if base.is_absolute() else Path.home() / ".local/state") / "plinth"
    except RuntimeError as error:
        raise UsageError(
            f"no home directory to keep Plinth's state in: {error}", hint="set PLINTH_STATE_DIR to a directory of yours"
        ) from error


def journal_dir() -> Path:
    """Return the directory of journals, without creating it."""
    return state_dir() / "journal"


def keys_dir() -> Path:
    """Return the directory of the keys of runs, without creating it."""
    return state_dir() / "keys"


def checked_run_id(run_id: str) -> str:
    """Return `run_id` if it is a valid id and file name. Raises UsageError."""
    if not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"{run_id!r} cannot be a run id: letters, digits, '.', '_' and '-', at most 80")
    return run_id


def work_dir() -> Path:
    """Return the directory of storages without a configured path, without creating it."""
    return state_dir() / "work"


def cache_dir() -> Path:
    """Return the cache directory, without creating it."""
    return state_dir() / "cache"


def ensure(path: Path) -> Path:
    """Make `path` and its missing parents, and check that it is a directory of ours.

    What root makes can be entered by all (0755), since servers run as another user; other users'
    folders are their own (0700). Folders that are there keep their mode.
    """
    mode = 0o755 if os.geteuid() == 0 else 0o700
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        found = path.stat()
        if not path.is_dir():
            raise UsageError("not a directory", where=str(path), hint="set PLINTH_STATE_DIR to a directory of yours")
    except OSError as error:
        raise from_os_error(error, "make the directory for Plinth's state", path) from error
    if found.st_uid != os.geteuid():
        raise Refused(
            f"Plinth's state directory belongs to user id {found.st_uid}, not to us ({os.geteuid()})",
            where=str(path),
            hint="set PLINTH_STATE_DIR to a directory of yours",
        )
    return path


def sync_folder(folder: Path) -> None:
    """Call fsync on a directory, so that its entries survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_PATH_MAX_BYTES = 107
"""sun_path of unix(7) has 108 bytes, and the last one is zero."""


def check_socket_path(path: Path, hint: str | None = None) -> None:
    """Raise UsageError, with `hint`, when `path` is too long for a Unix socket."""
    length = len(os.fsencode(path))
    if length > _PATH_MAX_BYTES:
        raise UsageError(
            f"the path of the socket has {length} bytes; a Unix socket's path has at most {_PATH_MAX_BYTES}",
            where=str(path),
            hint=hint,
        )
