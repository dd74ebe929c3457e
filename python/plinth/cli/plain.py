"""Plain lines and JSON documents: the one place that prints them, so that none of them can steer a terminal.

Consoles (`plinth.cli.console`) do the same for tables and coloured text.
"""

import sys
from typing import IO

from plinth.model.shown import ascii_json, shown, shown_as_json


def print_plain(text: str, *, end: str = "\n", file: IO[str] | None = None, flush: bool = False) -> None:
    """Print text from any source, with its control characters escaped; on standard output unless `file` is given."""
    print(shown(text), end=end, file=file, flush=flush)


def print_rendered(text: str) -> None:
    """Print what was rendered for this terminal on standard output: its controls are ours, and those of others are escaped."""
    print(text, end="")


def print_json(document: str, *, end: str = "\n", flush: bool = False) -> None:
    """Print a JSON document on standard output: the same values, with control characters escaped as JSON does, and in ASCII
    where the encoding of standard output does not have all of its characters.
    """
    text = shown_as_json(document)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = ascii_json(text)
    print(text, end=end, flush=flush)
