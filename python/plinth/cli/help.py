"""How `plinth COMMAND --help` looks: its paragraphs fill the width that there is, and its examples stay as they are."""

from typing import Any

from attrs import evolve
from cyclopts.help import DefaultFormatter, HelpPanel
from cyclopts.help.inline_text import InlineText
from rich.console import Console, ConsoleOptions
from rich.text import Text

_SAYS_NOTHING = ("()", "False")
"""Defaults of switches, and of options that may be repeated."""


class HelpFormatter(DefaultFormatter):
    """Cyclopts' own, which would break lines both where a docstring does and where the terminal ends."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Show the table of arguments or of commands."""
        entries = [evolve(entry, default=None) if entry.default in _SAYS_NOTHING else entry for entry in panel.entries]
        super().__call__(console, options, panel.copy(entries=entries))

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Show what the command does."""
        if isinstance(description, InlineText) and isinstance(description.primary_renderable, Text):
            console.print(Text(reflowed(description.primary_renderable.plain)), end="\n\n")
        else:
            super().render_description(console, options, description)


def reflowed(text: str) -> str:
    """`text` with each paragraph as one line; one with an indented line, an example, keeps its lines."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(
        paragraph if "\n " in f"\n{paragraph}" else " ".join(paragraph.split("\n")) for paragraph in paragraphs
    )
