"""Small files of another user, such as the server's, who may have put anything in their place."""

import errno
import os
import stat
from pathlib import Path

_MOST_BYTES = 64 * 1024


def read_small_file(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """The first bytes of a regular file. Raises OSError for what is none: a link, a FIFO, a device, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        content = bytearray()
        while len(content) < most_bytes and (part := os.read(descriptor, most_bytes - len(content))):
            content += part
        return bytes(content)
    finally:
        os.close(descriptor)
