"""`plinth run BUNDLE` names every path, disk, program and address of its experiment, wherever a key may be written."""

import copy
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command_line import plinth
from plinth.common.shown import quoted
from plinth.experiment.rights import KEYS, OUTSIDE
from plinth.experiment.toml_text import toml_text
from plinth.system.owner import server_owner
from shell_experiment import SHELL

MANIFEST = {
    "schema_version": 1,
    "plinth_version": "0.1.0",
    "run_id": "r",
    "experiment": "x",
    "created_unix_ns": 1,
    "status": "complete",
}
REFERENCE = next(
    file for file in (resources.files("plinth") / "reference").iterdir() if file.name.endswith(".toml")
).read_text()
DEVICE = {"kind": "device", "serial": "s", "size": "1GB"}
HOST = {"address": "ssh://one.invalid"}
ON_HOST = {"kind": "directory", "host": "one"}
FLEET = {"executor": "ssh", "hosts": ["one.invalid"]}
SQL = {"dataset": {"kind": "sql", "schema": "one.sql"}}


class Example(NamedTuple):
    """Two values of a key, and what else an experiment with them needs, by its tables; a table of None is taken away."""

    one: Any
    two: Any
    rest: Mapping[str, Any] = {}
    is_factor: bool = True


EXAMPLES: Mapping[str, Example] = {
    "reference": Example("one.toml", "two.toml", is_factor=False),
    "host.one.address": Example(
        "ssh://one.invalid", "ssh://two.invalid", {"storage": {"disk": ON_HOST}}, is_factor=False
    ),
    "host.one.command": Example(
        "/opt/one", "/opt/two", {"host": {"one": HOST}, "storage": {"disk": ON_HOST}}, is_factor=False
    ),
    "host.one.listen_address": Example(
        "192.0.2.1", "192.0.2.2", {"host": {"one": HOST}, "storage": {"disk": ON_HOST}}, is_factor=False
    ),
    "storage.disk.path": Example("/mnt/one", "/mnt/two"),
    "storage.disk.id": Example(
        "/dev/disk/by-id/one", "/dev/disk/by-id/two", {"storage": {"disk": DEVICE}}, is_factor=False
    ),
    "server.bindir": Example("/opt/one", "/opt/two"),
    "server.connection": Example("host=one.invalid", "host=two.invalid", {"storage": None}, is_factor=False),
    "server.listen_address": Example("192.0.2.1", "192.0.2.2", {"server": {"listen": "tcp"}}),
    "dataset.path": Example("/data/one", "/data/two", {"dataset": {"kind": "dump"}}),
    "dataset.globals": Example("/data/one", "/data/two", {"dataset": {"kind": "dump", "path": "/data/dump"}}),
    "dataset.schema": Example("one.sql", "two.sql", SQL),
    "dataset.load": Example("one.sql", "two.sql", SQL),
    "dataset.after_load": Example("one.sql", "two.sql", SQL),
    "dataset.before_trial": Example("one.sql", "two.sql", SQL),
    "workload.script": Example("one.sql", "two.sql@3"),
    "workload.replay": Example("/logs/one", "/logs/two", {"workload": {"script": None, "clients": None}}),
    "fleet.ray_address": Example(
        "ray://one.invalid:10001",
        "ray://two.invalid:10001",
        {"fleet": {"executor": "ray", "machines": 2}},
        is_factor=False,
    ),
    "fleet.hosts": Example(["one.invalid"], ["two.invalid"], {"fleet": FLEET}, is_factor=False),
    "fleet.command": Example("/opt/one", "/opt/two", {"fleet": FLEET}, is_factor=False),
}
"""Each key that names something outside; `one` and `disk` stand for NAME."""


def test_there_is_an_example_of_every_key_that_names_something_outside() -> None:
    assert {key.replace(".one.", ".NAME.").replace(".disk.", ".NAME.") for key in EXAMPLES} == {
        key for key, one in KEYS.items() if one.names in OUTSIDE
    }


def test_what_names_something_outside_is_confirmed_and_nothing_else() -> None:
    for key, one in KEYS.items():
        assert (one.names in OUTSIDE) == (one.treatment == "confirmed") == (one.shown is not None), key
        assert (one.by == "nobody") <= (one.names == "nothing"), key
        assert (one.treatment == "harmless") == (one.by == "nobody"), key


