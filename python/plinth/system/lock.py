"""A lock on a directory, so that only one process of Plinth works in it."""

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from typing import Self

from plinth.model.errors import Refused
from plinth.system import cancel
from plinth.system.failures import from_os_error

LOCK_FILE = ".plinth.lock"
_POLL_S = 0.05


def try_lock(fd: int) -> bool:
    """Take the flock of an open file without waiting; False when another holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(fd: int) -> None:
    """Take the flock of an open file once nobody else holds it. Raises the reason if the work is cancelled: flock(2) would go on waiting."""
    while not try_lock(fd):
        cancel.sleep(_POLL_S)


def is_locked(directory: int) -> bool:
    """Return whether a process holds the lock of a directory, given by its descriptor. Nothing is written."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(LOCK_FILE, flags, dir_fd=directory)
    except OSError:  # there is no lock file, or it is not ours
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


class DirectoryLock:
    """Holds `path` for this process, from `acquire` to `release`, or as a context manager.

    The kernel lets go of the lock when we die, however we die. Raises Refused, with the pid of the holder.
    """

    def __init__(self, path: Path, directory: int | None = None) -> None:
        """Take `directory`, a descriptor of the directory, which is then locked wherever it may be moved to."""
        self._file = path / LOCK_FILE
        self._name = self._file if directory is None else LOCK_FILE
        self._directory = directory
        self._fd: int | None = None

    def acquire(self) -> Self:
        """Take the lock. Raises Refused if another process holds it."""
        while self._fd is None:
            fd = self._open()
            if not try_lock(fd):
                holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "not known"
                os.close(fd)
                raise Refused(
                    f"another Plinth is working in this directory (pid {holder})",
                    where=str(self._file.parent),
                    hint="wait for it to end, or choose another directory",
                )
            if self._is_current(fd):
                self._fd = fd
            else:  # its last holder removed it between our open and our lock
                os.close(fd)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            self.release()
            raise from_os_error(error, "lock the directory", self._file.parent) from error
        return self

    def release(self) -> None:
        """Remove the lock file and release the lock, if it is held."""
        if self._fd is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._directory)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(self._name, flags, 0o644, dir_fd=self._directory)
        except OSError as error:
            raise from_os_error(error, "lock the directory", self._file.parent) from error
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # what we write into it would be written elsewhere
            os.close(fd)
            raise Refused("what is in place of the lock's file is not one of ours", where=str(self._file))
        return fd

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self._name, dir_fd=self._directory, follow_symlinks=False))
        except FileNotFoundError:
            return False
