"""Hints of errors: each key that one names is a key of experiments, each command parses, and each option is one of Plinth's."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cyclopts import CycloptsError, MissingArgumentError

from plinth.bench.help import HELP as BENCH_HELP
from plinth.cli.application import application
from plinth.experiment import json_schema

PACKAGE = Path(__file__).parents[2] / "python" / "plinth"
SCHEMA = json_schema()
TABLES = ("server", "measure", "workload", "dataset", "durability", "fleet", "network", "storage", "matrix")
KEY = re.compile(rf"(?<![\w./-])(?:{'|'.join(TABLES)})(?:\.(?:\w+|\{{\}}))+(?!\.\w|[\w/(])")
COMMAND = re.compile(r"`(plinth [^`]+)`")
OPTION = re.compile(r"(?<![\w`-])--[a-z][a-z-]+")
OTHERS = re.compile(
    r"docker run|container|wipefs|mdadm|modprobe|ray start|initdb|fdisk|udevadm|lsblk|losetup|npm|setpriv|useradd"
)
"""Hints with commands of others."""
PLACEHOLDERS = {"N": "1", "SHELL": "bash", "{}": "x"}


class Hint(NamedTuple):
    """A text of the source that is a hint, with {} for what is filled in."""

    file: str
    line: int
    text: str


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts that an expression may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _texts(value)
    elif isinstance(node, ast.BinOp):
        for left in _texts(node.left) or [""]:
            yield from (left + right for right in _texts(node.right))


def _values(node: ast.AST) -> list[ast.expr]:
    """The expressions of a node that are hints."""
    if isinstance(node, ast.keyword):
        return [node.value] if node.arg == "hint" else []
    if isinstance(node, ast.Assign):
        return [node.value] if any("hint" in ast.unparse(target).lower() for target in node.targets) else []
    if isinstance(node, ast.FunctionDef) and re.search("hint|how_to", node.name):
        return [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]
    return []


def hints() -> list[Hint]:
    found: list[Hint] = []
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            for value in _values(node):
                found += (Hint(str(file.relative_to(PACKAGE)), value.lineno, text) for text in _texts(value))
    return found


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema and those that it is one of."""
    if "$ref" in schema:
        yield from _nodes(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
        return
    yield schema
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _nodes(one)


def is_key(dotted: str) -> bool:
    schemas = [SCHEMA]
    for part in dotted.split("."):
        inner: list[dict[str, Any]] = []
        for node in (node for schema in schemas for node in _nodes(schema)):
            if part in node.get("properties", {}):
                inner.append(node["properties"][part])
            elif isinstance(node.get("additionalProperties"), dict):
                inner.append(node["additionalProperties"])
            elif node.get("additionalProperties") is True:
                return True
            if isinstance(node.get("items"), dict):
                inner += [one["properties"][part] for one in _nodes(node["items"]) if part in one.get("properties", {})]
            for pattern in node.get("patternProperties", {}).values():
                inner.append(pattern)
        if not inner:
            return False
        schemas = inner
    return True


@cache
def options() -> frozenset[str]:
    """Of all commands."""
    found = set(OPTION.findall(BENCH_HELP)) | {"--help", "--install-completion"}
    pending = [application()]
    while pending:
        app = pending.pop()
        pending += [app[name] for name in app if not name.startswith("-")]
        if app.default_command is not None:
            found |= {name for argument in app.assemble_argument_collection() for name in argument.names}
    return frozenset(found)


HINTS = hints()


def test_hints_are_found():
    assert len(HINTS) > 200
    assert any(COMMAND.search(hint.text) for hint in HINTS)
    assert is_key("server.settings.fsync") and is_key("storage.x.size") and is_key("measure.restore")
    assert not is_key("server.sttings") and not is_key("measure.repeat")


@pytest.mark.parametrize(
    "hint", [hint for hint in HINTS if KEY.search(hint.text)], ids=lambda hint: f"{hint.file}:{hint.line}"
)
def test_keys_are_ones_that_there_are(hint):
    for key in KEY.findall(hint.text):
        name = key.replace("{}", "x").removeprefix("matrix.")
        assert name == "x" or is_key(name), f"{key} in {hint.text!r}"


@pytest.mark.parametrize(
    "hint", [hint for hint in HINTS if COMMAND.search(hint.text)], ids=lambda hint: f"{hint.file}:{hint.line}"
)
def test_commands_are_ones_that_there_are(hint):
    for command in COMMAND.findall(hint.text):
        words = [PLACEHOLDERS.get(word, word) for word in shlex.split(command)[1:]]
        if words[0] in ("bench", "--install-completion"):
            continue  # bench has pgbench's command line
        try:
            application().parse_args(words, exit_on_error=False, print_error=False)
        except MissingArgumentError:
            continue
        except CycloptsError as error:
            pytest.fail(f"{command}: {error}")


@pytest.mark.parametrize(
    "hint",
    [hint for hint in HINTS if OPTION.search(hint.text) and not OTHERS.search(hint.text)],
    ids=lambda hint: f"{hint.file}:{hint.line}",
)
def test_options_are_ones_that_there_are(hint):
    assert set(OPTION.findall(COMMAND.sub("", hint.text))) <= options(), hint.text
