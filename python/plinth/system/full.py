"""What is full, by PostgreSQL's words: its SQLSTATE, and "No space left on device", are the same for all of it."""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from plinth.model.errors import PlinthError
from plinth.system.failures import lacks_inodes

DISK_FULL = "53100"
"""The SQLSTATE of all that had no room, but for a quota."""
_NO_SPACE = os.strerror(errno.ENOSPC)
_NO_QUOTA = os.strerror(errno.EDQUOT)

Full = Literal["data", "wal", "temporary", "shared_memory", "system_v", "quota"]
_WORDS: tuple[tuple[Full, re.Pattern[str]], ...] = (
    ("quota", re.compile(re.escape(_NO_QUOTA))),
    # shmget and semget, by the kernel's limits: these names are without quotes.
    ("system_v", re.compile(r"could not create (shared memory segment|semaphores):")),
    # dynamic_shared_memory_type = mmap has files in the data directory instead.
    ("shared_memory", re.compile(r'shared memory segment "(?!pg_dynshmem)')),
    ("wal", re.compile(r"\bpg_wal/")),
    ("temporary", re.compile(r"\bpgsql_tmp|temporary file")),
)
_NO_INODES = (
    "the storage has space, but no inodes left for further files: give it more with mkfs_options (of ext4: -N), "
    "or load fewer tables, indexes and partitions"
)
_HINTS: dict[Full, str] = {
    "data": "the storage is full: give it a larger size, or {less}",
    "wal": "the WAL has filled its storage: give that a larger size (server.wal_storage, or else the data's), or lower max_wal_size "
    "and min_wal_size; slots and archiving keep WAL, too",
    "temporary": "temporary files have filled the storage: raise work_mem, so that less is written to them, or give the storage a "
    "larger size",
    "shared_memory": "/dev/shm is full, not a storage: make it larger (mount -o remount,size=1G /dev/shm; of a container "
    '--shm-size=1g), set dynamic_shared_memory_type = "mmap", or do without parallel workers '
    "(max_parallel_workers_per_gather = 0, max_parallel_maintenance_workers = 0)",
    "system_v": "the kernel has no System V segments or semaphores left, and no storage is full: remove those that nobody uses "
    "(ipcs -a, ipcrm), or raise kernel.shmmni or kernel.sem",
    "quota": "a disk quota is used up, of space or of files, and not the storage: raise it (repquota -a shows it, setquota sets it; of "
    "btrfs btrfs qgroup limit), or choose another place",
}
_OF_STORAGES: tuple[Full, ...] = ("data", "wal", "temporary")


def what_is_full(said: str, sqlstate: str | None = None) -> Full | None:
    """Return what an error is about, by its message; None if nothing was full."""
    if sqlstate != DISK_FULL and _NO_SPACE not in said and _NO_QUOTA not in said:
        return None
    for full, words in _WORDS:
        if words.search(said):
            return full
    return "data"


def full_hint(sqlstate: str | None, said: str, less: str = "load less") -> str | None:
    """Return a hint at what is full in place of the server's; None for another error."""
    full = what_is_full(said, sqlstate)
    return None if full is None else _HINTS[full].format(less=less)


def full_hint_by_inodes(said: Iterable[str], mount_points: Iterable[Path]) -> str | None:
    """Return a hint for the first of the lines `said` that is about something full.

    PostgreSQL's words are the same for space and inodes of a storage; the file systems at `mount_points` tell which it is.
    """
    lines = [line for line in said if what_is_full(line) is not None]
    if not lines:
        return None
    if what_is_full(lines[0]) in _OF_STORAGES and any(lacks_inodes(place, lines) for place in mount_points):
        return _NO_INODES
    return full_hint(None, lines[0])


def hint_at_full_storage(error: PlinthError, log: Iterable[str], mount_points: Iterable[Path]) -> None:
    """Give `error` the hint that fits, where it or the server's `log` says that something is full."""
    logged = [line for line in log if what_is_full(line) is not None]
    found = full_hint_by_inodes([*logged, error.message, *error.details], mount_points)
    by_words = next((full_hint(None, line) for line in (error.message, *error.details) if what_is_full(line)), None)
    # A client is asked to connect again in a moment, or gets no hint; one that names what to load less of is kept.
    if found is not None and (logged or error.hint is None or found != by_words):
        error.hint = found


def with_hint_at_full(failure: str, mount_points: Iterable[Path]) -> str:
    """Return why a trial failed, with a hint if something was full."""
    hint = full_hint_by_inodes([failure], mount_points)
    return failure if hint is None else f"{failure} (hint: {hint})"
