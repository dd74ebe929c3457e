"""Opens log files for appending, without following links to other files."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from plinth.model.errors import Refused, RunError
from plinth.system.failures import from_os_error

Opener = Callable[[int], int]
"""Opens the file with flags of open(2); returns its descriptor."""


class LogFile:
    """The log at `path`: a regular file, which no symbolic link leads to.

    `opener` opens it where its path is not to be trusted, as within a folder that is held open; without one it is opened
    by `path`. Raises a PlinthError when it cannot be opened.
    """

    def __init__(self, path: Path, opener: Opener | None = None) -> None:
        self.path = path
        self._opener = opener or self._by_path

    def to_append(self) -> IO[bytes]:
        """Return the file, made where it is not there, for writing at its end. Refused for one that has a second name."""
        file = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT, "ab")
        if os.fstat(file.fileno()).st_nlink > 1:  # a hard link may lead to a system file
            file.close()
            raise Refused("cannot write the log: it is a hard link to another file", where=str(self.path))
        return file

    def to_read(self) -> IO[bytes] | None:
        """Open the file for reading; return None if it does not exist."""
        try:
            return self._open(os.O_RDONLY, "rb")
        except FileNotFoundError:
            return None

    def size_bytes(self) -> int:
        """Return its size; 0 if it does not exist."""
        file = self.to_read()
        if file is None:
            return 0
        with file:
            return file.seek(0, os.SEEK_END)

    def tail(self, most_bytes: int, since: int = 0) -> str:
        """Return the end of it as text, without what was in it up to byte `since`; empty if it does not exist."""
        file = self.to_read()
        if file is None:
            return ""
        with file:
            file.seek(max(since, file.seek(0, os.SEEK_END) - most_bytes))
            return file.read().decode(errors="replace")

    def _open(self, flags: int, mode: str) -> IO[bytes]:
        try:
            descriptor = self._opener(flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            if not flags & os.O_CREAT:
                raise
            raise RunError("cannot write the log: its folder is no longer there", where=str(self.path)) from error
        except OSError as error:
            raise self._failed(error) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._failed(OSError(errno.EINVAL, "it is not a regular file"))
        return os.fdopen(descriptor, mode)

    def _failed(self, error: OSError) -> Exception:
        return from_os_error(error, "open the log", self.path)

    def _by_path(self, flags: int) -> int:
        return os.open(self.path, flags, 0o644)


@contextmanager
def log_in_memory() -> Iterator[LogFile]:
    """Yield a log that only this process reads: nothing is left of it, however the process ends."""
    descriptor = os.memfd_create("log")
    try:
        opened = Path(f"/proc/self/fd/{descriptor}")
        yield LogFile(opened, lambda flags: os.open(opened, flags & ~(os.O_NOFOLLOW | os.O_CREAT)))
    finally:
        os.close(descriptor)
