"""Formats `plinth COMMAND --help`: paragraphs are wrapped to the terminal's width, examples are not."""

from typing import Any

from attrs import evolve
from cyclopts.help import DefaultFormatter, HelpPanel
from cyclopts.help.inline_text import InlineText
from rich.console import Console, ConsoleOptions
from rich.text import Text

_SAYS_NOTHING = ("()", "False")
"""Defaults that are not shown: of switches and of repeatable options."""


class HelpFormatter(DefaultFormatter):
    """A formatter that joins the lines of a paragraph; cyclopts' own also breaks lines where the docstring does."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print the table of arguments or of commands."""
        entries = [evolve(entry, default=None) if entry.default in _SAYS_NOTHING else entry for entry in panel.entries]
        super().__call__(console, options, panel.copy(entries=entries))

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Print the description of the command."""
        if isinstance(description, InlineText) and isinstance(description.primary_renderable, Text):
            console.print(Text(reflowed(description.primary_renderable.plain)), end="\n\n")
        else:
            super().render_description(console, options, description)


def reflowed(text: str) -> str:
    """Join the lines of each paragraph of `text`, except of those with an indented line, which are examples."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(
        paragraph if "\n " in f"\n{paragraph}" else " ".join(paragraph.split("\n")) for paragraph in paragraphs
    )
