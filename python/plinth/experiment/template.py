"""The experiment files that `plinth init` writes: a short one, and with --full one with every key that there is, from the models and their
descriptions; and the JSON Schema of such files."""

import json
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from plinth.common.shown import shown
from plinth.experiment.problems import models_in
from plinth.experiment.toml_text import toml_key
from plinth.model.experiment import SPEC_VERSION, Experiment

_SCHEMA = Path(__file__).with_name("experiment.schema.json")
_QUESTION = "How much faster is PostgreSQL in memory than on this machine's disk?"

_TEMPLATE = """\
{schema}
# One question, asked of storages and settings. To ask your own, change what is here.
#   plinth plan {file}   every command, the time and space that it takes; changes nothing
#   plinth run {file}    do it, undo all that was made, answer, write a report
# Every key: plinth init --full. Whole experiments: plinth init --example NAME

spec = {spec}
name = {name}
question = {question}

# Places where a data directory can be stored. Other kinds: loop, file, zram, device, btrfs, zfs, md, lvm, emulated.
[storage.disk]
kind = "directory"
# path = "/mnt/nvme"    # to measure another disk; without it a folder of Plinth's own

[storage.memory]
kind = "tmpfs"
size = "2GiB"

[server]
version = 18            # a server of its own, for this run only
settings.max_wal_size = "2GB"

# What is loaded: pgbench's tables, with 100,000 accounts for each unit of scale.
[dataset]
kind = "tpcb"
scale = 10

# What the clients do: pgbench's transaction; script = "mine.sql" runs one of your own, in pgbench's language.
[workload]
builtin = "tpcb-like"
clients = 8

# The factors: every combination of their levels is a variant, and all variants are measured in turn.
[matrix]
storage = ["disk", "memory"]
# workload.clients = [1, 8, 32]
# server.settings.synchronous_commit = ["on", "off"]

[measure]
warmup = "5s"
duration = "30s"
repeats = 5             # trials of each variant; fewer than 3 allow no interval

# A bound that each variant has to keep; with --fail-on objective a pipeline stops where one does not.
# [[objective]]
# metric = "latency_p99"
# max = "20ms"

# Power cuts after the trials, to see which acknowledged commits are lost; for storages of kind emulated.
# [durability]
# cuts = 24
"""
_FULL_HEAD = """\
{schema}
# A Plinth experiment with every key that there is, each with its default, or with an example where it has none. As it is, it compares
# this machine's disk with its memory. A # directly before a key or a table keeps it out; of tables of one name, [[...]] excepted, only one can
# be in use.
#   plinth plan {file}   every command, the time and space that it takes; changes nothing
#   plinth run {file}    do it, undo all that was made, answer, write a report
"""
_WRITTEN: dict[str, dict[str, object]] = {
    "storage.disk": {"kind": "directory"},
    "storage.memory": {"kind": "tmpfs", "size": "2GiB"},
    "server": {"version": 18},
    "dataset": {"kind": "tpcb", "scale": 10},
    "workload": {"builtin": "tpcb-like", "clients": 8},
    "matrix": {"storage": ["disk", "memory"]},
    "measure": {"warmup": "5s", "duration": "30s", "repeats": 5},
}
"""What is not commented out."""
_NAMES: dict[str, str] = {
    "host": "db1",
    "server.standby": "a",
    "network.link": "primary-a",
    "dataset.columns": "amount",
    "prices.storage": "disk",
}
"""Names of tables in tables of any name. A storage has the name of its kind."""
_STORAGES = {"directory": "disk", "tmpfs": "memory"}
_WIDTH = 110
_FIRST = ("kind", "do", "builtin")
"""Keys that say what all others of their table are about."""
_OF_ANY_KEYS = ("matrix", "full")
"""Tables whose keys are those of other tables."""


