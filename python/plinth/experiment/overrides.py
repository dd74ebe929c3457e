"""`--set key=value`: one key of the experiment, replaced from the command line."""

import re
import tomllib
from typing import Any

from plinth.model.errors import UsageError
from plinth.model.experiment import factor_path

_FORM = re.compile(r"\s*([A-Za-z0-9_.\"-]+?)\s*=(.*)", re.DOTALL)


def override_keys(override: str) -> tuple[str, ...]:
    """The keys that an override names: "measure.repeats=3" -> ("measure", "repeats")."""
    match = _FORM.fullmatch(override)
    if match is None:
        raise UsageError(f"--set {override!r} is not of the form key=value", hint="for example --set measure.repeats=3")
    return factor_path(match[1].replace('"', ""))


def _value(text: str) -> Any:
    """A TOML value; text that is none stands for itself, so that quotes may be left out."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def apply_override(document: dict[str, Any], override: str) -> None:
    """Set the override's key in the raw document, in place.

    A key that is a factor replaces that factor's levels: `--set storage=memory` leaves one, `--set
    workload.clients=[1,2]` gives two. A table replaces the whole table. Raises UsageError when it has no form or its way is barred by a value.
    """
    match = _FORM.fullmatch(override)
    keys = override_keys(override)
    assert match is not None, "override_keys has refused it"
    try:
        set_key(document, keys, _value(match[2]))
    except KeyError as barred:
        raise UsageError(f"--set {override}: {barred.args[0]!r} is a value, not a table") from barred


def set_key(document: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Set a key in the raw document, in place: the levels of a factor that writes there, else the key itself.

    Raises KeyError with the part of the way that is a value.
    """
    factor = _factor_named(document, keys)
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
    """The table and key of the factor that writes to `keys`, quoted ("workload.clients") or nested."""
    pending = [(document.get("matrix"), "")]
    while pending:
        table, prefix = pending.pop()
        if not isinstance(table, dict):
            continue
        for key, levels in table.items():
            path = f"{prefix}{key}"
            if isinstance(levels, dict):
                pending.append((levels, f"{path}."))
            elif factor_path(path) == keys:
                return table, key
    return None
