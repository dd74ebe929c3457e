"""Regular files of other users, such as the server's, who may have put anything in their place: their bytes, where these are, and
copies that share them.
"""

import errno
import fcntl
import io
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.system.failures import from_os_error
from plinth.system.timeout import call_with_timeout

_MOST_BYTES = 64 * 1024


def open_regular_file(path: Path) -> io.FileIO:
    """Open a regular file to read it, unbuffered. Raises OSError for a link, a FIFO or a device, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return io.FileIO(descriptor)
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_small_file(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Read the first bytes of a regular file. Raises OSError for anything else."""
    with open_regular_file(path) as file:
        content = bytearray()
        while len(content) < most_bytes and (part := file.read(most_bytes - len(content))):
            content += part
        return bytes(content)


_FS_IOC_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQIIII")  # start, length, flags, mapped_extents, extent_count, reserved
_EXTENT = struct.Struct("=QQQQQIIII")  # logical, physical, length, reserved, reserved, flags, reserved
_AT_ONCE = 64
_LAST, _UNKNOWN, _DELAYED, _ENCODED = 0x1, 0x2, 0x4, 0x8
_NOWHERE = _UNKNOWN | _DELAYED | _ENCODED


class FileExtent(NamedTuple):
    """A range of a file, and where it begins on the device."""

    offset: int
    device_offset: int
    length: int


def file_extents(path: Path) -> Iterator[FileExtent]:
    """Return the ranges of a file that have a place on the device, in order. Raises OSError where the file system tells none."""
    with open_regular_file(path) as file:
        start = 0
        while True:
            buffer = bytearray(_HEADER.size + _AT_ONCE * _EXTENT.size)
            _HEADER.pack_into(buffer, 0, start, 2**64 - 1 - start, 0, 0, _AT_ONCE, 0)
            fcntl.ioctl(file, _FS_IOC_FIEMAP, buffer)
            found = _HEADER.unpack_from(buffer)[3]
            flags = _LAST
            for number in range(found):
                offset, place, length, _, _, flags, *_ = _EXTENT.unpack_from(
                    buffer, _HEADER.size + number * _EXTENT.size
                )
                start = offset + length
                if not flags & _NOWHERE:
                    yield FileExtent(offset, place, length)
            if not found or flags & _LAST:
                return


_FICLONE = 0x40049409
"""_IOW(0x94, 9, int), of linux/fs.h."""
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS, errno.EXDEV)
_PROBE = b"\0" * 4096


def has_reflinks(directory: Path) -> bool:
    """Try it with two files without names in `directory`. Raises a PlinthError when none can be made there."""

    def try_it() -> bool:
        with tempfile.TemporaryFile(dir=directory) as source, tempfile.TemporaryFile(dir=directory) as target:
            source.write(_PROBE)
            source.flush()
            try:
                fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
            except OSError as error:
                if error.errno not in _NOT_SUPPORTED:
                    raise
                return False
            return True

    try:
        return call_with_timeout(try_it, directory)
    except OSError as error:
        raise from_os_error(error, "try a copy that shares its blocks", directory) from error
