"""Standard error of commands that run for hours: its reader may end before they do."""

import os
import sys
from typing import IO, Any, cast


def stderr() -> IO[str]:
    """sys.stderr, whose writes never fail: once its pipe is closed or its terminal is gone, they go nowhere.

    Nobody has to read the progress. A run continues without a reader, and what it made must be undone without one, too.
    """
    return cast(IO[str], _Lasting())


class _Lasting:
    def write(self, text: str) -> int:
        try:
            return sys.stderr.write(text)
        except OSError:
            _to_nowhere()
            return len(text)

    def flush(self) -> None:
        try:
            sys.stderr.flush()
        except OSError:
            _to_nowhere()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def _to_nowhere() -> None:
    """From now on the descriptor, which Python and the programs that we start share, leads to /dev/null."""
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
