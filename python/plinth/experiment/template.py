"""Generates the commented experiment file of `plinth init` from the descriptions in the model."""

import json
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from plinth.model.dataset import TpcbDataset
from plinth.model.experiment import SPEC_VERSION, MeasureSpec
from plinth.model.server_spec import ServerSpec
from plinth.model.shown import shown
from plinth.model.storage import DirectoryStorage, TmpfsStorage
from plinth.model.workload import WorkloadSpec

_SCHEMA = Path(__file__).with_name("experiment.schema.json")
_HEAD = """\
#:schema {schema}
# A Plinth experiment: one question, asked of storages and settings.
#   plinth plan {file}   what will be done, how long it takes, what it needs
#   plinth run {file}    do it, and write a report
# Keys that are commented out show their default, or an example where there is none.

spec = {spec}
name = {name}
question = {question}
"""

_MATRIX = """\
# Factors and their levels: every combination is a variant, and all variants are measured in turn.
[matrix]
storage = ["disk", "memory"]
# workload.clients = [1, 8, 32]
# server.settings.shared_buffers = ["128MB", "1GB"]
"""

_NETWORK = """\
# An emulated network between the primary and the standbys of server.standby, as root.
# [network]
# delay = "1ms"
"""

_DRIVE = """\
# What a drive is rated for; the report then says how long one lasts at the measured rates.
# [drive]
# tbw = "600TB"
"""


def template(name: str, file: str, question: str | None = None) -> str:
    """Return a valid, commented experiment file that compares this machine's disk with its memory.

    Its first line names the JSON Schema for editors that know TOML by taplo, such as VS Code with Even Better TOML.
    """
    head = _HEAD.format(
        schema=_SCHEMA.as_uri(),
        file=_in_a_comment(shlex.quote(file)),
        spec=SPEC_VERSION,
        name=json.dumps(name),
        question=json.dumps(question or "How much faster is PostgreSQL in memory than on this machine's disk?"),
    )
    sections = [
        head,
        _section("storage.disk", DirectoryStorage, {"kind": "directory"}),
        _section("storage.memory", TmpfsStorage, {"kind": "tmpfs", "size": "2GiB"}),
        _section("server", ServerSpec, {"version": 18}),
        _section("dataset", TpcbDataset, {"kind": "tpcb", "scale": 10}),
        _section("workload", WorkloadSpec, {"builtin": "tpcb-like", "clients": 8}),
        _MATRIX,
        _section("measure", MeasureSpec, {"warmup": "5s", "duration": "30s", "repeats": 5}),
        _NETWORK,
        _DRIVE,
    ]
    return "\n".join(sections)


def _in_a_comment(text: str) -> str:
    """Return text on one line and without bytes that are not UTF-8, which TOML does not allow."""
    return shown(" ".join(text.split("\n"))).encode(errors="replace").decode()


_FIRST = ("kind", "builtin")
"""Keys that say what all others of their table are about."""


def _section(header: str, model: type[BaseModel], written: dict[str, object]) -> str:
    lines = [*_comment(model.__doc__ or ""), f"[{header}]"]
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] not in _FIRST):
        key = field.alias or name
        lines += _comment(f"{field.description or ''} {_allowed(field.annotation)}")
        value = written.get(key, _shown_value(field))
        prefix = "" if key in written else "# "
        lines.append(f"{prefix}{key} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in textwrap.wrap(" ".join(text.split()), 110))


def _allowed(annotation: object) -> str:
    """Return "Allowed: a, b." for a key with enumerated values."""
    if get_origin(annotation) is Literal:
        words = get_args(annotation)
        return f"Allowed: {', '.join(words)}." if len(words) > 1 else ""
    return " ".join(filter(None, map(_allowed, get_args(annotation))))


def _shown_value(field: FieldInfo) -> object:
    default = field.get_default(call_default_factory=True, validated_data={})
    if default in (None, {}, PydanticUndefined):
        examples = field.examples or [default]
        return examples[0]
    return default


def _toml(value: object) -> str:
    if isinstance(value, BaseModel):
        return _toml(value.model_dump(by_alias=True))
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {_toml(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return json.dumps(value)
