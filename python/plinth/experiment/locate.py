"""Finds the line of a key in a TOML document.

The document is cut into its statements (a header, or a key with its value), each of which is a TOML document on its own.
The standard parser reads each once, and its keys are stored with the statement's line; so the cost
grows with the document's length, however many keys are looked up. It matters only when there is an error to show.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from plinth.experiment.toml_document import with_short_keys

Path = tuple[str | int, ...]

# First strings and comments, whose line ends and brackets do not count; then brackets and line ends.
# https://toml.io/en/v1.0.0#string: up to two quotes may precede the three that end a string over several lines.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\])*"|' + r"'[^']*'|#[^\n]*|[\[\]{}\n]", re.DOTALL
)


def locate(text: str, path: Sequence[str | int]) -> int:
    """Return the line, from 1, of the statement that sets `path`, or of its nearest ancestor in the text.

    `text` must be valid TOML. A missing key is located at its table's header, or at line 1.
    """
    while path:
        line = find(text, path)
        if line is not None:
            return line
        path = path[:-1]
    return 1


def find(text: str, path: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of the statement that sets `path`; None if there is none."""
    return _lines(text).get(tuple(path)) if path else 1


@lru_cache(maxsize=2)  # an experiment and its reference
def _lines(text: str) -> Mapping[Path, int]:
    """Return the line of each path in `text`."""
    lines: dict[Path, int] = {}
    sizes: dict[Path, int] = {}  # of arrays of tables
    table: Path = ()
    for line, statement in statements(text):
        document = tomllib.loads(with_short_keys(statement))
        if statement.lstrip(" \t").startswith("["):
            table = opened(document, sizes)
            for length in range(1, len(table) + 1):
                lines.setdefault(table[:length], line)
        else:
            for path in _paths(table, document):
                lines.setdefault(path, line)
    return lines


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement of a valid document with its line, from 1, including empty lines and comments."""
    line, start, depth = 1, 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        elif token[0] == "\n" and not depth:
            statement = text[start : token.end()]
            yield line, statement
            line, start = line + statement.count("\n"), token.end()
    yield line, text[start:]


def opened(header: Any, sizes: dict[Path, int]) -> Path:
    """Return the path of the table that a header opens, with the index of the last element of arrays of tables."""
    path: Path = ()
    while header:
        (key, header), *_ = header.items()
        path += (key,)
        if isinstance(header, list):  # [[rows]]: one more
            sizes[path] = sizes.get(path, 0) + 1
            header = None
        if path in sizes:
            path += (sizes[path] - 1,)
    return path


def _paths(table: Path, document: dict[str, Any]) -> Iterator[Path]:
    """Yield the path of each value in `document`, which is in `table`."""
    left: list[tuple[Path, Any]] = [(table, document)]
    while left:
        above, value = left.pop()
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in inner:
            yield (*above, key)
            left.append(((*above, key), each))
