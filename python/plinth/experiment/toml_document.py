"""Parses untrusted TOML: the only failure is an error with its location."""

import re
import tomllib
from typing import Any

from plinth.model.errors import Problem

MOST_VALUES = 20_000
"""Of one document: experiments have hundreds. Each wrong one is an error, with all that is said of it."""
MOST_LEVELS = 64
"""Maximum nesting of tables and lists. No experiment has more than eight levels."""
_SHOWN_PARTS = 4
_PART = r"""(?>(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
_TOO_LONG_KEY = re.compile(rf"""(?<![\w."'-])({_PART}{{{MOST_LEVELS + 1}}}){_PART}++""")
"""Matches a dotted key with too many parts, for which the parser takes quadratic time: 12 s for 20,000 parts."""


class NotADocument(Problem):
    """The TOML parser failed without a syntax error at `line`, counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message, path=[])
        self.line = line


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the document in `text`.

    Raises tomllib.TOMLDecodeError for what is not TOML, NotADocument for what exceeds the parser, and Problem, with the
    path of the key, for values that no key allows: too deep, with a NUL or not text at all, of more than 64 bits.
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
    except ValueError:  # Python's limit on the digits of a number
        raise NotADocument(_TOO_LARGE, _first_line_with(ValueError, text)) from None
    check_values(document)
    return document


def with_short_keys(text: str) -> str:
    """Truncate dotted keys with too many parts in `text`, also in strings that look like one."""
    return _TOO_LONG_KEY.sub(r"\1", text)


_TOO_LARGE = "a whole number of more than 64 bits"


def _first_line_with(error: type[Exception], text: str) -> int:
    """Return the last line of the shortest prefix of `text` that raises `error`, found by bisection."""
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


def table_at(document: Any, *path: str) -> dict[str, Any]:
    """Return the table at `path` of a raw document; empty where there is none, or something else, which validation reports."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list of a raw document; empty for anything else, which validation reports."""
    return value if isinstance(value, list) else []


def check_values(document: dict[str, Any]) -> None:
    """Raise Problem for the first value that no key allows."""
    pending: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    seen = 0
    while pending:
        seen += 1
        if seen + len(pending) > MOST_VALUES:
            raise NotADocument(f"it has more than {MOST_VALUES:,} values", 1)
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
