"""Creates the I/O probe's files, fills them with incompressible data, and removes them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.model.units import format_size
from plinth.system.failures import from_os_error
from plinth.system.timeout import statvfs_with_timeout

_CHUNK_BYTES = 1 << 20
_LEFT_FREE = 0.05
"""Share of the space that must remain free, since a full file system is slow."""


class OwnFile:
    """A file of `size_bytes` in `directory` that only Plinth uses."""

    def __init__(self, directory: Path, size_bytes: int, number: int = 0) -> None:
        """Create the file. Raises a PlinthError without space or permission."""
        self.path = directory / f"plinth-probe-{os.getpid()}{f'-{number}' if number else ''}.tmp"
        self.size_bytes = size_bytes
        self.left: str | None = None
        """Why the file could not be removed; None if it was."""
        self._made()

    def restored(self) -> bool:
        """Create the file again if it was removed, replaced or resized; return whether it was. Raises as the constructor."""
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
        """Truncate the file, discarding dirty pages. Raises a PlinthError, also if it was replaced by another file."""
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
        """Remove the file, if it is still there. Raises a PlinthError."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise from_os_error(error, "remove the probe's file", self.path) from error

    def _made(self) -> None:
        directory = self.path.parent
        try:
            _check_room(directory, [self.size_bytes])
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
def own_files(directory: Path, size_bytes: int, count: int) -> Iterator[tuple[OwnFile, ...]]:
    """Create `count` files of that size each for a `with` block, as `own_file` does, once there is room for all."""
    try:
        if count:
            _check_room(directory, [size_bytes] * count)
    except OSError as error:
        raise from_os_error(error, "make the probe's files", directory) from error
    with ExitStack() as stack:
        yield tuple(stack.enter_context(own_file(directory, size_bytes, number)) for number in range(count))


@contextmanager
def own_file(directory: Path, size_bytes: int, number: int = 0) -> Iterator[OwnFile]:
    """Create a file in `directory` for a `with` block. Raises a PlinthError without space or permission.

    A failure to remove it is in its `left`, and does not invalidate the results.
    """
    file = OwnFile(directory, size_bytes, number)
    try:
        yield file
    finally:
        try:
            file.remove()
        except PlinthError as error:
            file.left = error.message


def _check_room(directory: Path, sizes_bytes: Sequence[int]) -> None:
    space = statvfs_with_timeout(directory)
    free_bytes = space.f_bavail * space.f_frsize
    if sum(sizes_bytes) > free_bytes - _LEFT_FREE * space.f_blocks * space.f_frsize:
        one = f"a file of {format_size(sizes_bytes[0])}"
        several = (
            f"{len(sizes_bytes)} files of {format_size(sizes_bytes[0])}, one for each job that runs at the same time"
        )
        raise MissingCapability(
            f"no room for {one if len(sizes_bytes) == 1 else several}: {format_size(free_bytes)} are free, of which 5 % of the "
            "file system are left alone",
            where=str(directory),
            hint="give a smaller --size, or another place",
        )


def _fill(fd: int, size_bytes: int) -> None:
    chunk = memoryview(bytearray(os.urandom(_CHUNK_BYTES)))
    written = 0
    while written < size_bytes:
        chunk[:8] = written.to_bytes(8, "little")  # all chunks differ
        written += os.write(fd, chunk[: min(_CHUNK_BYTES, size_bytes - written)])
    os.fsync(fd)
