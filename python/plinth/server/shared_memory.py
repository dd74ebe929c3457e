"""Shared memory that a PostgreSQL server leaves behind when it is killed, found by the data directory that it guards.

PostgreSQL removes it when it next starts in the same data directory, as long as that is on the same device; we remove
the directory, and a power cut gives it another device, so we must do it. postmaster.pid, which names it too, does not survive
every power cut: what survives is the header of its System V segment, which holds device and inode of the directory.
Layouts: PGShmemHeader in src/include/storage/pg_shmem.h, dsm_control_header in src/backend/storage/ipc/dsm.c.
"""

import ctypes
import os
import pwd
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Self

from plinth.model.errors import Refused
from plinth.system import cancel
from plinth.system.owner import effective_capabilities
from plinth.system.process import ENDED, STATE, stat_fields
from plinth.system.regular_file import read_small_file
from plinth.system.runner import Runner

_POSIX_FOLDER = Path("/dev/shm")
_TABLE = Path("/proc/sysvipc/shm")
_HEADER = struct.Struct("=iiQQI12xQQ")
"""Magic, creator's pid, total size, free offset, handle of the control segment, a pointer, device and inode."""
_HEADER_MAGIC = 679834894
_CONTROL = struct.Struct("=III")  # magic, items used, items in all
_CONTROL_MAGIC = 0x9A503D32
_CONTROL_ITEMS_AT = 16
_MOST_CONTROL_BYTES = 64 * 2**20
_ITEM_HANDLE = struct.Struct("=I")  # an item's first field; the rest differs between versions
_KEYS = 2**32
_MOST_READING_S = 1.0
_LOOK_AGAIN_S = 0.01
_SHM_RDONLY = 0o10000
_IPC_RMID = 0
_CAP_IPC_OWNER = 1 << 15  # linux/capability.h
_CAP_SYS_ADMIN = 1 << 21
_OF_OTHERS = _CAP_IPC_OWNER | _CAP_SYS_ADMIN
"""What root needs to read segments of another user, and to remove them: see shmop(2), shmctl(2)."""
_FORM = "shared-memory:{device}:{inode}:{uid}"

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.shmdt.argtypes = [ctypes.c_void_p]