def _merged(document: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if value is None:
            document.pop(key)
        elif isinstance(value, Mapping) and isinstance(document.get(key), dict) and "kind" not in value:
            _merged(document[key], value)
        else:
            document[key] = copy.deepcopy(value)


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    *tables, last = key.split(".")
    for table in tables:
        document = document.setdefault(table, {})
    document[last] = value


def _forms(key: str, example: Example) -> Iterator[tuple[str, dict[str, Any], list[str], list[str], list[Any]]]:
    """Yield where a key may be written: a name, the document, overrides of the bundle, further words, and the values to be named."""
    document = tomllib.loads(SHELL)
    _merged(document, example.rest)
    _put(document, key, example.one)
    override = f"{key}={json.dumps(example.two)}"
    yield "key", document, [], [], [example.one]
    yield "--set", document, [], ["--set", override], [example.two]
    yield "override of the bundle", document, [override], [], [example.two]
    if not key.startswith(("host", "fleet", "reference")):
        yield "full", {**document, "full": {key: example.two}}, [], ["--full"], [example.two]
    if example.is_factor:
        levels = {**document, "matrix": {key: [example.one, example.two]}}
        yield "levels", levels, [], [], [example.one, example.two]
        yield (
            "levels by --set",
            document,
            [],
            ["--set", f"matrix.{key}={json.dumps([example.one, example.two])}"],
            [example.two],
        )


@pytest.mark.parametrize("key", EXAMPLES)
def test_each_value_is_named_before_anything_is_done(tmp_path: Path, key: str) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "files").mkdir(parents=True)
    for name in ("who.sql", "one.sql", "two.sql"):
        (bundle / "files" / name).write_text("SELECT 1;\n")
    for name in ("one.toml", "two.toml"):
        (bundle / "files" / name).write_text(REFERENCE)
    for form, document, overrides, words, values in _forms(key, EXAMPLES[key]):
        (bundle / "manifest.json").write_text(json.dumps({**MANIFEST, "overrides": overrides}))
        (bundle / "experiment.toml").write_text(toml_text(document))
        done = plinth("run", bundle, *words, cwd=tmp_path)
        assert done.returncode == 4 and "give --yes" in done.stderr, (form, done.stderr)
        sentences = [line for line in done.stderr.splitlines() if line.startswith("It ")]
        for value in values:
            text = value[0] if isinstance(value, list) else value
            assert any(quoted(text) in line for line in sentences), (form, value, sentences)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def _shown(folder: Path, document: dict[str, Any], *words: object, overrides: Sequence[str] = ()) -> list[str]:
    """The lines in which a bundle's experiment is shown, which nothing may steer."""
    bundle = folder / "bundle"
    (bundle / "files").mkdir(parents=True, exist_ok=True)
    (bundle / "files" / "who.sql").write_text("SELECT 1;\n")
    (bundle / "manifest.json").write_text(json.dumps({**MANIFEST, "overrides": list(overrides)}))
    (bundle / "experiment.toml").write_text(toml_text(document))
    done = plinth("run", bundle, *words, cwd=folder)
    assert done.returncode == 4 and "give --yes" in done.stderr, done.stderr
    assert not set(done.stderr) & set("\x1b\x07\r\x85\u2028\u202e\u2066\u200b\ufeff\U000e0041"), done.stderr
    return done.stderr.splitlines()


def _experiment(key: str, value: object) -> dict[str, Any]:
    document = tomllib.loads(SHELL)
    _put(document, key, value)
    return document


HARMLESS = "It does nothing."
STEERING = {
    "a line end": (f"/mnt/x\n{HARMLESS}\n", r"/mnt/x\x0aIt does nothing.\x0a"),
    "a carriage return": (f"/mnt/x\r{HARMLESS}", r"/mnt/x\x0dIt does"),
    "an escape": ("/mnt/\x1b[2K\x1b[1A", r"/mnt/\x1b[2K\x1b[1A"),
    "other line ends": ("/mnt/\x85\u2028\x0b\x0c", r"/mnt/\x85\u2028\x0b\x0c"),
    "another reading order": ("/mnt/\u202ecod.x\u2066", r"/mnt/\u202ecod.x\u2066"),
    "what is not seen": ("/mnt/\u200b\ufeff\U000e0041x", r"/mnt/\u200b\ufeff\U000e0041x"),
    "a quotation mark": ('/mnt/x", which is empty. "', r"/mnt/x\", which is empty. \""),
    "a backslash": ("/mnt/\\x0a", r"/mnt/\\x0a"),
    "a tab": ("/mnt/x\tIt", r"/mnt/x\x09It"),
    "a very long name": ("/mnt/" + "x" * 5000, "x" * 5000 + '"'),
    "blanks": ("/mnt/" + " " * 300 + "x", " " * 300 + 'x"'),
}


