"""Files of /proc and /sys that are read again and again."""

import os
from pathlib import Path

_CHUNK = 1 << 16


class ProcFile:
    """A file of the kernel's that is kept open: each read starts anew at its beginning and shows the present."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._fd: int | None = None

    def read(self) -> bytes:
        """All of it. Raises OSError, naming the file."""
        try:
            if self._fd is None:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            # The kernel hands out such files a page or so at a time.
            chunks = []
            offset = 0
            while chunk := os.pread(self._fd, _CHUNK, offset):
                chunks.append(chunk)
                offset += len(chunk)
            return b"".join(chunks)
        except OSError as error:
            self.close()
            raise OSError(error.errno, error.strerror, self.path) from error

    def close(self) -> None:
        """Close it; a later read opens it anew."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def read_once(path: str) -> bytes:
    """The start of a short file, such as one of /proc/PID, which is not kept open: there may be thousands.

    Raises OSError, naming the file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _CHUNK)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(fd)
