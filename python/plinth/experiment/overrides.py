"""Applies `--set key=value`, which replaces a key of the experiment."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from plinth.common.secrets import may_hold_secrets
from plinth.experiment.secrets import SecretsTaken
from plinth.experiment.storages import valid_storages
from plinth.experiment.toml_document import check_values, parse_toml, table_at
from plinth.experiment.toml_text import toml_value
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Problem, UsageError
from plinth.model.experiment import factor_path
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import raw_storages

_FORM = re.compile(r"\s*([A-Za-z0-9_.\"-]+?)\s*=(.*)", re.DOTALL)


def _split(override: str) -> tuple[str, str]:
    """Return key and value as written: "measure.repeats = 3" -> ("measure.repeats", " 3")."""
    match = _FORM.fullmatch(override)
    if match is None:
        shown = "--set" if may_hold_secrets(override) else f"--set {override!r}"
        raise UsageError(f"{shown} is not of the form key=value", hint="for example --set measure.repeats=3")
    return match[1], match[2]


def override_keys(override: str) -> tuple[str, ...]:
    """Return the keys of an override: "measure.repeats=3" -> ("measure", "repeats"). Raises UsageError for another form."""
    return factor_path(_split(override)[0].replace('"', ""))


def _value(text: str) -> Any:
    """Parse a TOML value; other text is taken as a string, so that quotes may be omitted."""
    try:
        try:
            return parse_toml(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            check_values({"value": text})
            return text.strip()
    except Problem as problem:
        raise UsageError(f"the value of a --set cannot be taken: {problem.message}") from problem


def override_without_secrets(override: str, secrets: SecretsTaken) -> str:
    """Return the override without the secrets in its value, which are added to `secrets`."""
    key, text = _split(override)
    value = _value(text)
    bare = secrets.without(value, override_keys(override))
    # Serialise the value again, which also drops secrets in a comment or after a line end.
    return f"{key}={toml_value(bare)}" if bare != value or may_hold_secrets(text) else override


def apply_overrides(document: dict[str, Any], overrides: Sequence[str]) -> list[str]:
    """Set the overrides' keys in the raw document, in place and in their order. Returns the factors that this removed.

    A key that is a factor replaces that factor's levels: `--set storage=memory` leaves one, `--set
    workload.clients=[1,2]` gives two. `--set matrix.workload.clients=[1,2]` makes it a factor if it is none yet. A
    table replaces the whole table. Another `kind` of a storage or of the dataset replaces its table
    by the values of --set. Factors of keys that the new kind does not have are removed with the table, and so are
    storages that were members of nothing else.
    Raises UsageError for an override that is malformed, or whose path leads through a value.
    """
    kinds_before = {table: _kind(document, table) for table in _tables_with_kinds(document)}
    members_before = _members(document)
    for place, override in enumerate(overrides):
        keys, value = _parsed(override)
        table = keys[:-1]
        if is_kind(keys) and not isinstance(value, list) and _kind(document, table) != value:
            _set(document, table, {"kind": value}, override)
            for earlier in overrides[:place]:
                earlier_keys, earlier_value = _parsed(earlier)
                if len(earlier_keys) > len(table) and earlier_keys[: len(table)] == table and not is_kind(earlier_keys):
                    _set(document, earlier_keys, earlier_value, earlier)
        else:
            _set(document, keys, value, override)
    named = {keys[1] for keys in map(override_keys, overrides) if keys[0] == "storage" and len(keys) > 1}
    for member in members_before - _members(document) - named:
        document["storage"].pop(member, None)
    changed = [table for table, kind in kinds_before.items() if _kind(document, table) != kind]
    return [factor for table in changed for factor in _remove_factors(document, table)]


def _parsed(override: str) -> tuple[tuple[str, ...], Any]:
    return override_keys(override), _value(_split(override)[1])


def _set(document: dict[str, Any], keys: tuple[str, ...], value: Any, override: str) -> None:
    try:
        set_key(document, keys, value)
    except KeyError as barred:
        raise UsageError(f"--set {override}: {barred.args[0]!r} is a value, not a table") from barred


def is_kind(keys: tuple[str, ...]) -> bool:
    """Return whether they name the kind of a storage or of the dataset, which determines the other keys of its table."""
    return keys == ("dataset", "kind") or (keys[0] == "storage" and keys[2:] == ("kind",))


def _tables_with_kinds(document: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("dataset",), *(("storage", name) for name in table_at(document, "storage"))]


def _members(document: dict[str, Any]) -> set[str]:
    """Return the storages that are members of another."""
    return set(raw_storages(valid_storages(table_at(document, "storage"))))


def _kind(document: dict[str, Any], table: tuple[str, ...]) -> Any:
    return table_at(document, *table).get("kind")


def _remove_factors(document: dict[str, Any], table: tuple[str, ...]) -> Iterator[str]:
    """Remove factors from a raw document's matrix whose keys the kind of `table` does not have; yield their names."""
    keys = _keys_of_kind(DatasetSpec if table == ("dataset",) else StorageSpec, _kind(document, table))
    for levels, key, factor in list(_factors(document)):
        path = factor_path(factor)
        if path[: len(table)] == table and len(path) > len(table) and keys and path[len(table)] not in keys:
            del levels[key]
            yield factor
    _prune(document.get("matrix"))


def _prune(table: Any) -> None:
    """Remove the empty tables of a raw matrix."""
    if isinstance(table, dict):
        for key, levels in list(table.items()):
            _prune(levels)
            if levels == {}:
                del table[key]


def _keys_of_kind(union: Any, kind: Any) -> set[str]:
    """Return the keys of a table of this kind; empty for an unknown kind."""
    specs: tuple[type[BaseModel], ...] = get_args(get_args(union)[0])
    return {
        field.alias or name
        for spec in specs
        if kind in get_args(spec.model_fields["kind"].annotation)
        for name, field in spec.model_fields.items()
    }


def set_key(document: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Set a key in the raw document, in place: the levels of a factor that writes there, else the key itself.

    Raises KeyError with the part of the path that is a value.
    """
    factor = _factor_named(document, factor_path(".".join(keys[1:])) if keys[0] == "matrix" else keys)
    if factor is not None:
        table, key = factor
        table[key] = value if isinstance(value, list) else [value]
        return
    table = document
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise KeyError(key)
    table[keys[-1]] = value


def _factor_named(document: dict[str, Any], keys: tuple[str, ...]) -> tuple[dict[str, Any], str] | None:
    """Return the table and key of the factor that sets `keys`."""
    return next(((table, key) for table, key, factor in _factors(document) if factor_path(factor) == keys), None)


def _factors(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield table, key and dotted name of each factor of the raw document, quoted ("workload.clients") or nested."""
    pending = [(document.get("matrix"), "")]
    while pending:
        table, prefix = pending.pop()
        if not isinstance(table, dict):
            continue
        for key, levels in table.items():
            if isinstance(levels, dict):
                pending.append((levels, f"{prefix}{key}."))
            else:
                yield table, key, f"{prefix}{key}"
