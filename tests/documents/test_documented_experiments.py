"""The whole experiments of the cookbooks can be read, and ask what their headings say."""

import re
from pathlib import Path

import pytest

from plinth.experiment import read_experiment

ROOT = Path(__file__).parents[2]
COOKBOOKS = sorted((ROOT / "docs/cookbooks").glob("*.md"))
EXPERIMENT = re.compile(r"^```toml\n(spec = 1\n.+?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = [(page, found[1]) for page in COOKBOOKS for found in EXPERIMENT.finditer(page.read_text())]


@pytest.mark.parametrize(("page", "text"), BLOCKS, ids=[page.stem for page, _ in BLOCKS])
def test_an_experiment_of_a_cookbook_can_be_read(page: Path, text: str, tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    experiment = read_experiment(file).experiment
    assert experiment.question.endswith("?")
    assert f"{experiment.name}.toml" in page.read_text()


@pytest.mark.parametrize("page", COOKBOOKS, ids=lambda page: page.stem)
def test_a_cookbook_has_its_parts(page: Path):
    text = page.read_text()
    for part in ("**Situation.**", "## How to read the answer", "## What to undo"):
        assert text.count(part) == 1
