"""Converts validation errors to problems with key, got, allowed and the closest match."""

from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from plinth.common.nearest import nearest
from plinth.model.base import NAME_PATTERN
from plinth.model.errors import Problem

UNKNOWN_KEY = "unknown key"
"""Start of the message for an unknown key."""

_TAG_KEYS = ("kind", "do")
"""Discriminators of the unions."""


def problems_of(error: ValidationError, document: dict[str, Any], model: type[BaseModel]) -> list[Problem]:
    """Return the problems of `error`, raised by validating `document` as `model`; a union gives one problem per location."""
    findings: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for detail in error.errors():
        if _lacks_only_bad_items(detail):
            continue
        findings.setdefault(tuple(_path(detail["loc"], document)), []).append(detail)
    return [
        _problem(details[0], list(path), model) if len(details) == 1 else _no_member_fits(details, list(path))
        for path, details in findings.items()
    ]


def _lacks_only_bad_items(detail: ErrorDetails) -> bool:
    """Return whether a list is too short only without those of its items that are wrong, each of which is a problem already."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail.get("ctx", {})["min_length"]


def _no_member_fits(details: list[ErrorDetails], path: list[str | int]) -> Problem:
    """Return the problem of a value that matches none of a union's types, with what each expects."""
    wanted = [detail["msg"].removeprefix("Input should be ").partition(",")[0] for detail in details]
    return Problem(f"got {_shown(details[0]['input'])}; must be {' or '.join(wanted)}", path=path)


def _path(loc: tuple[int | str, ...], document: Any) -> list[str | int]:
    """Return the document's path for a pydantic location, which also contains union tags and type names."""
    path: list[str | int] = []
    is_tagged = False  # whether the union's tag was already skipped: a missing key may have the same name
    for index, part in enumerate(loc):
        if isinstance(document, dict):
            if not is_tagged and part in (document.get(tag) for tag in _TAG_KEYS) and index < len(loc) - 1:
                is_tagged = True
            elif part in document:
                document, is_tagged = document[part], False
                path.append(part)
            elif index == len(loc) - 1 and isinstance(part, str):
                is_tag = not is_tagged and part in (document.get(tag) for tag in _TAG_KEYS)
                path += [] if is_tag else [part]  # otherwise a missing key
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
            path.append(part)
    return path


def _problem(detail: ErrorDetails, path: list[str | int], model: type[BaseModel]) -> Problem:
    kind, got, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        allowed = _allowed_keys(model, detail["loc"][:-1])
        key = str(path[-1])
        for candidate in _candidates(model, detail["loc"][:-1]):
            if reason := getattr(candidate, "not_of_this_kind", {}).get(key):
                return Problem(f"{UNKNOWN_KEY} {key!r} of this kind: {reason[0]}", path=path, hint=reason[1])
        return Problem(f"{UNKNOWN_KEY} {key!r}; allowed: {', '.join(allowed)}", path=path, hint=nearest(key, allowed))
    if kind == "missing":
        key = str(path[-1])
        hints = (getattr(candidate, "found_by", {}).get(key) for candidate in _candidates(model, detail["loc"][:-1]))
        return Problem(f"the key {key!r} is missing", path=path, hint=next(filter(None, hints), None))
    if kind == "union_tag_not_found":
        tag = str(context["discriminator"]).strip("'")
        tags = ", ".join(one for found in _candidates(model, detail["loc"]) for one in _own_tags(found))
        strange = sorted(set(got) - set(_allowed_keys(model, detail["loc"]))) if isinstance(got, dict) else []
        hint = next((f"{key!r} is not a key here: {meant}" for key in strange if (meant := nearest(key, [tag]))), None)
        return Problem(f"the key {tag!r} is missing; allowed: {tags}", path=[*path, tag], hint=hint)
    if kind == "union_tag_invalid":
        allowed = [tag.strip("' ") for tag in str(context["expected_tags"]).split(",")]
        tag = str(context["discriminator"]).strip("'")
        return Problem(
            f"{tag} {context['tag']!r} is unknown; allowed: {', '.join(allowed)}",
            path=[*path, tag],
            hint=nearest(str(context["tag"]), allowed),
        )
    if kind == "literal_error":
        allowed = [part.strip("' ") for part in str(context["expected"]).replace(" or ", ", ").split(",")]
        return Problem(f"got {got!r}; allowed: {', '.join(allowed)}", path=path, hint=nearest(str(got), allowed))
    if kind == "string_pattern_mismatch":
        is_name = context["pattern"] == NAME_PATTERN
        allowed = (
            "a letter, then letters, digits, - and _, at most 40" if is_name else f"what {context['pattern']} matches"
        )
        return Problem(f"got {got!r}; allowed: {allowed}", path=path)
    if kind in ("tuple_type", "list_type"):
        hint = 'a list is written as [1, 16] or ["on", "off"]' if isinstance(got, str) else None
        return Problem(f"got {_shown(got)}; must be a list", path=path, hint=hint)
    if kind in ("model_attributes_type", "model_type", "dict_type"):
        return Problem(f"got {_shown(got)}; must be a table", path=path)
    if kind == "value_error":
        reason = str(context["error"])
        return Problem(f"got {got!r}: {reason}" if not isinstance(got, dict) else reason, path=path)
    message = _WANTED.get(kind) or detail["msg"].replace("Input should be", "must be")
    return Problem(f"got {_shown(got)}; {message[:1].lower()}{message[1:]}", path=path, hint=_levels_hint(got, path))


_WANTED = (
    dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number")
    | dict.fromkeys(("float_type", "float_parsing"), "must be a number")
    | dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false")
    | {"string_type": 'must be text in quotes, as in "on"'}
)
"""Explanations of pydantic's error types for authors of experiments."""


def _levels_hint(got: Any, path: list[str | int]) -> str | None:
    """Return the hint that several values of a key belong in [matrix]."""
    if not isinstance(got, list) or path[:1] == ["matrix"]:
        return None
    key = ".".join(map(str, path))
    return f"several values are the levels of a factor: [matrix] {key} = [..], or --set matrix.{key}=[..]"


def _shown(got: Any) -> str:
    return "a table" if isinstance(got, dict) else repr(got)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return every model in an annotation, in its order, through unions, dicts and Annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def _allowed_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the keys allowed at `loc`."""
    found = _candidates(model, loc)
    return sorted({field.alias or name for candidate in found for name, field in candidate.model_fields.items()})


def _candidates(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """Return the possible models at `loc`, which consists of fields, dict keys and union tags."""
    candidates = [model]
    for part in loc:
        tagged = [candidate for candidate in candidates if part in _own_tags(candidate)]
        if tagged:
            candidates = tagged
            continue
        fields = [
            field.annotation
            for candidate in candidates
            for name, field in candidate.model_fields.items()
            if part in (name, field.alias)
        ]
        if fields:
            candidates = [found for annotation in fields for found in models_in(annotation)]
    return candidates


def _own_tags(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the discriminator values that select this model in a union."""
    fields = (model.model_fields[key] for key in _TAG_KEYS if key in model.model_fields)
    return tuple(tag for field in fields for tag in get_args(field.annotation))
