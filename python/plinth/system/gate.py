"""A process that waits before it becomes its program, and ends when the word does not come.

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
    """The command that a process with these arguments waits to become; nothing when it is no such process."""
    return list(words[len(_SHELL) :]) if tuple(words[: len(_SHELL)]) == _SHELL else []


class Gate:
    """The pipe that the word goes through. Leaving it without `open` lets the process end."""

    def __init__(self) -> None:
        self.theirs, self._ours = os.pipe()
        """The standard input of the process."""

    def open(self) -> None:
        """Give the word. Call it once the process is there and the journal knows of it."""
        os.write(self._ours, b"go\n")  # we hold the other end ourselves, so that nobody's death can break the pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._ours)
        os.close(self.theirs)
