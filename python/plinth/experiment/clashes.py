"""What is wrong where a TOML document gives a key twice, or once as a value and once as a table."""

import tomllib
from typing import NamedTuple

from plinth.experiment.locate import Path, opened, statements
from plinth.experiment.toml_document import with_short_keys
from plinth.experiment.toml_text import leaves

_QUOTED_HINT = (
    "a key cannot be both a list and a table: where there is storage = [..], quote the other, "
    'as in "storage.slow.profile" = [..]'
)
_ONCE_HINT = "leave one of the two out; several values are the levels of a factor: [matrix] workload.clients = [1, 4]"


class Clash(NamedTuple):
    """A key that is given for the second time."""

    message: str
    hint: str


class _Given(NamedTuple):
    """Where a key was given first, and as what."""

    line: int
    is_table: bool


def clash_at(text: str, line: int) -> Clash | None:
    """Return the clash of the statement at `line`, where the parser stopped, with an earlier one; None without one."""
    given: dict[Path, _Given] = {}
    sizes: dict[Path, int] = {}
    table: Path = ()
    for begin, statement in statements(text):
        try:
            document = tomllib.loads(with_short_keys(statement))
        except tomllib.TOMLDecodeError as error:
            return _within(str(error)) if begin <= line < begin + max(1, statement.count("\n")) else None
        is_header = statement.lstrip(" \t\n").startswith("[")
        if is_header:
            table = opened(document, sizes)
        mine = [_without_index(table)] if is_header else [path for path, _ in leaves(table, document)]
        if begin <= line < begin + max(1, statement.count("\n")):
            return next(filter(None, (_clash(path, given, is_header) for path in mine)), None)
        for path in mine:
            for length in range(1, len(path) + 1):
                is_whole = length == len(path)
                value = None if is_header else _value(document, path[len(table) : length])
                is_table = is_header or not is_whole or isinstance(value, dict)
                given.setdefault(path[:length], _Given(begin, is_table))
    return None


def _clash(path: Path, given: dict[Path, _Given], is_header: bool) -> Clash | None:
    for length in range(1, len(path) + 1):
        earlier = given.get(path[:length])
        if earlier is None or isinstance(path[length - 1], int):
            continue
        key = ".".join(map(str, path[:length]))
        is_whole = length == len(path)
        if is_whole and earlier.is_table and is_header:
            return Clash(
                f"the table [{key}] is opened twice, first in line {earlier.line}",
                "put all of its keys below one header",
            )
        if is_whole and not earlier.is_table and not is_header:
            return Clash(f"the key {key!r} is given twice, first in line {earlier.line}", _ONCE_HINT)
        if earlier.is_table and not is_whole:
            continue
        hint = _QUOTED_HINT if path[0] == "matrix" else "leave one of the two out"
        was, now = ("a table", "a value") if earlier.is_table else ("a value", "a table")
        return Clash(f"the key {key!r} is {now} here, and {was} in line {earlier.line}", hint)
    return None


def _without_index(table: Path) -> Path:
    return table[:-1] if table and isinstance(table[-1], int) else table


def _within(message: str) -> Clash | None:
    """Return a key that is twice in one inline table."""
    _, found, key = message.partition(" (at ")[0].partition("Duplicate inline table key ")
    return Clash(f"the key {key} is twice in one table", _ONCE_HINT) if found else None


def _value(document: object, keys: Path) -> object:
    for key in keys:
        document = document[key] if isinstance(document, dict) else None  # type: ignore[index]  # keys are of this document
    return document
