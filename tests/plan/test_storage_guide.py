"""docs/guides/storages.md: every example in it is an experiment's storages, and can be planned here."""

import re
from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import mounted_storages
from plinth.run.planning.make_plan import make_plan

GUIDE = Path(__file__).parents[2] / "docs/guides/storages.md"
HEAD = """\
spec = 1
name = "guide"
question = "Does the guide tell the truth?"
dataset = { kind = "tpcb", scale = 1 }
workload = { builtin = "select-only" }
measure = { warmup = 0, duration = "1s", repeats = 1, aa = false }
matrix = { storage = LEVELS }
"""
EXAMPLES = re.findall(
    r"^## (?P<section>[^\n]+)\n(?:(?!^## ).*\n)*?```toml\n(?P<toml>(?:(?!```).*\n)+)```", GUIDE.read_text(), re.M
)


def storages(toml: str) -> dict[str, StorageSpec]:
    return read_experiment_text(
        HEAD.replace("matrix = { storage = LEVELS }\n", "") + toml, "guide", Path()
    ).experiment.storage


@pytest.mark.long
@pytest.mark.parametrize(("section", "toml"), EXAMPLES, ids=[section for section, _ in EXAMPLES])
def test_an_example_can_be_planned(section: str, toml: str, state_dir: Path, scratch: Path) -> None:
    found = storages(toml)
    levels = mounted_storages(found)
    text = HEAD.replace("LEVELS", str(levels).replace("'", '"')) + toml
    plan = make_plan(read_experiment_text(text, "guide", Path()), run_id="guide", bundle=scratch / "bundle")
    for name in found:
        assert any(step.id.startswith(f"storage.{name}.") for step in plan.steps), f"{name} is made"
    assert not state_dir.exists(), "planning touches nothing"


def test_there_is_an_example_of_every_kind() -> None:
    kinds = {spec.kind for _, toml in EXAMPLES for spec in storages(toml).values()}
    assert kinds == {section for section, _ in EXAMPLES} - {"Nesting", "Filled to a share"}
