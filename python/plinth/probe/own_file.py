"""The I/O probe's file: made new, filled with what cannot be compressed, and removed."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.model.errors import MissingCapability
from plinth.model.units import format_size
from plinth.system.failures import from_os_error

_CHUNK_BYTES = 1 << 20
_LEFT_FREE = 0.05
"""Of a file system that fills up entirely, everything is slow."""


@contextmanager
def own_file(directory: Path, size_bytes: int) -> Iterator[Path]:
    """A new file in `directory` while this lasts. Raises a PlinthError when there is no room or right to make it."""
    path = directory / f"plinth-probe-{os.getpid()}.tmp"
    try:
        space = os.statvfs(directory)
        free_bytes = space.f_bavail * space.f_frsize
        if size_bytes > free_bytes - _LEFT_FREE * space.f_blocks * space.f_frsize:
            raise MissingCapability(
                f"no room for a file of {format_size(size_bytes)}: {format_size(free_bytes)} are free, of which 5 % of the "
                "file system are left alone",
                where=str(directory),
                hint="give a smaller --size, or another place",
            )
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise from_os_error(error, "make the probe's file", directory) from error
    try:
        try:
            _fill(fd, size_bytes)
        except OSError as error:
            raise from_os_error(error, "fill the probe's file", path) from error
        finally:
            os.close(fd)
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _fill(fd: int, size_bytes: int) -> None:
    chunk = memoryview(bytearray(os.urandom(_CHUNK_BYTES)))
    written = 0
    while written < size_bytes:
        chunk[:8] = written.to_bytes(8, "little")  # no two chunks alike
        written += os.write(fd, chunk[: min(_CHUNK_BYTES, size_bytes - written)])
    os.fsync(fd)
