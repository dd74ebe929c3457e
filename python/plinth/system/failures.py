"""Converts errors of the operating system to errors with location, exit code and hint; reads what the kernel logs of them."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError, UsageError

_KINDS: dict[int, tuple[type[PlinthError], str, str]] = {
    errno.ENOSPC: (MissingCapability, "no space left", "free some space there, or choose another place"),
    errno.EDQUOT: (MissingCapability, "the disk quota is used up", "free some space there, or choose another place"),
    errno.EACCES: (MissingCapability, "permission denied", "choose a place that this user may write to"),
    errno.EPERM: (MissingCapability, "operation not permitted", "choose a place that this user may write to"),
    errno.EROFS: (MissingCapability, "the file system is read-only", "choose a place that can be written to"),
    errno.ENOENT: (UsageError, "no such directory", "make it first, or correct the path"),
    errno.ENOTDIR: (UsageError, "it is, or leads through, something that is not a directory", "name a directory"),
    errno.ELOOP: (Refused, "it is a symbolic link, which is not followed here", "name the place itself"),
    errno.EEXIST: (Refused, "it is there already, and not made by this run", "move it away, or choose another place"),
    errno.ETIMEDOUT: (
        MissingCapability,
        "no answer in time",
        "its disk, or what serves it, hangs: choose another place",
    ),
    errno.ENAMETOOLONG: (UsageError, "the path is too long", "choose a shorter one"),
}


_NO_INODES = (
    MissingCapability,
    "no inodes left: there is space, but the file system can hold no further file",
    "remove files there, or choose another place (df -i shows inodes)",
)


_FILES_OF_A_TRANSACTION = 10_000
"""Free inodes below this count as none: a failing transaction or initdb removes the files that it created."""


def lacks_inodes(path: Path, said: Iterable[str] = ()) -> bool:
    """Return whether the file system of `path` counts its inodes and has none left, but space.

    A server that fails for it removes the files that it had just made before anybody can look: then few inodes are left, and it
    has `said` that it could not create a file.
    """
    could_not_create = any("could not create" in line for line in said)
    most_left = _FILES_OF_A_TRANSACTION if could_not_create else 0
    for place in (path, *path.parents):
        try:
            found = os.statvfs(place)
        except OSError:
            continue  # the file could not be created: check the file system of its directory
        return found.f_files > 0 and found.f_favail <= most_left and found.f_bavail > 0
    return False


class WrongFile(OSError):
    """A path leads to something that is not read or written there, such as a FIFO; `strerror` says what it is."""


def from_os_error(error: OSError, doing: str, path: Path, hint: str | None = None) -> PlinthError:
    """Return the error to raise when `doing` ("make the directory") failed at `path`; `hint` overrides the default."""
    if error.errno == errno.ENOSPC and lacks_inodes(path):
        kind, reason, usual_hint = _NO_INODES
        return kind(f"cannot {doing}: {reason}", where=str(path), hint=hint or usual_hint)
    if isinstance(error, WrongFile):
        return UsageError(f"cannot {doing}: {error.strerror}", where=str(path), hint=hint or "name a regular file")
    kind, reason, usual_hint = _KINDS.get(error.errno or 0, (RunError, error.strerror or str(error), None))
    return kind(f"cannot {doing}: {reason}", where=str(path), hint=hint or usual_hint)


_KMSG = "/dev/kmsg"  # one record at a time: "priority,sequence,time,flags;message" (Documentation/ABI/testing/dev-kmsg)
_RECORD_MAX_BYTES = 8192


@contextmanager
def kernel_log() -> Iterator[Callable[[], list[str]]]:
    """Yield a function that returns the lines that the kernel has logged since; none where we may not read its log."""
    try:
        log = os.open(_KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield list
        return
    try:
        os.lseek(log, 0, os.SEEK_END)
        yield lambda: list(_read_on(log))
    finally:
        os.close(log)


def _read_on(log: int) -> Iterator[str]:
    while True:
        try:
            record = os.read(log, _RECORD_MAX_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:  # records were overwritten before they were read
            continue
        yield record.decode(errors="replace").partition(";")[2].partition("\n")[0]
