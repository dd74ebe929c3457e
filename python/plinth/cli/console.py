"""The consoles of all commands. Text is shown as it is: paths, labels and settings may hold brackets and colons."""

from typing import Never

from rich.console import Console

from plinth.cli.stderr import stderr
from plinth.model.terminal import ShowingConsole


class _OutputConsole(ShowingConsole):
    def on_broken_pipe(self) -> Never:
        """Raise the error that is being handled, which ends every command alike; rich would exit with 1 here."""
        raise


def output_console() -> Console:
    """Standard output: results."""
    return _OutputConsole(highlight=False, markup=False, emoji=False)


def error_console(*, soft_wrap: bool = False) -> Console:
    """Standard error: progress, notes and errors."""
    return ShowingConsole(file=stderr(), highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)
