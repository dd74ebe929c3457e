"""The consoles of all commands. They do not interpret markup, since paths and settings may contain brackets and colons."""

from typing import Never

from rich.console import Console

from plinth.cli.stderr import stderr
from plinth.common.terminal import ShowingConsole


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
