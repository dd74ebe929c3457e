"""Serialises a TOML document: values and order are kept, comments and formatting are not."""

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: Mapping[str, Any]) -> str:
    """Serialise a document of `tomllib`; parsing the result gives an equal document."""
    values = [f"{toml_key(key)} = {toml_value(value)}\n" for key, value in document.items() if not _is_section(value)]
    sections = [_section((key,), value) for key, value in document.items() if _is_section(value)]
    return "\n".join(filter(None, ["".join(values), *sections]))


def toml_value(value: Any) -> str:
    """Serialise a value in one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return str(value)  # TOML also spells inf and nan
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case Mapping():
            return "{" + ", ".join(f"{toml_key(key)} = {toml_value(one)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(toml_value, value)) + "]"
        case _:
            raise TypeError(f"not a value of TOML: {type(value).__name__}")


def _is_section(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value)


def _section(path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    """Serialise a table with its header; a table of tables only, such as [storage], has a header for each."""
    if all(map(_is_section, table.values())):
        return "\n".join(_section((*path, key), value) for key, value in table.items())
    lines = [f"{_dotted(keys)} = {toml_value(value)}\n" for keys, value in leaves((), table)]
    return f"[{_dotted(path)}]\n{''.join(lines)}"


def leaves(path: tuple[Any, ...], table: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path of each value in `table`, which is at `path`, with the value: of lists, and of all that is no table."""
    for key, value in table.items():
        if _is_section(value):
            yield from leaves((*path, key), value)
        else:
            yield (*path, key), value


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(toml_key, path))


def toml_key(key: str) -> str:
    """Serialise a key."""
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
