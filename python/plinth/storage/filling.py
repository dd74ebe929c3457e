"""A full file system on purpose: one file takes all of its free space, and gives it back."""

import ctypes
import errno
import os
from pathlib import Path

from plinth.model.errors import Refused
from plinth.system import cancel
from plinth.system.failures import from_os_error

FILL_FILE = ".plinth-fill"
"""In the root of the file system."""
_LEAST_BYTES = 4096
_CHUNK_BYTES = 2**20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def fill_up(root: Path) -> int:
    """Take all free space of the file system that is mounted on `root`; returns the size of the file that does.

    Space is allocated where the file system can do that (fallocate), so that its disk has nothing to write, else filled with random
    bytes. Raises Refused for a directory that is not the root of a file system of its own.
    """
    if not os.path.ismount(root):
        raise Refused("it shares its file system with other directories, which would be full, too", where=str(root))
    path = root / FILL_FILE
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _allocate(file, root)
            _write(file)
            return os.fstat(file).st_size
        finally:
            os.close(file)
    except OSError as error:
        raise from_os_error(error, "fill the file system", path) from error


def free_again(root: Path) -> None:
    """Remove the file; nothing when there is none, as after a power cut."""
    path = root / FILL_FILE
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise from_os_error(error, "free the file system", path) from error


def _allocate(file: int, root: Path) -> None:
    """Allocate as long as there are free blocks: all of them, or else half of what was too much."""
    asked = free = _free_bytes(root)
    while asked >= _LEAST_BYTES:
        cancel.check()
        failed = _fallocate(file, os.fstat(file).st_size, asked)
        if failed == errno.ENOSPC:
            asked //= 2
        elif failed or _free_bytes(root) > free - asked // 2:
            return  # it cannot, or has promised what it does not keep, as ZFS
        else:
            asked = free = _free_bytes(root)


def _fallocate(file: int, offset: int, length: int) -> int:
    """fallocate(2), for which posix_fallocate(3) would write where there is none; returns errno, or 0."""
    return 0 if _libc.fallocate(file, 0, offset, length) == 0 else ctypes.get_errno()


def _write(file: int) -> None:
    """Write until there is no space: what could not be allocated."""
    os.lseek(file, 0, os.SEEK_END)
    size_bytes = _CHUNK_BYTES
    while size_bytes >= _LEAST_BYTES:
        cancel.check()
        try:
            os.write(file, os.urandom(size_bytes))
            os.fdatasync(file)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            size_bytes //= 2


def _free_bytes(root: Path) -> int:
    space = os.statvfs(root)
    return space.f_bavail * space.f_frsize
