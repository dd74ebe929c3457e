"""The examples of the guides to datasets, drivers and servers: completed by what they leave out, each can be planned here."""

import re
import tomllib
from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.builtin import BUILTINS
from plinth.run.planning.make_plan import make_plan

GUIDES = Path(__file__).parents[2] / "docs/guides"
HEAD = """\
spec = 1
name = "guide"
question = "Does the guide tell the truth?"
measure = { warmup = 0, duration = "1s", repeats = 1, aa = false }
"""
EXAMPLES = [
    (f"{guide}: {number}", toml)
    for guide in ("datasets", "drivers", "servers")
    for number, toml in enumerate(re.findall(r"```toml\n(.*?)```", (GUIDES / f"{guide}.md").read_text(), re.S), start=1)
]
SOME_SQL = "SELECT 1;\n"


def completed(toml: str) -> str:
    """The example with the tables that it leaves out."""
    said = tomllib.loads(toml)
    workload, kind = said.get("workload", {}), said.get("dataset", {}).get("kind")
    wanted = BUILTINS[workload.get("builtin", "select-only")].dataset
    tables: dict[str, dict[str, object]] = {
        "dataset": {"kind": "tpcb", "scale": 1000} if wanted == "tpcb" else {"kind": wanted},
        "storage": {"disk": {"kind": "directory"}},
    }
    fitting = [name for name, traits in BUILTINS.items() if traits.dataset == (kind or "tpcb")]
    tables["workload"] = {"builtin": fitting[0]} if fitting else {"script": "scripts/order.sql"}
    if "connection" in said.get("server", {}):
        del tables["storage"]
    return HEAD + "".join(f"{name} = {inline(table)}\n" for name, table in tables.items() if name not in said) + toml


def inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(of)}" for key, of in value.items()) + " }"
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.long
@pytest.mark.parametrize("toml", [toml for _, toml in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_an_example_can_be_planned(toml: str, state_dir: Path, scratch: Path) -> None:
    for name in re.findall(r'"((?:sql|scripts)/[a-z]+\.sql)"', toml) or ["scripts/order.sql"]:
        (scratch / name).parent.mkdir(exist_ok=True)
        (scratch / name).write_text(SOME_SQL)
    (scratch / "scripts").mkdir(exist_ok=True)
    (scratch / "scripts/order.sql").write_text(SOME_SQL)
    plan = make_plan(read_experiment_text(completed(toml), "guide", scratch), run_id="guide", bundle=scratch / "bundle")
    levels = 1
    for factor in plan.experiment.matrix.values():
        levels *= len(factor)
    assert len(plan.variants) == levels
    assert not state_dir.exists(), "planning touches nothing"


def test_every_example_is_looked_at() -> None:
    assert len(EXAMPLES) == 12
