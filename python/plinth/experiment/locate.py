"""Where a key of a TOML document was written.

The document is cut into its statements (a header, or a key with its value), each of which is a TOML document by itself.
The standard parser reads each once, and what it finds there is written down with the statement's line; so the cost
grows with the document's length, however many keys are looked up. It matters only when there is an error to show.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from plinth.experiment.toml_document import with_short_keys

_Path = tuple[str | int, ...]

# What may hold a line end that ends no statement, or a bracket that opens nothing; then brackets, and line ends themselves.
# https://toml.io/en/v1.0.0#string: up to two quotes may precede the three that end a string over several lines.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\])*"|' + r"'[^']*'|#[^\n]*|[\[\]{}\n]", re.DOTALL
)


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
    return _lines(text).get(tuple(path)) if path else 1


@lru_cache(maxsize=2)  # an experiment, and the published values that it names
def _lines(text: str) -> Mapping[_Path, int]:
    """The line of each path in `text`."""
    lines: dict[_Path, int] = {}
    sizes: dict[_Path, int] = {}  # of arrays of tables
    table: _Path = ()
    for line, statement in _statements(text):
        document = tomllib.loads(with_short_keys(statement))
        if statement.lstrip(" \t").startswith("["):
            table = _opened(document, sizes)
            for length in range(1, len(table) + 1):
                lines.setdefault(table[:length], line)
        else:
            for path in _paths(table, document):
                lines.setdefault(path, line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement of a valid document and its line, from 1; empty lines and comments too."""
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


def _opened(header: Any, sizes: dict[_Path, int]) -> _Path:
    """The path of the table that a header opens, its arrays of tables by their last element."""
    path: _Path = ()
    while header:
        (key, header), *_ = header.items()
        path += (key,)
        if isinstance(header, list):  # [[rows]]: one more
            sizes[path] = sizes.get(path, 0) + 1
            header = None
        if path in sizes:
            path += (sizes[path] - 1,)
    return path


def _paths(table: _Path, document: dict[str, Any]) -> Iterator[_Path]:
    """The path of each value in `document`, which is in `table`."""
    left: list[tuple[_Path, Any]] = [(table, document)]
    while left:
        above, value = left.pop()
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in inner:
            yield (*above, key)
            left.append(((*above, key), each))
