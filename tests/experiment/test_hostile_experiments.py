"""Experiment files that are hostile or broken: an error that names file and key, never a traceback, never without end."""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plinth.experiment import read_experiment, read_experiment_text
from plinth.experiment.files import MOST_BYTES
from plinth.experiment.toml_text import toml_text
from plinth.model.errors import ExperimentError, PlinthError, UsageError

VALID = """\
spec = 1
name = "x"
question = "?"
[storage.disk]
kind = "directory"
[storage.slow]
kind = "tmpfs"
# in memory
size = "1GiB"
[server]
settings = {fsync = true}
[dataset]
kind = "tpcb"
[workload]
builtin = "tpcb-like"
[matrix]
storage = ["disk", "slow"]
workload.clients = [1, 2]
[measure]
repeats = 2
[full]
dataset.scale = 10
"""
DEEP = 20_000


def reported(text: str, folder: Path = Path(), overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(UsageError) as caught:
        read_experiment_text(text, "x.toml", folder, overrides)
    error = caught.value
    if not isinstance(error, ExperimentError):
        return error.message
    return "\n".join(f"{one.where}: {one.key}: {one.message}" for one in error.problems)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{VALID}deep = {'[' * DEEP}{']' * DEEP}\n", "x.toml:23: : tables or lists are nested too deeply"),
        (f"{VALID}deep = {'{a=' * DEEP}1{'}' * DEEP}\n", "x.toml:23: : tables or lists are nested too deeply"),
        (f"{VALID}{'a.' * DEEP}a = 1\n", "x.toml:23: full.a.a.a: tables or lists are nested more than"),
        (f"{VALID}x = {{{'a.' * DEEP}a = 1}}\n", "x.toml:23: full.x.a.a: tables or lists are nested more than"),
        (f"{VALID}[x{'.a' * DEEP}]\n", "x.toml:23: x.a.a.a: tables or lists are nested more than"),
        (VALID + '"a" . ' * DEEP + "a = 1\n", "x.toml:23: full.a.a.a: tables or lists are nested more than"),
        (f"{VALID}[x{'.a' * 100}]\n", "x.toml:23: x.a.a.a: tables or lists are nested more than"),
        (f"{VALID}deep = [\n{'[' * DEEP}\n", "x.toml:24: : tables or lists are nested too deeply"),
        (VALID.replace('"?"', '"a\\u0000b"'), "x.toml:3: question: the text has a NUL"),
        (
            VALID.replace('"directory"', '"directory"\npath = "/tmp/a\\u0000b"'),
            "x.toml:6: storage.disk.path: the text has a NUL",
        ),
        (VALID.replace("storage.disk", 'storage."di\\u0000sk"'), "x.toml:4: storage: the name of a key has a NUL"),
        (VALID.replace("repeats = 2", "repeats = " + "9" * 5000), "x.toml:20: : a whole number of more than 64 bits"),
        (
            VALID.replace("repeats = 2", "repeats = 0x" + "f" * 5000),
            "x.toml:20: measure.repeats: a whole number of more",
        ),
        (VALID.replace("repeats = 2", f"repeats = {2**63}"), "x.toml:20: measure.repeats: a whole number of more"),
        (VALID.replace("[1, 2]", f"[1, {2**64}]"), "x.toml:18: matrix.workload.clients.1: a whole number"),
    ],
)
def test_what_a_parser_gives_up_on_is_an_error_with_its_place(text: str, words: str) -> None:
    assert words in reported(text)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("dataset=" + "[" * DEEP, "nested too deeply"),
        (f"dataset={{{'a.' * DEEP}a=1}}", "nested more than"),
        ('name="a\\u0000b"', "NUL"),
        ("measure.repeats=" + "9" * 5000, "64 bits"),
        ("question=\udcff", "not valid UTF-8"),
    ],
)
def test_a_hostile_override_is_an_error(override: str, words: str) -> None:
    assert words in reported(VALID, overrides=(override,))


