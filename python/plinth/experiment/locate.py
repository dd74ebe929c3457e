"""Where a key of a TOML document was written.

A prefix of whole lines that is itself valid TOML ends at a statement's end. The line of a key is therefore
found with the standard parser alone: it is the statement whose addition makes the key appear. Right for dotted
keys, inline tables and values over several lines alike; its cost matters only when there is an error to show.
"""

import tomllib
from collections.abc import Sequence
from typing import Any

_MISSING = object()


def _lookup(document: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        try:
            document = document[part]  # a table by its key, an array by its index
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return document


def locate(text: str, path: Sequence[str | int]) -> int:
    """The line, from 1, of the statement that wrote `path`, or the nearest of its ancestors that is there.

    `text` must be valid TOML. A key that nobody wrote (a missing one) is at its table's header, or at line 1.
    """
    while path:
        line = find(text, path)
        if line is not None:
            return line
        path = path[:-1]
    return 1


def find(text: str, path: Sequence[str | int]) -> int | None:
    """The line, from 1, of the statement that wrote `path`; None when nothing did."""
    if _lookup(tomllib.loads(text), path) is _MISSING:
        return None
    lines = text.split("\n")  # TOML knows no other ends of lines
    start = 0
    for end in range(1, len(lines) + 1):
        try:
            prefix = tomllib.loads("\n".join(lines[:end]) + "\n")
        except tomllib.TOMLDecodeError:
            continue
        if _lookup(prefix, path) is not _MISSING:
            return start + 1
        start = end
    raise AssertionError("the last prefix is the text itself")
