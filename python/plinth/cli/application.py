"""The application of the command line: its commands, its help, what holds for all options."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from cyclopts import App, Parameter

from plinth import __version__
from plinth.cli.commands import COMMANDS

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

    from plinth.cli.help import HelpFormatter

OPTIONS = Parameter(negative="")
"""What holds for options unless they say otherwise: a switch has no opposite."""


class _HelpFormatter:
    """`plinth.cli.help.HelpFormatter`, imported when help is printed."""

    @cached_property
    def _formatter(self) -> "HelpFormatter":
        from plinth.cli.help import HelpFormatter

        return HelpFormatter()

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        self._formatter(console, options, panel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._formatter, name)


def application() -> App:
    """Return the cyclopts application; modules of commands are imported when they are called."""
    app = App(
        name="plinth",
        version=__version__,
        help_format="plaintext",
        help_formatter=_HelpFormatter(),
        default_parameter=OPTIONS,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for command in COMMANDS:
        if command.target is not None:
            app.command(command.target, name=command.name)
    return app
