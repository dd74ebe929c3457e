"""What `plinth init` writes: a short file, one that has every key, and the curated experiments."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter

from plinth.cli import main
from plinth.experiment import (
    example,
    example_names,
    full_template,
    json_schema,
    read_experiment,
    read_experiment_text,
    template,
)
from plinth.model.experiment import Experiment

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
HEADER = re.compile(r"#?\[{1,2}([^\[\]]+)\]{1,2}")
KEY = re.compile(r"#?([A-Za-z_]+) = (.*)")

Table = tuple[str, dict[str, str]]
"""Path and keys, each with its value as written."""


def tables_of(text: str) -> list[Table]:
    """The tables of a file, those that are commented out too."""
    tables: list[Table] = [("", {})]
    for line in text.splitlines():
        if header := HEADER.fullmatch(line):
            tables.append((header[1], {}))
        elif key := KEY.fullmatch(line):
            tables[-1][1][key[1]] = key[2]
    return tables


FULL = tables_of(full_template("mine", "mine.toml"))
PATHS = {path for path, _ in FULL}
DEFINITIONS: dict[str, dict[str, Any]] = {
    name: one for name, one in json_schema()["$defs"].items() if one.get("properties")
}


def value_of(keys: dict[str, str], key: str) -> Any:
    return tomllib.loads(f"x = {keys[key]}")["x"]


def is_of(table: Table, definition: dict[str, Any]) -> bool:
    """Whether a table has every key of a definition, as a line or as a table within it, and those that say its kind."""
    path, keys = table
    for key, one in definition["properties"].items():
        within = f"{path}.{key}"
        if key not in keys and not any(other == within or other.startswith(f"{within}.") for other in PATHS):
            return False
        if key in ("kind", "do") and value_of(keys, key) not in (
            one.get("const"),
            *one.get("enum", ()),
        ):
            return False
    return len(keys) <= len(definition["properties"])


def table_of(name: str) -> Table:
    found = [table for table in FULL if is_of(table, DEFINITIONS[name])]
    assert found, f"no table has all of {', '.join(DEFINITIONS[name]['properties'])}"
    return found[0]


def models_of(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_of(field.annotation)
    for argument in get_args(annotation):
        yield from models_of(argument)


MODELS = {model.__name__: model for model in models_of(Experiment)}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_full_file_has_every_key_of_the_schema_with_a_value_that_it_takes(name: str) -> None:
    _, keys = table_of(name)
    model = MODELS[name]
    for field_name, field in model.model_fields.items():
        key = field.alias or field_name
        if key in keys:
            taken: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
            adapter: TypeAdapter[Any] = TypeAdapter(taken)
            adapter.validate_python(value_of(keys, key), by_alias=True, by_name=False)


ONE_OF_SEVERAL = {
    "DriveSpec": "tbw",
    "FleetSpec": "hosts",
    "InstanceSpec": "iops",
    "NetworkAction": "delay",
    "Objective": "max",
    "PricesSpec": "server_per_hour",
    "SqlDataset": "schema",
    "WorkloadSpec": "builtin",
}
"""A key of those of which a table must have at least one."""
MORE = {"GeneratedDataset": {"columns": {"id": {"kind": "sequence"}}}, "DurabilitySpec": {"cuts": 1}}
"""What is a table of its own in the file, and what its default turns off."""


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_a_table_must_have_is_a_table_that_loads(name: str) -> None:
    _, keys = table_of(name)
    needed = [*DEFINITIONS[name].get("required", ()), *([ONE_OF_SEVERAL[name]] if name in ONE_OF_SEVERAL else [])]
    table = {key: value_of(keys, key) for key in needed if key in keys} | MORE.get(name, {})
    MODELS[name].model_validate(table, by_alias=True, by_name=False)


def test_the_full_file_has_every_key_of_the_top() -> None:
    keys = {*FULL[0][1], *(path.partition(".")[0] for path in PATHS)}
    assert set(json_schema()["properties"]) <= keys


@pytest.mark.parametrize("write", [template, full_template])
def test_a_file_loads_and_asks_the_question_of_the_main_job(write, tmp_path: Path) -> None:
    experiment = read_experiment_text(write("mine", "mine.toml"), "mine.toml", tmp_path).experiment
    assert experiment.name == "mine"
    assert experiment.matrix == {"storage": ["disk", "memory"]}
    assert {name: storage.kind for name, storage in experiment.storage.items()} == {
        "disk": "directory",
        "memory": "tmpfs",
    }


def test_the_full_file_asks_the_same_as_the_short_one_but_for_a_setting(tmp_path: Path) -> None:
    short, full = (
        read_experiment_text(write("x", "x.toml"), "x.toml", tmp_path).experiment for write in (template, full_template)
    )
    assert short.server.settings and not full.server.settings
    server = short.server.model_copy(update={"settings": {}})
    assert short.model_copy(update={"server": server}) == full


def test_the_short_file_is_read_in_a_minute_and_loads_with_each_of_its_commented_keys(tmp_path: Path) -> None:
    text = template("x", "x.toml")
    lines = text.splitlines()
    assert len([line for line in lines if line]) <= 45
    whole_tables = text.index("# [[objective]]")
    keys = re.findall(r"^# [a-z_.]+ = .*$", text[:whole_tables], re.M)
    assert len(keys) == 3
    for line in keys:
        used = line.removeprefix("# ").replace("/mnt/nvme", str(tmp_path))
        read_experiment_text(text.replace(line, used), "x.toml", tmp_path)
    objective = text.replace("# [[objective]]", "[[objective]]").replace("# metric", "metric").replace("# max", "max")
    assert len(read_experiment_text(objective, "x.toml", tmp_path).experiment.objectives) == 1


@pytest.mark.parametrize("name", sorted(path.stem for path in EXPERIMENTS.glob("*.toml")))
def test_a_curated_experiment_is_written_with_what_it_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--example", name]) == 0
    written, there = read_experiment(Path(f"{name}.toml")), read_experiment(EXPERIMENTS / f"{name}.toml")
    assert written.experiment == there.experiment
    assert written.files == there.files
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["init", "--example", name]) == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_of_a_name_that_there_is_not_all_are_listed(tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--example", "ramdsk"]) == 2
    said = capsys.readouterr().err
    assert "did you mean 'ramdisk'?" in said
    assert all(f"{name}: {example(name).question}" in said for name in example_names())
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_curated_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--help"]) == 0
    words = set(re.findall(r"[a-z0-9-]+", capsys.readouterr().out))
    assert set(example_names()) <= words


def test_where_a_script_is_there_already_nothing_is_written(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "scan.sql").write_text("SELECT 1;\n")
    assert main(["init", "--example", "io-method"]) == 2
    assert "scripts/scan.sql" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.toml"))
    assert main(["init", "--full", "--example", "ramdisk"]) == 2
