"""The I/O probe's file: made new, filled with what cannot be compressed, and removed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import Interrupted, MissingCapability, PlinthError, RunError
from plinth.model.units import format_size
from plinth.system.failures import from_os_error
from plinth.system.timeout import statvfs_with_timeout

_CHUNK_BYTES = 1 << 20
_LEFT_FREE = 0.05
"""Of a file system that fills up entirely, everything is slow."""


class OwnFile:
    """A file of `size_bytes` in `directory` that is Plinth's alone."""

    def __init__(self, directory: Path, size_bytes: int) -> None:
        """Make it. Raises a PlinthError when there is no room or right to."""
        self.path = directory / f"plinth-probe-{os.getpid()}.tmp"
        self.size_bytes = size_bytes
        self.left: str | None = None
        """Why it is still there, once it is over."""
        self._made()

    def restored(self) -> bool:
        """Whether what used it had removed, replaced or resized it, so that it was made anew. Raises as the class does."""
        try:
            now = self.path.lstat()
            if (now.st_ino, now.st_size) == (self._inode, self.size_bytes):
                return False
        except FileNotFoundError:
            pass  # removed
        except OSError as error:
            raise from_os_error(error, "look at the probe's file", self.path) from error
        self.remove()
        self._made()
        return True

    def empty(self) -> None:
        """Cut it to no length, with what was not yet written back of it. Raises a PlinthError, also if it is another's now."""
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(fd).st_ino != self._inode:
                    raise RunError("the probe's file was replaced by another", where=str(self.path))
                os.ftruncate(fd, 0)
            finally:
                os.close(fd)
        except OSError as error:
            raise from_os_error(error, "empty the probe's file", self.path) from error

    def remove(self) -> None:
        """Also if it is gone. Raises a PlinthError."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise from_os_error(error, "remove the probe's file", self.path) from error

    def _made(self) -> None:
        directory = self.path.parent
        try:
            _check_room(directory, self.size_bytes)
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise from_os_error(error, "make the probe's file", directory) from error
        try:
            self._inode = os.fstat(fd).st_ino
            _fill(fd, self.size_bytes)
        except BaseException as error:
            self.remove()
            if isinstance(error, OSError):
                raise from_os_error(error, "fill the probe's file", self.path) from error
            raise
        finally:
            os.close(fd)


@contextmanager
def own_file(directory: Path, size_bytes: int) -> Iterator[OwnFile]:
    """A new file in `directory` while this lasts. Raises a PlinthError when there is no room or right to make it.

    That it cannot be removed is in its `left`, and takes nothing from what was measured.
    """
    file = OwnFile(directory, size_bytes)
    try:
        yield file
    finally:
        try:
            file.remove()
        except Interrupted:
            raise
        except PlinthError as error:
            file.left = error.message


def _check_room(directory: Path, size_bytes: int) -> None:
    space = statvfs_with_timeout(directory)
    free_bytes = space.f_bavail * space.f_frsize
    if size_bytes > free_bytes - _LEFT_FREE * space.f_blocks * space.f_frsize:
        raise MissingCapability(
            f"no room for a file of {format_size(size_bytes)}: {format_size(free_bytes)} are free, of which 5 % of the "
            "file system are left alone",
            where=str(directory),
            hint="give a smaller --size, or another place",
        )


def _fill(fd: int, size_bytes: int) -> None:
    chunk = memoryview(bytearray(os.urandom(_CHUNK_BYTES)))
    written = 0
    while written < size_bytes:
        chunk[:8] = written.to_bytes(8, "little")  # no two chunks alike
        written += os.write(fd, chunk[: min(_CHUNK_BYTES, size_bytes - written)])
    os.fsync(fd)
