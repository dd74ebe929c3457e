"""Drops the page cache, and measures how much of a file is in it."""

import ctypes
import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from plinth.model.errors import MissingCapability
from plinth.system.regular_file import open_regular_file
from plinth.system.runner import CommandError, Runner

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
DROP_COMMAND = ("sh", "-c", f"echo 3 > {DROP_CACHES}")
"""Page cache, directory entries and inodes: Documentation/admin-guide/sysctl/vm."""
_MAP_FAILED = ctypes.c_void_p(-1).value
_MAP_SHARED, _PROT_READ = 1, 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def resident_bytes(path: Path) -> int:
    """Return the bytes of a file in the page cache (mincore(2)), in whole pages. Raises OSError.

    Only the owner of the file, or who may write to it, is told the truth: to others all of it is resident.
    """
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return 0
        address = _libc.mmap(None, size, _PROT_READ, _MAP_SHARED, file.fileno(), 0)
        if address == _MAP_FAILED:
            raise _errno(path)
        try:
            pages = -(-size // mmap.PAGESIZE)
            vector = (ctypes.c_ubyte * pages)()
            if _libc.mincore(address, size, vector) != 0:
                raise _errno(path)
            return sum(byte & 1 for byte in bytes(vector)) * mmap.PAGESIZE
        finally:
            _libc.munmap(address, size)


def write_back_command(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the command that syncs the file systems of `paths`, since only clean pages can be dropped."""
    return ("sync", "--file-system", *map(str, dict.fromkeys(paths)))


def may_drop_page_cache() -> bool:
    """Return whether this process may drop caches: as root, unless /proc/sys is read-only, as in many containers."""
    return os.access(DROP_CACHES, os.W_OK)


def drop_error(key: str, otherwise: str) -> MissingCapability | None:
    """Return an error for a key of an experiment that needs the page cache dropped, where this process may not do that."""
    if may_drop_page_cache():
        return None
    return MissingCapability(
        f"{key} needs the right to drop the page cache",
        where=str(DROP_CACHES),
        hint=f"run as root, where /proc/sys may be written to; {otherwise}",
    )


def drop_page_cache(paths: Sequence[Path], runner: Runner) -> None:
    """Write back the file systems of `paths`, and drop the page cache of the whole machine. Raises MissingCapability."""
    runner.run(write_back_command(paths))
    try:
        runner.run(DROP_COMMAND)
    except CommandError as error:
        raise MissingCapability(
            "the page cache cannot be dropped",
            where=str(DROP_CACHES),
            hint="run as root, where /proc/sys may be written to",
            details=error.details,
        ) from error


def _errno(path: Path) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(path))
