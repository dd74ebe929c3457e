"""Standard error for commands that run for hours and whose reader may end before they do."""

import os
import sys
from typing import IO, Any, cast


def stderr() -> IO[str]:
    """Return a stream for sys.stderr whose writes never fail: when its pipe or terminal is closed, they are discarded.

    A run continues without a reader of its progress, and must undo its storages without one, too.
    """
    return cast(IO[str], _SurvivingStream())


class _SurvivingStream:
    def write(self, text: str) -> int:
        try:
            return sys.stderr.write(text)
        except OSError:
            _redirect_to_null()
            return len(text)

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except OSError:
            _redirect_to_null()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def _redirect_to_null() -> None:
    """Redirect the descriptor, which child processes share, to /dev/null."""
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
