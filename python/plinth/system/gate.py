"""Starts a process that waits for a line before it executes its program, and ends without it.

What outlives Plinth is found again by its arguments, or by its program and working directory. Between fork and exec it has
neither. So what is started is a shell that has the arguments already: it reads one line from Plinth, which is written once
the shell is there, and only then executes the program, under the same pid. If Plinth dies before, the shell reads the end of
the file and ends. So at every instant the process is found, or certain to end without having done anything.
"""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

_NAME = "plinth-start"
_SHELL = ("/bin/sh", "-c", 'read -r word && exec "$@" </dev/null', _NAME)


def gated(argv: Sequence[str]) -> tuple[str, ...]:
    """The command that waits on its standard input for a line, and then becomes `argv`."""
    return (*_SHELL, *argv)


def waits_to_become(words: Sequence[str]) -> list[str]:
    """Return the command that a waiting process with these arguments will execute; empty for other processes."""
    return list(words[len(_SHELL) :]) if tuple(words[: len(_SHELL)]) == _SHELL else []


class Gate:
    """The pipe for the line. If its block ends without `open`, the process ends."""

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()
        """The standard input of the process."""

    def open(self) -> None:
        """Let the process execute its program. Call it once the process exists and is in the journal."""
        os.write(self._ours, b"go\n")  # keep the read end open, so that the pipe cannot break when the process dies

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._ours)
        os.close(self.theirs)
