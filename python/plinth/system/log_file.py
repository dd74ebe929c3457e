"""Opens log files for appending, without following links to other files."""

import errno
import os
import select
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from plinth.model.errors import Refused, RunError
from plinth.system.failures import from_os_error

_PIPE_BYTES = 64 * 1024
_LOG_PAUSE_MS = 10
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


@contextmanager
def end_in_memory(kept_bytes: int) -> Iterator[LogFile]:
    """Yield a log of which only the end is kept, and only this process reads it: what writes to it may write without end."""
    log = _EndOfLog(kept_bytes)
    try:
        yield log
    finally:
        log.close()


class _EndOfLog(LogFile):
    """A pipe that is read all the time, but not faster than a program has to print."""

    def __init__(self, kept_bytes: int) -> None:
        self._kept_bytes = kept_bytes
        self._kept = bytearray()
        self._reading = threading.Lock()
        self._read_end, self._write_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_end, False)
        self._closing = os.eventfd(0, os.EFD_CLOEXEC)
        super().__init__(Path(f"/proc/self/fd/{self._read_end}"))
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def to_append(self) -> IO[bytes]:
        """Return the pipe, for writing."""
        return os.fdopen(os.dup(self._write_end), "ab")

    def tail(self, most_bytes: int, since: int = 0) -> str:
        """Return the end of it as text."""
        assert since == 0, "nothing is known of what was before"
        with self._reading:
            self._take()
            return self._kept[-most_bytes:].decode(errors="replace")

    def close(self) -> None:
        """Read no more."""
        os.eventfd_write(self._closing, 1)
        self._thread.join()
        for descriptor in (self._read_end, self._write_end, self._closing):
            os.close(descriptor)

    def _run(self) -> None:
        ready = select.poll()
        ready.register(self._read_end, select.POLLIN)
        closing = select.poll()
        closing.register(self._closing, select.POLLIN)
        ready.register(self._closing, select.POLLIN)
        while self._closing not in (descriptor for descriptor, _ in ready.poll()):
            with self._reading:
                self._take()
            closing.poll(_LOG_PAUSE_MS)

    def _take(self) -> None:
        try:
            self._kept += os.read(self._read_end, _PIPE_BYTES)
        except BlockingIOError:
            return
        del self._kept[: -self._kept_bytes]
