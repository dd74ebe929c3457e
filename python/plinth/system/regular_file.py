"""Opens files that others may have named or put there, by their type: a FIFO or a device is refused before it is opened.

This is the one way to open a path that came from a command line, an experiment, the environment or a folder of another user. It also
tells where the bytes of such files are, and makes copies that share them.
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

from plinth.system.failures import WrongFile, from_os_error
from plinth.system.timeout import call_with_timeout

_MOST_BYTES = 64 * 1024
MOST_TEXT_BYTES = 16 * 2**20
"""Maximum size of a text that is read as a whole."""
_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DESCRIPTORS = Path("/proc/self/fd")
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
}
FILE_KIND = _KINDS[stat.S_IFREG]
FOLDER_KIND = _KINDS[stat.S_IFDIR]
LINK_KIND = _KINDS[stat.S_IFLNK]
_NULL_DEVICE = os.makedev(1, 3)
_OF_THE_KERNEL = ("/proc", "/sys", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/cgroup")
"""Mount points whose regular files are answers of the kernel: reading /proc/kmsg waits, and takes what it reads from others."""


def kind_of(mode: int) -> str:
    """Return what a file is by its st_mode, as in "a FIFO"."""
    return _KINDS.get(stat.S_IFMT(mode), "of no known kind")


def open_regular_file(
    path: Path | str, *, follow_links: bool = False, flags: int = os.O_RDONLY, dir_fd: int | None = None
) -> io.FileIO:
    """Open a regular file that is there, unbuffered, by default to read it.

    Raises OSError for everything else, which is not opened: opening a FIFO waits, and opening a device may do something. The type
    is that of the file that is then opened, also if something else is put in its place in between. A link is refused unless `follow_links`.
    """
    found = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        status = os.fstat(found)
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(status.st_mode, path)
        if follow_links:
            _refuse_of_the_kernel(status, path)
        opened = os.open(_DESCRIPTORS / str(found), flags | _FLAGS)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(found)
    return io.FileIO(opened, "rb" if flags & os.O_ACCMODE == os.O_RDONLY else "wb")


def check_regular_if_there(path: Path | str, most_bytes: int | None = None) -> None:
    """Raise OSError where something other than a regular file, or one of more than `most_bytes`, is at `path`, after all links.

    For paths that a library or another program opens.
    """
    try:
        status = Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(status.st_mode, path)
    _refuse_of_the_kernel(status, path)
    if most_bytes is not None and status.st_size > most_bytes:
        raise _too_large(most_bytes, path)


def open_given(path: Path | str) -> io.FileIO:
    """Open, to read it, a file that the user named on the command line.

    It is a regular file, or what this process was started with, as `/dev/stdin` or a shell's `<(command)`: that is read as it
    comes. Raises OSError for everything else, which is not opened.
    """
    handed = _handed(path, os.O_RDONLY)
    return open_regular_file(path, follow_links=True) if handed is None else io.FileIO(handed, "rb")


def open_output(path: Path | str) -> io.FileIO:
    """Open, to write it from its beginning, a file that the user named on the command line; it is made where it is not there.

    It is a regular file, /dev/null, or what this process was started with, as `/dev/stdout` or a shell's `>(command)`. Raises
    OSError for everything else, which is neither opened nor replaced.
    """
    handed = _handed(path, os.O_WRONLY)
    if handed is not None:
        return io.FileIO(handed, "wb")
    try:
        file = open_regular_file(path, follow_links=True, flags=os.O_WRONLY)
    except FileNotFoundError:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | _FLAGS, 0o666)
        file = io.FileIO(opened, "wb")
        if not stat.S_ISREG(mode := os.fstat(opened).st_mode):  # it was put there just now
            file.close()
            raise _not_regular(mode, path) from None
    file.truncate()
    return file


def read_given(path: Path | str, most_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """Read what `open_given` opens. Raises OSError, also for more than `most_bytes`."""
    with open_given(path) as file:
        content = read_up_to(file, most_bytes + 1)
    if len(content) > most_bytes:
        raise _too_large(most_bytes, path)
    return content


def read_small_file(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Read the first bytes of a regular file. Raises OSError for anything else."""
    with open_regular_file(path) as file:
        return read_up_to(file, most_bytes)


def read_up_to(file: io.FileIO, most_bytes: int) -> bytes:
    """Read the first bytes of a file that is open."""
    content = bytearray()
    while len(content) < most_bytes and (part := file.read(min(most_bytes - len(content), 2**20))):
        content += part
    return bytes(content)


def _too_large(most_bytes: int, path: Path | str) -> WrongFile:
    most = f"{most_bytes // 2**20} MiB" if most_bytes >= 2**20 else f"{most_bytes // 2**10} KiB"
    return WrongFile(errno.EFBIG, f"it is larger than {most}", str(path))


def _not_regular(mode: int, path: Path | str) -> WrongFile:
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    return WrongFile(number, f"it is {kind_of(mode)}, not a regular file", str(path))


def _refuse_of_the_kernel(status: os.stat_result, path: Path | str) -> None:
    point = next((point for point in _OF_THE_KERNEL if _mounted_device(point) == status.st_dev), None)
    if point is not None:
        raise WrongFile(errno.EINVAL, f"it is an answer of the kernel's, in {point}, not a regular file", str(path))


def _mounted_device(point: str) -> int | None:
    try:
        return Path(point).stat().st_dev if os.path.ismount(point) else None
    except OSError:  # it is not there, or closed to this user
        return None


def _handed(path: Path | str, access: int) -> int | None:
    """Return a copy of the descriptor that this process was started with and that `path` leads to, unless that is a file."""
    try:
        asked = Path(path).stat()
    except OSError:
        return None  # which opening it will say
    if stat.S_ISREG(asked.st_mode) or stat.S_ISDIR(asked.st_mode):
        return None
    if access == os.O_WRONLY and stat.S_ISCHR(asked.st_mode) and asked.st_rdev == _NULL_DEVICE:
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for number in [int(descriptor.name) for descriptor in _DESCRIPTORS.iterdir()]:
        try:
            ours, mode = os.fstat(number), fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
        except OSError:  # the one that listed them
            continue
        if mode in (access, os.O_RDWR) and _is_same(asked, ours):
            return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 0)
    return None


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    """Return whether both are one pipe or one device: a device may have several names."""
    if stat.S_IFMT(one.st_mode) != stat.S_IFMT(other.st_mode):
        return False
    if stat.S_ISCHR(one.st_mode) or stat.S_ISBLK(one.st_mode):
        return one.st_rdev == other.st_rdev
    return os.path.samestat(one, other)


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
