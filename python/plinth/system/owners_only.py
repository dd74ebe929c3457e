"""Restricts new files to their owner."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNERS_FOLDER = 0o700
_NOT_FOR_OTHERS = 0o077


@contextmanager
def for_owner_only(folder: Path | int | None) -> Iterator[None]:
    """Close `folder` to all others, and have every file that this process makes meanwhile be its owner's (0600, 0700).

    `folder` is a path or a descriptor. Nothing where there is no `folder`. The umask is the process's: other threads make such files, too.
    """
    if folder is None:
        yield
        return
    os.chmod(folder, OWNERS_FOLDER)  # noqa: PTH101
    before = os.umask(_NOT_FOR_OTHERS)
    try:
        yield
    finally:
        os.umask(before)
