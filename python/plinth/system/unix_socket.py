"""Checks the length of a Unix socket's path."""

import os
from pathlib import Path

from plinth.model.errors import UsageError

_PATH_MAX_BYTES = 107
"""sun_path of unix(7) has 108 bytes, and the last one is zero."""


def check_socket_path(path: Path, hint: str | None = None) -> None:
    """Raise UsageError, with `hint`, when `path` is too long for a Unix socket."""
    length = len(os.fsencode(path))
    if length > _PATH_MAX_BYTES:
        raise UsageError(
            f"the path of the socket has {length} bytes; a Unix socket's path has at most {_PATH_MAX_BYTES}",
            where=str(path),
            hint=hint,
        )
