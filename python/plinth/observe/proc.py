"""Reads files of /proc and /sys repeatedly at low cost."""

import os
from collections.abc import Callable, Collection
from pathlib import Path

# Places in what stat_fields gives; proc(5) counts from 1, with two fields before them.
STATE, PARENT, UTIME, STIME, CUTIME, CSTIME = 0, 1, 11, 12, 13, 14
_CHUNK = 1 << 16
_SHORT = 1 << 12
_LONGEST_NUMBER = 40  # with the spaces before it
_ENDED_STATES = (b"Z", b"X")


class ProcFile:
    """A kernel file that is kept open; each read starts at its beginning and returns current values."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._fd: int | None = None

    def read(self) -> bytes:
        """Return the whole content. Raises OSError with the file's name."""
        try:
            if self._fd is None:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            # The kernel returns such files in pieces of about a page.
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
        """Close it; a later read opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:  # with the observer of a trial, of which an experiment may have hundreds
        self.close()


def number_of(text: bytes, key: bytes) -> int | None:
    """Return the first number in the line that begins with `key`; None if there is no such line.

    It looks for the few lines that are used, where to split a file of hundreds of lines takes several times as long.
    """
    line = 0 if text.startswith(key) else text.find(b"\n" + key) + 1
    if line == 0 and not text.startswith(key):
        return None
    begin = line + len(key)
    return int(text[begin : begin + _LONGEST_NUMBER].split(None, 1)[0])


class KeptFiles:
    """Short files of processes, such as /proc/PID/stat, kept open as long as there are few: to open one costs most.

    Of the files that a process may have open, most are for the load's clients.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._fds: dict[str, int] = {}

    def read(self, path: str) -> bytes:
        """Return the start of the file. Raises OSError with the file's name; ProcessLookupError if the process has ended."""
        fd = self._fds.get(path)
        if fd is None:
            if len(self._fds) >= self._most:
                return read_once(path)
            fd = self._fds[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, _SHORT, 0)
        except OSError as error:
            os.close(self._fds.pop(path))
            raise OSError(error.errno, error.strerror, path) from error

    def keep(self, folders: Collection[str]) -> None:
        """Close the files that are in none of these directories."""
        for path in [path for path in self._fds if path.rpartition("/")[0] not in folders]:
            os.close(self._fds.pop(path))

    def __del__(self) -> None:
        self.keep(())


def read_once(path: str) -> bytes:
    """Return the start of a short file, such as one of /proc/PID, which is not kept open: there may be thousands.

    Raises OSError, naming the file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _SHORT)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(fd)


def stat_fields(path: str, read: Callable[[str], bytes] = read_once) -> list[bytes]:
    """Return what `path`/stat, of a process or thread, has after the command's name, which may hold anything.

    Raises ProcessLookupError for a process that has ended, though its parent has not yet looked.
    """
    stat = read(f"{path}/stat")
    fields = stat[stat.rindex(b")") + 2 :].split(None, CSTIME + 1)
    if fields[STATE] in _ENDED_STATES:
        raise ProcessLookupError(f"{path} has ended")
    return fields
