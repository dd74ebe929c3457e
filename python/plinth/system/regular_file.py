"""Files of another user, such as the server's, who may have put anything in their place."""

import errno
import io
import os
import stat
from pathlib import Path

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