def scripted(path: str) -> str:
    return VALID.replace('builtin = "tpcb-like"', f"script = '{path}'")


def test_only_regular_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.sql")
    (tmp_path / "folder.sql").mkdir()
    (tmp_path / "large.sql").write_bytes(b" " * (MOST_BYTES + 1))
    (tmp_path / "bytes.sql").write_bytes(b"select '\xff'")
    (tmp_path / "zero.sql").symlink_to("/dev/zero")
    for name, words in {
        "/dev/zero": "not a regular file",
        "zero.sql": "not a regular file",
        "fifo.sql": "not a regular file",
        "folder.sql": "not a regular file",
        "large.sql": "larger than 16 MiB",
        "nowhere.sql": "No such file",
    }.items():
        assert f"workload.script: cannot read the file '{name}': " in reported(scripted(name), tmp_path)
        assert words in reported(scripted(name), tmp_path)
    (tmp_path / "allowed.sql").write_bytes(b"--" + b" " * (MOST_BYTES - 2))
    assert len(read_experiment_text(scripted("allowed.sql"), "x.toml", tmp_path).files["allowed.sql"]) == MOST_BYTES


@pytest.mark.parametrize("name", ["/dev/zero", "fifo.toml", "large.toml", "bytes.toml", "."])
def test_an_experiment_is_a_regular_file(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (MOST_BYTES + 1))
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(UsageError) as caught:
        read_experiment(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)


def test_a_reference_is_a_regular_file_too(tmp_path: Path) -> None:
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "deep.toml").write_text("a = " + "[" * DEEP)
    assert "not a regular file" in reported('reference = "zero.toml"\n' + VALID, tmp_path)
    assert "nested too deeply" in reported('reference = "deep.toml"\n' + VALID, tmp_path)


DOCUMENT = tomllib.loads(VALID)
SCALARS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.sampled_from(
        ["1GiB", "5s", "disk", "slow", "tmpfs", "device", "numbers", "postgresql://u:p@h/d", "a=b", "/dev/zero"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "size", "on", "x", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.lists(
    st.sampled_from(
        [
            *DOCUMENT,
            "drive",
            "reference",
            *DOCUMENT["workload"],
            "kind",
            "disk",
            "storage.disk.size",
            "connection",
            "rate",
            "script",
            "variables",
            "clients",
            "columns",
            "baseline",
            "settings",
            "0",
            "",
        ]
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=3))
def test_any_document_is_loaded_or_refused(changes: list[tuple[list[str], object]]) -> None:
    document = tomllib.loads(VALID)
    for keys, value in changes:
        table: object = document
        for key in keys[:-1]:
            if not isinstance(table, dict):
                break
            table = table.setdefault(key, {})
        if isinstance(table, dict):
            table[keys[-1]] = value
    try:
        read_experiment_text(toml_text(document), "x.toml", Path("/nowhere"))
    except PlinthError as error:
        assert str(error)


@settings(max_examples=60, deadline=None)
@given(
    keys=KEYS,
    value=st.one_of(VALUES.map(lambda value: toml_text({"v": value}).partition("=")[2].strip()), st.text(max_size=30)),
)
def test_any_override_is_taken_or_refused(keys: list[str], value: str) -> None:
    try:
        read_experiment_text(VALID, "x.toml", Path("/nowhere"), (f"{'.'.join(keys)}={value}",))
    except PlinthError as error:
        assert str(error)


def test_text_that_looks_like_a_long_key_stays_as_it_is() -> None:
    text = "a." * 200 + "a"
    assert read_experiment_text(VALID.replace('"?"', f'"{text}"'), "x.toml", Path(), ()).experiment.question == text


def test_thousands_of_wrong_values_are_one_error(tmp_path: Path) -> None:
    """Each would be an error with all that is said of it; 16 MiB of them took 10 GB."""
    for text in (f"{VALID}x = [{'{},' * 30_000}]\n", VALID + "".join(f"x{number} = 1\n" for number in range(30_000))):
        assert reported(text, tmp_path).endswith("it has more than 20,000 values")
