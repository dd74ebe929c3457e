"""The consoles of all commands. They do not interpret markup, since paths and settings may contain brackets and colons.

Standard error is also that of commands that run for hours, and whose reader may end before they do.
"""

import os
import sys
from typing import IO, TYPE_CHECKING, Any, Never, cast

from rich.console import Console

from plinth.common.terminal import ShowingConsole

if TYPE_CHECKING:
    from rich.table import Table


class _OutputConsole(ShowingConsole):
    def on_broken_pipe(self) -> Never:
        """Re-raise the current error, so that all commands end alike; rich would exit with 1."""
        raise


def output_console() -> Console:
    """Return the console of standard output, for results."""
    return _OutputConsole(highlight=False, markup=False, emoji=False)


def error_console(*, soft_wrap: bool = False) -> Console:
    """Return the console of standard error, for progress, notes and errors."""
    return ShowingConsole(file=stderr(), highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)


def plain_table(*titles: str, dim: bool = False) -> "Table":
    """Return a table without lines whose cells are wrapped, with dim titles and wider gaps if `dim`."""
    from rich.table import Table

    padding, style = ((0, 2, 0, 0), "dim") if dim else ((0, 1), None)
    table = Table(box=None, pad_edge=False, padding=padding, header_style=style)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


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
