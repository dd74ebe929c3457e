"""The consoles of all commands. Text is shown as it is: paths, labels and settings may hold brackets and colons."""

from rich.console import Console

from plinth.cli.stderr import stderr


def output_console() -> Console:
    """Standard output: results."""
    return Console(highlight=False, markup=False, emoji=False)


def error_console(*, soft_wrap: bool = False) -> Console:
    """Standard error: progress, notes and errors."""
    return Console(file=stderr(), highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap)