class Guarded(NamedTuple):
    """A data directory as its server's shared memory names it, and the user whose both are."""

    device: int
    inode: int
    uid: int

    @classmethod
    def at(cls, data_directory: Path) -> Self:
        """Return the data directory that is there now."""
        found = data_directory.stat()
        return cls(found.st_dev, found.st_ino, found.st_uid)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the inverse of `str`. Raises Refused for another text."""
        try:
            return cls(*map(int, text.split(":")[1:]))
        except (TypeError, ValueError) as error:
            raise Refused("it does not name the shared memory of a server", where=text) from error

    def __str__(self) -> str:
        return _FORM.format(**self._asdict())


def remove_left_shared_memory(data_directory: Path) -> list[str]:
    """Remove the shared memory of a dead server of `data_directory`; returns what was removed, for people."""
    try:
        guarded = Guarded.at(data_directory)
    except OSError:
        return []
    return remove_memory_of(guarded)


def remove_memory_of(guarded: Guarded) -> list[str]:
    """Remove the shared memory of a dead server of a data directory, which may be gone; returns what was removed, for people.

    Only segments that nobody is attached to and whose header names this very directory are touched, and of others
    only those that these name and that belong to the directory's owner. A postmaster that makes its segment writes
    postmaster.pid before the header (InternalIpcMemoryCreate), which takes as long as a flush: killed meanwhile, it leaves an
    empty segment, which is known by its key, the directory's inode, and by its creator, which has ended.

    Root that lacks the capabilities for it, as in a container, has a process that becomes the directory's owner do it.
    """
    if os.geteuid() == 0 != guarded.uid and effective_capabilities() & _OF_OTHERS != _OF_OTHERS:
        return Runner().run([sys.executable, "-m", __spec__.name, str(guarded)]).stdout.splitlines()
    deadline = monotonic() + _MOST_READING_S
    removed: list[str] = []
    while _remove_unattached(guarded, removed) and monotonic() < deadline:
        cancel.sleep(_LOOK_AGAIN_S)
    return removed


def _remove_unattached(guarded: Guarded, removed: list[str]) -> bool:
    """Add what was removed to `removed`; return whether another Plinth, which reads the header of each segment that is left, was
    attached to some."""
    is_read = False
    for row in _segments(guarded.uid):
        if row["nattch"]:
            is_read = is_read or _has_ended(row["cpid"])  # or else its server runs
            continue
        header = _content(row["shmid"], min(row["size"], _HEADER.size))
        if len(header) < _HEADER.size:
            continue
        if not any(header) and row["key"] % _KEYS == guarded.inode % _KEYS and _has_ended(row["cpid"]):
            removed += _remove_segment(row["shmid"])  # its server ended before the header was written
            continue
        magic, _, _, _, control, device, inode = _HEADER.unpack(header)
        if magic != _HEADER_MAGIC or (device, inode) != (guarded.device, guarded.inode):
            continue
        handles = [*_listed(control, guarded.uid), control]
        if any(one["nattch"] for handle in handles for one in _with_key(handle, guarded.uid)):
            is_read = True  # this segment, by which the others are found, is removed with them
            continue
        removed += [what for handle in handles for what in _remove_dynamic(handle, guarded.uid)]
        removed += _remove_segment(row["shmid"])
    return is_read


def _has_ended(pid: int) -> bool:
    """Return whether a process has. The kernel has no number for one of another PID namespace, 0, of which nothing is known."""
    if pid == 0:
        return False
    try:
        return stat_fields(Path(f"/proc/{pid}"))[STATE] in ENDED
    except OSError:
        return True


def _segments(uid: int) -> Iterator[Mapping[str, int]]:
    """Return the System V segments of a user, as the kernel lists them."""
    with _TABLE.open() as table:
        columns = table.readline().split()
        rows = [dict(zip(columns, map(int, line.split()), strict=True)) for line in table]
    return (row for row in rows if row["uid"] == uid)


def _content(segment: int, size_bytes: int) -> bytes:
    """Return the beginning of a System V segment; empty when it has just gone, or may not be read."""
    address = _libc.shmat(segment, None, _SHM_RDONLY)
    if address in (None, ctypes.c_void_p(-1).value):
        return b""
    try:
        return ctypes.string_at(address, size_bytes)
    finally:
        _libc.shmdt(address)


def _listed(control: int, uid: int) -> Iterator[int]:
    """Return the handles of the segments that a control segment lists."""
    content = _dynamic_content(control, uid)
    if len(content) < _CONTROL_ITEMS_AT:
        return
    magic, used, items = _CONTROL.unpack_from(content)
    if magic != _CONTROL_MAGIC or not 0 < used <= items:
        return
    item_bytes = (len(content) - _CONTROL_ITEMS_AT) // items
    if item_bytes < _ITEM_HANDLE.size:
        return
    for number in range(used):
        yield _ITEM_HANDLE.unpack_from(content, _CONTROL_ITEMS_AT + number * item_bytes)[0]


def _dynamic_content(handle: int, uid: int) -> bytes:
    """Return the content of a segment by dynamic_shared_memory_type = posix, or else sysv."""
    try:
        return read_small_file(_posix_path(handle), _MOST_CONTROL_BYTES)
    except FileNotFoundError:
        rows = _with_key(handle, uid)
        return _content(rows[0]["shmid"], rows[0]["size"]) if rows else b""


def _remove_dynamic(handle: int, uid: int) -> Iterator[str]:
    path = _posix_path(handle)
    if _remove_file(path, uid):
        yield str(path)
    for row in _with_key(handle, uid):
        if row["nattch"] == 0:
            yield from _remove_segment(row["shmid"])


def _with_key(handle: int, uid: int) -> list[Mapping[str, int]]:
    """Find System V segments with a handle as their key: the server takes its absolute value as a signed number (dsm_impl_sysv). 0 is no
    key: it is that of every private segment."""
    key = abs(handle - _KEYS if handle >= _KEYS // 2 else handle)
    return [row for row in _segments(uid) if handle and abs(row["key"]) == key]


def _posix_path(handle: int) -> Path:
    return _POSIX_FOLDER / f"PostgreSQL.{handle}"


def _remove_segment(segment: int) -> list[str]:
    is_removed = _libc.shmctl(segment, _IPC_RMID, None) == 0
    return [f"System V shared memory segment {segment}"] if is_removed else []


def _remove_file(path: Path, owner_uid: int) -> bool:
    try:
        if os.lstat(path).st_uid != owner_uid:
            return False
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _become(uid: int) -> None:
    """Give up all rights for good but those of a user."""
    os.setgroups(())
    os.setgid(pwd.getpwuid(uid).pw_gid)
    os.setuid(uid)


if __name__ == "__main__":
    whose = Guarded.from_text(sys.argv[1])
    _become(whose.uid)
    sys.stdout.write("\n".join(remove_memory_of(whose)))
