"""Where the bytes of a file are on the device below its file system: FIEMAP (Linux, Documentation/filesystems/fiemap.rst)."""

import fcntl
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.system.regular_file import open_regular_file

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
    """The ranges of a file that have a place on the device, in order. Raises OSError where the file system tells none."""
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