@pytest.mark.long
@pytest.mark.parametrize("key", ["storage.disk.path", "server.bindir"])
@pytest.mark.parametrize("name", STEERING)
def test_no_value_passes_for_what_is_said_around_it(tmp_path: Path, key: str, name: str) -> None:
    value, said = STEERING[name]
    for lines in (
        _shown(tmp_path, _experiment(key, value)),
        _shown(tmp_path, {**_experiment(key, "/y"), "matrix": {key: ["/y", value]}}),
        _shown(tmp_path, tomllib.loads(SHELL), "--set", f"{key}={json.dumps(value, ensure_ascii=False)}"),
    ):
        assert HARMLESS not in lines
        assert any(line.startswith("It ") and said in line for line in lines), lines


def test_a_text_of_the_bundle_does_not_pass_for_the_end_of_it(tmp_path: Path) -> None:
    question = f"?\n{'-' * 72}\n{HARMLESS}\nset on the command line: nothing"
    lines = _shown(tmp_path, _experiment("question", question), overrides=[f'question="""x\n{HARMLESS}"""'])
    assert HARMLESS not in lines and lines.count("-" * 72) == 2  # of the experiment and of its script
    assert [line for line in lines if line.startswith("set on")] == [
        rf'set on the command line: "question=\"\"\"x\x0a{HARMLESS}\"\"\""'
    ]


def test_where_links_and_folders_above_lead_is_said(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "link", tmp_path / "real" / ".." / "real", f"{tmp_path}//real", "real", "bundle/../real"):
        for key in ("storage.disk.path", "server.bindir"):
            lines = _shown(tmp_path, _experiment(key, str(path)))
            assert any(f'{quoted(str(path))}, which leads to "{tmp_path}/real"' in line for line in lines), (
                path,
                lines,
            )
    kinds = {"kind": "dump", "path": "../link"}  # as from the bundle's folder, which it is relative to
    lines = _shown(tmp_path, {**tomllib.loads(SHELL), "dataset": kinds})
    assert any(f'reads the dump or backup "{tmp_path}/real"' in line for line in lines), lines
    (tmp_path / "loop").symlink_to("loop")
    assert _shown(tmp_path, _experiment("storage.disk.path", str(tmp_path / "loop")))


@pytest.mark.parametrize(
    "path", ["/proc/self/fd/0", "/dev/fd/0", "/dev/stdin", "/proc/self/root/etc", "/proc/self/cwd"]
)
def test_a_path_that_leads_to_what_each_process_has_is_shown_as_it_is(tmp_path: Path, path: str) -> None:
    lines = _shown(tmp_path, _experiment("storage.disk.path", path))
    assert any(line.startswith("It ") and f"directory {quoted(path)}" in line for line in lines)


def test_the_name_of_the_bundles_folder_is_shown_on_one_line(tmp_path: Path) -> None:
    folder = tmp_path / f"x\n{HARMLESS}\n"
    folder.mkdir()
    assert HARMLESS not in _shown(folder, tomllib.loads(SHELL))


def test_programs_of_a_bindir_are_never_run_by_root(scratch: Path) -> None:
    """By canaries that say who runs them, and try to write it down."""
    bindir, ran = scratch / "bin", scratch / "ran"
    bindir.mkdir()
    ran.mkdir()
    ran.chmod(0o777)
    for name in (
        "postgres",
        "initdb",
        "pg_ctl",
        "pg_controldata",
        "pg_verifybackup",
        "pg_restore",
        "psql",
        "pg_config",
    ):
        program = bindir / name
        program.write_text(
            f'#!/bin/sh\n(id -u > "{ran}/{name}.$$") 2>/dev/null\necho "{name} (PostgreSQL) 18.$(id -u)"\n'
        )
        program.chmod(0o755)
    said = ""
    for words in (("plan", scratch / "x.toml"), ("run", scratch / "x.toml")):
        (scratch / "who.sql").write_text("SELECT 1;\n")
        (scratch / "x.toml").write_text(toml_text(_experiment("server.bindir", str(bindir))))
        said += plinth(*words, cwd=scratch, PLINTH_STATE_DIR=str(scratch / "state")).stderr
    users = set(re.findall(r"\(PostgreSQL\) 18\.(\d+)", said))
    assert users == {str(server_owner().uid)}, said
    assert os.geteuid() != 0 or not [*ran.iterdir()], "they can write nowhere"
