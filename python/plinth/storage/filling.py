"""Files that fill a file system: ballast up to a given share, and a file that takes all free space."""

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from plinth.model.errors import Refused, RunError
from plinth.model.facts import StorageFacts
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.model.units import format_size
from plinth.storage.actions import Action
from plinth.system import cancel
from plinth.system.failures import from_os_error
from plinth.system.runner import Runner
from plinth.system.timeout import statvfs_with_timeout

BALLAST_FILE = ".plinth-ballast"
"""The ballast file is in the root of the file system, where no data directory is."""
_CHUNK_BYTES = 4 * 2**20
_SYNC_BYTES = 64 * 2**20
"""The interval of fsync, so that the reported progress is on the disk and little memory is dirty."""
_TOLERANCE = 0.02
"""The allowed difference from the requested share: the size of the ballast's own metadata is not known before."""
_ACCOUNTING_S = 40.0
"""ZFS counts what was written when its transaction group ends: after 5 s, with zfs-fuse 30 s."""
_LOOK_AGAIN_S = 0.1
FILL_FILE = ".plinth-fill"
"""In the root of the file system."""
_LEAST_BYTES = 4096
_LARGEST_WRITE_BYTES = 2**20
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def fill_of(spec: object) -> float:
    """Return the share of the file system that is to be in use; 0 for kinds that have no such setting."""
    return getattr(spec, "fill", 0.0)


def fill_action(step_id: str, name: str, root: Path, share: float, report: Report) -> Action:
    """Fill the file system mounted on `root`, that of the storage `name`, until `share` of it is in use."""
    step = Step(
        id=step_id, title=f"fill {root}: write random bytes to {BALLAST_FILE} until {share:.4g} of it is in use"
    )
    return Action(step, lambda runner: _fill(f"fill storage {name}", root, share, report, runner))


def with_ballast(facts: StorageFacts, root: Path, share: float) -> StorageFacts:
    """Add a note of the ballast to `facts`, as it is found in `root`. Raises OSError when it is gone."""
    size_bytes = (root / BALLAST_FILE).stat().st_size
    note = (
        f"fill = {share:g}: {format_size(size_bytes)} of random bytes were written to {BALLAST_FILE} in it before the data "
        "directory was made."
    )
    return facts.model_copy(update={"notes": (*facts.notes, note)})


def _fill(task: str, root: Path, share: float, report: Report, runner: Runner) -> None:
    path = root / BALLAST_FILE
    used, usable = _used_and_usable(root)
    missing = round(share * usable) - used
    if missing <= 0:
        raise RunError(
            f"{format_size(used)} of {format_size(usable)} are in use by the empty file system, more than fill = {share:g}",
            where=str(root),
            hint="ask for more, or for a larger storage",
        )
    try:
        _write_random(path, missing, lambda done: report(Progress(task, done, missing, "bytes")))
    except OSError as error:
        raise from_os_error(error, f"write {format_size(missing)} of ballast", path) from error
    runner.run(("sync", "--file-system", str(root)))
    _confirm(root, share)


def _write_random(path: Path, size_bytes: int, tell: Callable[[int], object]) -> None:
    """Write a new file of random bytes, fsynced, and leave none of it in the page cache."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        written = synced = 0
        while written < size_bytes:
            written += os.write(file, os.urandom(min(_CHUNK_BYTES, size_bytes - written)))
            cancel.check()
            if written - synced >= _SYNC_BYTES or written == size_bytes:
                os.fsync(file)
                os.posix_fadvise(file, synced, written - synced, os.POSIX_FADV_DONTNEED)
                synced = written
                tell(synced)
    finally:
        os.close(file)


def _confirm(root: Path, share: float) -> None:
    """Raise RunError when the file system does not soon report that `share` of it is in use."""
    deadline = monotonic() + _ACCOUNTING_S
    while True:
        used, usable = _used_and_usable(root)
        if abs(used / usable - share) <= _TOLERANCE:
            return
        if monotonic() > deadline:
            raise RunError(
                f"asked for fill = {share:g}; {used / usable:.3f} of the file system is in use after its ballast was written",
                where=str(root),
            )
        cancel.sleep(_LOOK_AGAIN_S)


def _used_and_usable(root: Path) -> tuple[int, int]:
    """Return bytes in use, and bytes that an ordinary user could use if it were empty: as df(1) counts them."""
    space = statvfs_with_timeout(root)
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    return used, used + space.f_bavail * space.f_frsize


def fill_up(root: Path) -> int:
    """Take all free space of the file system that is mounted on `root`; returns the size of the file that does.

    Space is allocated where the file system can do that (fallocate), so that its disk has nothing to write, else filled with random
    bytes. Raises Refused for a directory that is not the root of a file system.
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
    """Call fallocate(2), for which posix_fallocate(3) would write where there is none; return errno, or 0."""
    return 0 if _libc.fallocate(file, 0, offset, length) == 0 else ctypes.get_errno()


def _write(file: int) -> None:
    """Write until there is no space: what could not be allocated."""
    os.lseek(file, 0, os.SEEK_END)
    size_bytes = _LARGEST_WRITE_BYTES
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
