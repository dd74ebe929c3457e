"""Filling a file system, as others may do while Plinth works on it."""

import errno
import os
from pathlib import Path


def leave_free(folder: Path, size_bytes: int) -> None:
    """Fill the file system, on which somebody else is writing, but for `size_bytes`."""
    with (folder / "filler").open("wb") as file:
        while True:
            status = os.statvfs(folder)
            try:
                os.posix_fallocate(file.fileno(), 0, max(1, status.f_bavail * status.f_frsize - size_bytes))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                continue  # the other was faster
            return
