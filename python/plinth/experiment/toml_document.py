"""TOML that others have written, read so that nothing in it can end in anything but an error with its place."""

import re
import tomllib
from typing import Any

from plinth.model.errors import Problem

MOST_LEVELS = 64
"""Of tables and lists within one another. No experiment has more than eight."""
_SHOWN_PARTS = 4
_PART = r"""(?>(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
_TOO_LONG_KEY = re.compile(rf"""(?<![\w."'-])({_PART}{{{MOST_LEVELS + 1}}}){_PART}++""")
"""A dotted key of more parts than there may be levels. A parser takes time by the square of their number: 20,000 take 12 s."""


class NotADocument(Problem):
    """Text that a TOML parser gives up on without a syntax error; `line`, from 1, is where it does."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message, path=[])
        self.line = line


def parse_toml(text: str) -> dict[str, Any]:
    """The document in `text`.

    Raises tomllib.TOMLDecodeError for what is not TOML, NotADocument for what exceeds the parser, and Problem, with the
    path of the key, for values that no key takes: too deep, with a NUL or not text at all, of more than 64 bits.
    """
    shortened = with_short_keys(text)
    if shortened != text:
        parse_toml(shortened)  # raises; but where this was no key, text of that form in a string
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        message = f"tables or lists are nested too deeply; allowed are {MOST_LEVELS} levels"
        raise NotADocument(message, _first_line_with(RecursionError, text)) from None
    except ValueError:  # of Python's limit on the digits of a number
        raise NotADocument(_TOO_LARGE, _first_line_with(ValueError, text)) from None
    check_values(document)
    return document


def with_short_keys(text: str) -> str:
    """`text` with dotted keys cut that have more parts than are allowed; so is what looks like one in a string."""
    return _TOO_LONG_KEY.sub(r"\1", text)


_TOO_LARGE = "a whole number of more than 64 bits"


def _first_line_with(error: type[Exception], text: str) -> int:
    """The last line of the shortest prefix of `text` that ends in `error`: longer ones do, too."""
    lines = text.split("\n")
    low, high = 1, len(lines)
    while low < high:
        middle = (low + high) // 2
        if _raises(error, "\n".join(lines[:middle])):
            high = middle
        else:
            low = middle + 1
    return low


def _raises(error: type[Exception], text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    except error:
        return True
    return False


def check_values(document: dict[str, Any]) -> None:
    """Raise Problem for the first value that no key takes."""
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    while pending:
        value, path = pending.pop()
        if isinstance(value, dict | list):
            if len(path) > MOST_LEVELS:
                message = f"tables or lists are nested more than {MOST_LEVELS} levels deep"
                raise Problem(message, path=path[:_SHOWN_PARTS])
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, one in entries:
                if isinstance(key, str) and (reason := _not_text(key)):
                    raise Problem(f"the name of a key {reason}: {key!a}", path=path)
                pending.append((one, (*path, key)))
        elif isinstance(value, str) and (reason := _not_text(value)):
            raise Problem(f"the text {reason}", path=path)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise Problem(_TOO_LARGE, path=path)


def _not_text(text: str) -> str | None:
    if "\0" in text:
        return "has a NUL in it, which neither paths nor PostgreSQL can have"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    return None
