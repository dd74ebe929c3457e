"""A file system by FUSE that has one directory, which it refuses to sync: the kernel's protocol (linux/fuse.h), version 7.31."""

import contextlib
import ctypes
import errno
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import wait_until

LOOKUP, FORGET, GETATTR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, ACCESS, BATCH_FORGET = (
    1, 2, 3, 17, 26, 27, 28, 29, 30, 34, 42,
)  # fmt: skip
_IN_HEADER = struct.Struct("<IIQQIIIHH")
_OUT_HEADER = struct.Struct("<IiQ")
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def refusing(place: Path) -> Iterator[None]:
    """While it is entered, `place` is such a file system. It needs root."""
    child = subprocess.Popen([sys.executable, __file__, str(place)])
    try:
        wait_until(lambda: place.is_mount(), "the file system is mounted")
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
        child.wait(10)


def _serve(place: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if _libc.mount(b"refusing", place.encode(), b"fuse.refusing", 0, options):
        raise OSError(ctypes.get_errno(), "mount")
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError as error:
            if error.errno == errno.ENODEV:  # it was unmounted
                return
            raise
        _, operation, unique, *_ = _IN_HEADER.unpack_from(request)
        if operation in (FORGET, BATCH_FORGET):
            continue
        code, content = _answer(operation)
        with contextlib.suppress(FileNotFoundError):  # who asked has been interrupted
            os.write(device, _OUT_HEADER.pack(_OUT_HEADER.size + len(content), -code, unique) + content)


def _answer(operation: int) -> tuple[int, bytes]:
    """The error, or 0, and what follows it."""
    match operation:
        case _ if operation == INIT:
            return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0)
        case _ if operation == GETATTR:
            attributes = struct.pack(
                "<6Q10I", 1, 4096, 8, 0, 0, 0, 0, 0, 0, stat.S_IFDIR | 0o777, 2, os.getuid(), os.getgid(), 0, 4096, 0
            )
            return 0, struct.pack("<QII", 3600, 0, 0) + attributes
        case _ if operation == STATFS:
            return 0, struct.pack("<5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 1000, 900, 4096, 255, 4096, 0)
        case _ if operation == OPENDIR:
            return 0, struct.pack("<QII", 1, 0, 0)
        case _ if operation in (READDIR, RELEASEDIR, ACCESS):
            return 0, b""
        case _ if operation == LOOKUP:
            return errno.ENOENT, b""
        case _ if operation == FSYNCDIR:
            return errno.EIO, b""
    return errno.ENOSYS, b""


if __name__ == "__main__":
    _serve(sys.argv[1])
