"""Prints plain lines and JSON documents, with control characters escaped so that data cannot control the terminal.

Consoles (`plinth.cli.console`) do the same for tables and coloured text.
"""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import IO, TYPE_CHECKING, TypeVar

from plinth.common.shown import ascii_json, shown, shown_as_json

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from plinth.model.errors import PlinthError
    from plinth.model.step import Step

Result = TypeVar("Result", bound="BaseModel")


def print_plain(text: str, *, end: str = "\n", file: IO[str] | None = None, flush: bool = False) -> None:
    """Print text with its control characters escaped, to standard output unless `file` is given."""
    print(shown(text), end=end, file=file, flush=flush)


def print_steps(title: str, steps: "Iterable[Step]") -> None:
    """Print steps as lines for a shell: their commands, and comments that say what is done."""
    print_plain(f"# {title}")
    for step in steps:
        print_plain(f"# {step.title}" + (f" (as user {step.user})" if step.user else ""))
        if step.argv is not None:
            print_plain(shlex.join(step.argv))


def print_errors(errors: "Mapping[str, PlinthError]") -> None:
    """Print errors with what each is about, their details and hints."""
    for name, error in errors.items():
        for line in (f"{name}: {error}", *error.details, *([f"hint: {error.hint}"] if error.hint else [])):
            print_plain(line)


def print_rendered(text: str) -> None:
    """Print rendered text to standard output. Its colour sequences are kept; other control characters are already escaped."""
    print(text, end="")


def print_result(found: "Result", as_json: bool, show: "Callable[[Result, Console], None]") -> None:
    """Print a result as JSON, or else by `show` on the console of standard output."""
    if as_json:
        print_json(found.model_dump_json(indent=1))
        return
    from plinth.cli.console import output_console

    show(found, output_console())


def print_json(document: str, *, end: str = "\n", flush: bool = False) -> None:
    """Print a JSON document to standard output; control characters are escaped, and non-ASCII characters, too, where the
    encoding of standard output lacks one of them.
    """
    text = shown_as_json(document)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = ascii_json(text)
    print(text, end=end, flush=flush)
