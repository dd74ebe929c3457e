"""Documents of others, such as those of a bundle, a host or a fleet's agents: read so that what is wrong with them stays small.

pydantic collects every error of a document: one of 64 MB in which each of millions of items lacks its keys would take 100 GB and half an
hour. So a list ends at its first wrong item here, and no table has more keys than any of ours.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaValidator

MOST_KEYS = 2000
"""Of one table; the largest of ours have one for each variant, of which there are at most 1,000."""
_Model = TypeVar("_Model", bound=BaseModel)
_SEQUENCES = ("list", "tuple", "set", "frozenset")
_NOT_SCHEMAS = ("cls", "metadata", "serialization", "default")


def parse_untrusted(text: str | bytes) -> Any:
    """Return the values of a JSON document. Raises ValueError, also for a table with too many keys, and RecursionError."""
    return json.loads(text, object_pairs_hook=_table)


def check_json(text: str) -> None:
    """Check that no table of a JSON document has a key twice, or too many. Raises ValueError, RecursionError."""
    json.loads(text, object_pairs_hook=_table_of_once)


def validate_strictly(hint: Any, text: str) -> Any:
    """Return a JSON document as a value of a type: no text is taken for a number, and no number for a truth value. Raises ValidationError,
    which has one wrong item of each list."""
    return _validator(hint).validate_json(text, strict=True)


def parts(value: Any, place: str = "", name: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield all that is within a value, and every model after its parts; each with its place and the name of its field."""
    if isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from parts(getattr(value, field), _within(place, field), field)
        yield place, name, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from parts(one, _within(place, str(key)), name)
    elif isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        for field, one in zip(names, value, strict=True):
            yield from parts(one, _within(place, field), field)
    elif isinstance(value, tuple | list):
        for number, one in enumerate(value):
            yield from parts(one, _within(place, str(number)), name)
    elif is_dataclass(value):
        for field in fields(value):
            yield from parts(getattr(value, field.name), _within(place, field.name), field.name)
    else:
        yield place, name, value


def _within(place: str, part: str) -> str:
    return f"{place}.{part}" if place else part


def validate_untrusted(model: type[_Model], document: Any) -> _Model:
    """Return `document` as a model. Raises ValidationError, which has one wrong item of each list."""
    return _validator(model).validate_python(document)


@cache
def _validator(hint: Any) -> SchemaValidator:
    adapter = TypeAdapter[Any](hint)
    adapter.rebuild(raise_errors=True)
    schema = _failing_fast(adapter.core_schema)
    try:
        # Otherwise pydantic takes the validators that the classes have already, which go on.
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:  # one that always makes its own
        return SchemaValidator(schema)


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, dict):
        changed = {key: one if key in _NOT_SCHEMAS else _failing_fast(one) for key, one in schema.items()}
        return changed | {"fail_fast": True} if schema.get("type") in _SEQUENCES else changed
    if isinstance(schema, list | tuple):
        return type(schema)(map(_failing_fast, schema))
    return schema


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise ValueError(f"a table has {len(pairs):,} keys; no document of ours has one with more than {MOST_KEYS:,}")
    return dict(pairs)


def _table_of_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = _table(pairs)
    if len(table) < len(pairs):
        raise ValueError("a table has a key twice")
    return table


class Room:
    """A number of bytes that is used up."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.left_bytes = size_bytes

    def take(self, wanted_bytes: int) -> int:
        """Return how many of so many bytes there is room for, which is then used."""
        taken = min(wanted_bytes, self.left_bytes)
        self.left_bytes -= taken
        return taken
