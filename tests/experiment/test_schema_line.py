"""The line by which editors find the JSON Schema of experiments."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from plinth.experiment import example, full_template, json_schema, template

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("file", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda file: file.name)
def test_every_experiment_names_the_schema_in_its_first_line(file):
    directive, target = file.read_text().split("\n", 1)[0].split(" ", 1)
    assert directive == "#:schema"
    assert json.loads((file.parent / target).read_text()) == json_schema()


@pytest.mark.parametrize(
    "text",
    [template("x", "x.toml"), full_template("x", "x.toml"), example("ramdisk").text],
    ids=["short", "full", "example"],
)
def test_what_init_writes_names_the_installed_schema(text):
    directive, target = text.split("\n", 1)[0].split(" ", 1)
    assert directive == "#:schema"
    assert json.loads(Path(unquote(urlparse(target).path)).read_text()) == json_schema()
