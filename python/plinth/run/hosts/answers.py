"""What a host may answer: the one place where its results are checked, against the types of the table of methods.

A host is not trusted. What it sends is a value of the type that the method returns, strictly, with numbers and texts within bounds, and
is about what was asked for (agreement.py); or it is an error that names the host, the method, what was got and what is allowed.
"""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from plinth.common.shown import shown
from plinth.common.untrusted import parts, validate_strictly
from plinth.fleet.figures import is_figure, shown_figure
from plinth.run.hosts.limits import MAX_TEXT

_MOST = 2**63
_BOUNDS: Mapping[str, tuple[int, int]] = {
    "cores": (1, 2**20),
    "memory_total_bytes": (1, _MOST),
    "port": (1, 65535),
    "value": (-_MOST, _MOST),  # facts and readings are what the kernel says, below 0 too
}
"""Of numbers by the name of their field; every other is from 0 to 2**63."""
_SECRETS = ("password",)
_SHOWN_CHARACTERS = 80


class Wrong(Exception):
    """An answer is none that the protocol allows; the message says what was got, and what is allowed."""


def untyped(hint: Any, seen: frozenset[Any] = frozenset()) -> str | None:
    """Return what in a type anything would be a value of; None if every value is checked."""
    if hint is Any or hint in (object, list, tuple, dict, set, frozenset):
        return str(hint)
    if isinstance(hint, type) and hint not in seen and not get_args(hint):
        if issubclass(hint, BaseModel):
            inner: Mapping[str, Any] = {name: field.annotation for name, field in hint.model_fields.items()}
        elif is_dataclass(hint) or hasattr(hint, "_fields"):
            inner = get_type_hints(hint)
        else:
            inner = {}
        found = ((name, untyped(one, seen | {hint})) for name, one in inner.items())
        return next((f"{hint.__name__}.{name}: {what}" for name, what in found if what), None)
    return next(
        (what for one in get_args(hint) if not isinstance(one, str | int) and (what := untyped(one, seen))), None
    )


def checked(hint: Any, document: Any) -> Any:
    """Return what JSON has of a value as a value of a type. Raises Wrong."""
    try:
        value = validate_strictly(hint, json.dumps(document))
    except ValidationError as error:
        raise Wrong(_mistake(error.errors(include_url=False, include_context=False)[0])) from None
    for place, name, one in parts(value):
        low, high = _BOUNDS.get(name, (0, _MOST))
        if is_figure(one) and not low <= one <= high:
            raise Wrong(f"{_before(place)}got {shown_figure(one)}; allowed is {low:,} to {high:,}")
        if isinstance(one, str) and len(one) > MAX_TEXT:
            raise Wrong(f"{_before(place)}got a text of {len(one):,} characters; allowed are {MAX_TEXT:,}")
    return value


def shown_value(value: object) -> str:
    """Return a value of a host as errors show it: on one line, not long, and without what steers a terminal."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return str(value).lower()
        case int() | float():
            return shown_figure(value)
        case str():
            cut = shown(value[:_SHOWN_CHARACTERS]).replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            return f'"{cut}"' if len(value) <= _SHOWN_CHARACTERS else f'"{cut}"... ({len(value):,} characters)'
        case Mapping():
            return f"a table of {len(value):,} keys"
        case list() | tuple():
            return f"a list of {len(value):,}"
        case _:
            return f"a {type(value).__name__}"


def _mistake(found: ErrorDetails) -> str:
    place = ".".join(shown(str(part))[:_SHOWN_CHARACTERS] for part in found["loc"])
    match found["type"]:
        case "missing":
            return f"{_before(place)}got nothing; it must be there"
        case "extra_forbidden":
            return f"{_before(place)}got a key that there is not"
        case _:
            is_secret = bool(set(_SECRETS) & set(found["loc"]))
            got = "something else" if is_secret else shown_value(found["input"])
            return f"{_before(place)}got {got}; allowed: {found['msg'].removeprefix('Input should be ')}"


def _before(place: str) -> str:
    return f"{place}: " if place else ""