def template(name: str, file: str, question: str | None = None) -> str:
    """Return a short experiment file that compares this machine's disk with its memory."""
    return _TEMPLATE.format(
        schema=schema_line(),
        file=in_a_comment(shlex.quote(file)),
        spec=SPEC_VERSION,
        name=json.dumps(name),
        question=json.dumps(question or _QUESTION),
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an experiment file, with keys by alias."""
    schema = Experiment.model_json_schema(by_alias=True)
    # Dotted keys may also be written as nested tables: workload.clients = [1, 16] without quotes.
    for name in ("matrix", "full"):
        values = schema["properties"][name]["additionalProperties"]
        schema["properties"][name]["additionalProperties"] = {"anyOf": [values, {"type": "object"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_line() -> str:
    """Return the first line of an experiment file, which names the JSON Schema for editors that know TOML by taplo, such as VS Code
    with Even Better TOML.
    """
    return f"#:schema {_SCHEMA.as_uri()}"


def in_a_comment(text: str) -> str:
    """Return text on one line and without bytes that are not UTF-8, which TOML does not allow."""
    return shown(" ".join(text.split("\n"))).encode(errors="replace").decode()


def full_template(name: str, file: str) -> str:
    """Return a valid experiment file that compares this machine's disk with its memory, and has every other key in comments."""
    head = _FULL_HEAD.format(schema=schema_line(), file=in_a_comment(shlex.quote(file)))
    top = {"spec": SPEC_VERSION, "name": name, "question": _QUESTION}
    return "\n".join([head, *_Writer().table(Experiment, "", top)])


class _Writer:
    """Writes tables of keys. What was explained is not explained again, so that what kinds have in common is there once."""

    def __init__(self) -> None:
        self._explained: set[str] = set()
        self._models: set[type[BaseModel]] = set()

    def table(
        self, model: type[BaseModel], path: str, written: Mapping[str, object], *, listed: bool = False
    ) -> Iterator[str]:
        """Yield the keys of a table, then the tables within it."""
        self._models.add(model)
        lines = (
            [*self._explain(model.__doc__), _mark(f"[[{path}]]" if listed else f"[{path}]", written)] if path else []
        )
        inner: list[str] = []
        for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] not in _FIRST):
            key = field.alias or name
            if key in _OF_ANY_KEYS:
                inner.append(self._of_any_keys(key, field))
                continue
            new = [one for one in dict.fromkeys(models_in(field.annotation)) if one not in self._models]
            value = written.get(key, _shown_value(field))
            if not new or _is_flat(value):
                lines += self._explain(f"{field.description or ''} {_allowed(field.annotation)}")
                lines.append(_mark(f"{key} = {_toml(value)}", key in written))
            inner += self._within(f"{path}.{key}".lstrip("."), field, new)
        yield "\n".join(lines) + "\n"
        yield from inner

    def _within(self, path: str, field: FieldInfo, models: Iterable[type[BaseModel]]) -> Iterator[str]:
        """Yield the tables that a key may hold, one of each kind."""
        for place, model in enumerate(models):
            if place == 0 and (words := list(self._explain(field.description))):
                yield "\n".join(words)
            at = f"{path}.{_name(path, model)}" if _holds(field.annotation, dict) else path
            written = _WRITTEN.get(at, {})
            if written.get("kind") not in (None, *_kinds(model)):  # the table is written as one of another kind
                written = {}
            yield from self.table(model, at, written, listed=_holds(field.annotation, list, tuple))

    def _of_any_keys(self, key: str, field: FieldInfo) -> str:
        written = _WRITTEN.get(key, {})
        keys: dict[str, object] = {**written, **(field.examples or [{}])[0]}
        lines = [_mark(f"{one} = {_toml(value)}", one in written) for one, value in keys.items()]
        return "\n".join([*self._explain(field.description), _mark(f"[{key}]", written), *lines]) + "\n"

    def _explain(self, text: str | None) -> Iterator[str]:
        words = " ".join((text or "").split())
        if words and words not in self._explained:
            self._explained.add(words)
            yield from (f"# {line}" for line in textwrap.wrap(words, _WIDTH))


def _mark(line: str, is_written: object) -> str:
    return line if is_written else f"#{line}"


def _name(path: str, model: type[BaseModel]) -> str:
    """Return an example of a name that the user chooses, such as that of a standby; a storage is named after its kind."""
    (kind, *_) = _kinds(model) or ("",)
    return _STORAGES.get(kind, kind) if path == "storage" else _NAMES[path]


def _kinds(model: type[BaseModel]) -> tuple[str, ...]:
    field = model.model_fields.get("kind")
    return get_args(field.annotation) if field is not None else ()


def _holds(annotation: object, *containers: type) -> bool:
    """Return whether models in an annotation are in such a container."""
    if get_origin(annotation) in containers:
        return bool(models_in(annotation))
    return any(_holds(argument, *containers) for argument in get_args(annotation))


def _allowed(annotation: object) -> str:
    """Return "Allowed: a, b." for a key with enumerated values."""
    if get_origin(annotation) is Literal:
        words = get_args(annotation)
        return f"Allowed: {', '.join(map(str, words))}." if len(words) > 1 else ""
    return " ".join(filter(None, map(_allowed, get_args(annotation))))


def _shown_value(field: FieldInfo) -> object:
    """Return the default; without one an example, or the first of the allowed values, or for a Boolean the one with an effect."""
    default = field.get_default(call_default_factory=True, validated_data={})
    if default not in (None, (), {}, PydanticUndefined) and not isinstance(default, BaseModel):
        return default
    if field.examples:
        return field.examples[0]
    if words := list(_words(field.annotation)):
        return words[0]
    return True if bool in (field.annotation, *get_args(field.annotation)) else default


def _words(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
        return
    for argument in get_args(annotation):
        yield from _words(argument)


def _is_flat(value: object) -> bool:
    """Return whether a value is none that a table would be written for."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_flat, value))
    return isinstance(value, (str, int, float))


def _toml(value: object) -> str:
    if isinstance(value, BaseModel):
        return _toml(value.model_dump(by_alias=True, exclude_unset=True))
    if isinstance(value, dict):
        inside = ", ".join(f"{toml_key(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)
