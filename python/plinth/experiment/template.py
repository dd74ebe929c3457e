"""The short experiment file of `plinth init`, and the JSON Schema of such files; `full_template.py` has every key."""

import json
import shlex
from pathlib import Path
from typing import Any

from plinth.common.shown import shown
from plinth.model.experiment import SPEC_VERSION, Experiment

_SCHEMA = Path(__file__).with_name("experiment.schema.json")
QUESTION = "How much faster is PostgreSQL in memory than on this machine's disk?"

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


def template(name: str, file: str, question: str | None = None) -> str:
    """Return a short experiment file that compares this machine's disk with its memory."""
    return _TEMPLATE.format(
        schema=schema_line(),
        file=in_a_comment(shlex.quote(file)),
        spec=SPEC_VERSION,
        name=json.dumps(name),
        question=json.dumps(question or QUESTION),
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
