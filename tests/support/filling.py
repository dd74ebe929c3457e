"""Filling a file system, as others may do while Plinth works on it."""

import errno
import os
from pathlib import Path

_PIECE_BYTES = 2**24


def leave_free(folder: Path, size_bytes: int) -> None:
    """Fill the file system, on which another process is writing, but for `size_bytes`.

    Piece by piece: an allocation that finds no room gives back all of it, so that what was full would have room again.
    """
    with (folder / "filler").open("wb") as file:
        filled = 0
        while (free := _free_bytes(folder) - size_bytes) > 0:
            piece = min(free, _PIECE_BYTES)
            try:
                os.posix_fallocate(file.fileno(), filled, piece)
                filled += piece
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise  # else the other was faster


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
