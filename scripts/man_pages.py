"""The man pages of the command, from its parser: plinth(1), and plinth-COMMAND(1) of each command with its subcommands."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from cyclopts import App

from plinth import __version__
from plinth.bench.help import HELP as BENCH_HELP
from plinth.cli import COMMANDS, help_text
from plinth.cli.application import OPTIONS, application


def man_pages() -> dict[str, str]:
    """Return file name -> roff, of every page."""
    app = application()
    pages = {
        "plinth.1": _page("plinth", "how fast and how safe PostgreSQL is on a storage", _preformatted(help_text()))
    }
    for command in COMMANDS:
        body = (
            _preformatted(BENCH_HELP)
            if command.target is None
            else _command(app[command.name], ["plinth", command.name])
        )
        pages[f"plinth-{command.name}.1"] = _page(f"plinth-{command.name}", command.help, body)
    return pages


def _page(name: str, summary: str, body: list[str]) -> str:
    lines = [
        '.\\" Made by scripts/generated.py from the commands themselves: change it there.',
        f'.TH "{name.upper()}" "1" "" "Plinth {__version__}" "Plinth"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(summary.rstrip('.'))}",
        *body,
    ]
    if name != "plinth":
        lines += [".SH SEE ALSO", ".BR plinth (1)"]
    return "\n".join(lines) + "\n"


def _command(app: App, words: list[str]) -> list[str]:
    names = [name for name in app if not name.startswith("-")]
    lines = [".SH DESCRIPTION", *_prose(app.help)]
    for name in names:
        lines += [f'.SH "{" ".join([*words, name]).upper()}"', *_prose(app[name].help), *_arguments(app[name])]
    return lines if names else [*lines, *_arguments(app, ".SH")]


def _prose(text: str) -> Iterator[str]:
    """Return the paragraphs of a docstring; indented ones are examples and keep their lines."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        yield from (
            _preformatted(paragraph) if paragraph.startswith(" ") else [".PP", _text(" ".join(paragraph.split()))]
        )


def _arguments(app: App, heading: str = ".SS") -> Iterator[str]:
    for title, positional in (("ARGUMENTS", True), ("OPTIONS", False)):
        arguments = [
            one
            for one in app.assemble_argument_collection(default_parameter=OPTIONS)
            if one.show and (one.index is not None) == positional
        ]
        if arguments:
            yield f"{heading} {title}"
        for argument in arguments:
            yield from (".TP", f"\\fB{_text(', '.join(argument.names))}\\fR{_value(argument)}")
            yield _text(" ".join((argument.parameter.help or "").split()))


def _value(argument: Any) -> str:
    """Return the placeholder of an option's value, with its default where it has one."""
    if argument.index is not None or argument.hint is bool:
        return ""
    default = argument.field_info.default
    shown = "" if default in (None, (), inspect.Parameter.empty) else f" (default: {_text(str(default))})"
    return f" \\fIVALUE\\fR{shown}"


def _preformatted(text: str) -> list[str]:
    return [".PP", ".nf", *(_text(line) for line in text.splitlines()), ".fi"]


def _text(text: str) -> str:
    r"""Return text that roff shows as it is: backslashes and hyphens escaped, and no line that begins with a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
