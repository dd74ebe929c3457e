"""Changes on the command line, such as "delay=5ms", and values validated under the names that the user typed."""

import tomllib
from collections.abc import Sequence
from typing import Any

from plinth.common.nearest import nearest
from plinth.model.errors import UsageError


def parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """Parse changes such as "flush_latency=8ms". Raises UsageError."""
    parts: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise UsageError(f"{change!r} is not of the form key=value", hint="for example delay=8ms")
        parts[key.strip()] = parse_value(text)
    return parts


def parse_value(text: str) -> Any:
    """Parse a TOML value; other text is taken as a string, so that quotes may be omitted."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def validated(kind: Any, value: Any, names: dict[str, str]) -> Any:
    """Validate `value` as `kind`, a type known to pydantic; errors use the names that the user typed."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        where = names.get(key, key)
        if first["type"] == "extra_forbidden":
            known = _keys(kind)
            raise UsageError(f"unknown key {key!r}; allowed: {', '.join(known)}", hint=nearest(key, known)) from error
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where}: got {first['input']!r}: {message}" if where else message) from error


def _keys(kind: Any) -> list[str]:
    from pydantic import BaseModel

    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [field.alias or name for name, field in kind.model_fields.items()]
    return []
