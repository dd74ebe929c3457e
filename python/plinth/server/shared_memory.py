"""Shared memory that a PostgreSQL server leaves behind when it is killed, found through its data directory.

PostgreSQL removes it when it next starts in the same data directory; we remove the directory, so we must do it.
Layouts: PGShmemHeader in src/include/storage/pg_shmem.h, dsm_control_header in src/backend/storage/ipc/dsm.c;
what leads there is line 7 of postmaster.pid ("key id" of the System V segment that guards the directory).
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_POSIX_FOLDER = Path("/dev/shm")
_HEADER = struct.Struct("=iiQQI")  # magic, creator's pid, total size, free offset, handle of the control segment
_HEADER_MAGIC = 679834894
_HEADER_END = struct.Struct("=QQ")  # device and inode of the data directory, the header's last fields
_CONTROL = struct.Struct("=III")  # magic, items used, items in all
_CONTROL_MAGIC = 0x9A503D32
_CONTROL_ITEMS_AT = 16
_ITEM_HANDLE = struct.Struct("=I")  # an item's first field; the rest differs between versions
_SHM_RDONLY = 0o10000
_IPC_RMID = 0

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.shmdt.argtypes = [ctypes.c_void_p]


def remove_left_shared_memory(data_directory: Path) -> list[str]:
    """Remove the shared memory of a dead server of `data_directory`; returns what was removed, for people.

    Only a segment that nobody is attached to and whose header names this very directory is touched, and of
    POSIX segments only those that it names and that belong to the directory's owner.
    """
    segment = _segment_id(data_directory)
    header = _read_unattached(segment) if segment is not None else None
    if header is None or not _guards(header, data_directory):
        return []
    control = _HEADER.unpack_from(header)[4]
    removed = [
        str(path)
        for path in [*_posix_segments(control), _posix_path(control)]
        if _remove(path, data_directory.stat().st_uid)
    ]
    if _libc.shmctl(segment, _IPC_RMID, None) == 0:
        removed.append(f"System V shared memory segment {segment}")
    return removed


def _segment_id(data_directory: Path) -> int | None:
    try:
        return int((data_directory / "postmaster.pid").read_text().splitlines()[6].split()[1])
    except (OSError, IndexError, ValueError):
        return None  # stopped in order, or killed before it had any


def _read_unattached(segment: int) -> bytes | None:
    """The content of a System V segment; None when there is none or a process is attached to it."""
    with Path("/proc/sysvipc/shm").open() as table:
        columns = table.readline().split()
        rows = (dict(zip(columns, map(int, line.split()), strict=True)) for line in table)
        row = next((row for row in rows if row["shmid"] == segment), None)
    if row is None or row["nattch"] > 0:
        return None
    address = _libc.shmat(segment, None, _SHM_RDONLY)
    if address in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        return ctypes.string_at(address, row["size"])
    finally:
        _libc.shmdt(address)


def _guards(header: bytes, data_directory: Path) -> bool:
    if len(header) < _HEADER.size + _HEADER_END.size or _HEADER.unpack_from(header)[0] != _HEADER_MAGIC:
        return False
    found = data_directory.stat()
    return _HEADER_END.unpack(header[-_HEADER_END.size :]) == (found.st_dev, found.st_ino)


def _posix_segments(control: int) -> Iterator[Path]:
    """The segments that a control segment lists."""
    try:
        content = _posix_path(control).read_bytes()
    except FileNotFoundError:
        return
    if len(content) < _CONTROL_ITEMS_AT:
        return
    magic, used, items = _CONTROL.unpack_from(content)
    if magic != _CONTROL_MAGIC or not 0 < used <= items:
        return
    item_bytes = (len(content) - _CONTROL_ITEMS_AT) // items
    for number in range(used):
        yield _posix_path(_ITEM_HANDLE.unpack_from(content, _CONTROL_ITEMS_AT + number * item_bytes)[0])


def _posix_path(handle: int) -> Path:
    return _POSIX_FOLDER / f"PostgreSQL.{handle}"


def _remove(path: Path, owner_uid: int) -> bool:
    try:
        if os.lstat(path).st_uid != owner_uid:
            return False
        path.unlink()
    except FileNotFoundError:
        return False
    return True
