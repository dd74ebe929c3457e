"""A storage that is full: which of space and inodes is used up, whatever the server hints."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from plinth.model.errors import PlinthError
from plinth.system.database import DISK_FULL, full_hint
from plinth.system.failures import lacks_inodes

_NO_SPACE = os.strerror(errno.ENOSPC)


_NO_INODES = (
    "the storage has space, but no inodes left for further files: give it more with mkfs_options (of ext4: -N), "
    "or load fewer tables, indexes and partitions"
)


def hint_at_full_storage(error: PlinthError, log: Iterable[str], mount_points: Iterable[Path]) -> None:
    """Give `error` the hint that fits, where it or the server's `log` says that a storage is full.

    PostgreSQL's error and its SQLSTATE are the same for both; the file systems at `mount_points` tell them apart.
    """
    logged = [line for line in log if _NO_SPACE in line]
    said = [line for line in (error.message, *error.details) if _NO_SPACE in line] + logged
    if not said:
        return
    if any(lacks_inodes(place, said) for place in mount_points):
        error.hint = _NO_INODES
    elif logged or error.hint is None:  # a client is asked to connect again in a moment, or gets no hint
        error.hint = full_hint(DISK_FULL)
