"""The catalogue has every experiment once, with what its reader asks first."""

import re
from pathlib import Path

import pytest

import experiment_catalogue
from experiment_catalogue import CATALOGUE, EXPERIMENTS, ROOT
from plinth.experiment import read_experiment

NAMES = sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))


@pytest.fixture(scope="module")
def text() -> str:
    return experiment_catalogue.experiment_catalogue()


def test_the_page_is_what_the_files_say(text: str):
    assert (ROOT / experiment_catalogue.PAGE).read_text() == text


def test_every_experiment_is_in_it_once(text: str):
    assert sorted(re.findall(r"^### (.+)$", text, re.MULTILINE)) == NAMES
    assert sorted(re.findall(r"^\| \[([\w-]+)\]\(#\1\)", text, re.MULTILINE)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_has_the_question_factors_time_needs_and_answer(name: str, text: str):
    (entry,) = re.findall(rf"^### {name}\n(.+?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    experiment = read_experiment(EXPERIMENTS / f"{name}.toml").experiment
    assert experiment.question in entry
    for key in experiment.matrix:
        assert f"- Varies `{key}`: " in entry
    for start in ("- Runs in ", "- Needs ", "- Answer: "):
        assert start in entry


@pytest.mark.parametrize("name", NAMES)
def test_a_header_leaves_results_to_the_pages(name: str):
    """A result belongs to a report with its date and machine: a header would keep it when a newer one is there."""
    header, _, _ = (EXPERIMENTS / f"{name}.toml").read_text().partition("\nspec =")
    assert not re.search(
        r"^# Results?[ ,:]|\b20\d\d-\d\d-\d\d\b|95 % CI|\bbusy (cores|machine)\b", header, re.MULTILINE
    )


def test_an_experiment_that_no_group_has_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shorter = tmp_path / "catalogue.toml"
    shorter.write_text(CATALOGUE.read_text().replace("[group.experiment.tpcc]\n", ""))
    monkeypatch.setattr(experiment_catalogue, "CATALOGUE", shorter)
    with pytest.raises(SystemExit, match=r"catalogue.toml: .*: tpcc$"):
        experiment_catalogue.experiment_catalogue()


def test_a_time_that_neither_header_nor_catalogue_has_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shorter = tmp_path / "catalogue.toml"
    shorter.write_text(CATALOGUE.read_text().replace('takes = "about 6 minutes"\n', ""))
    monkeypatch.setattr(experiment_catalogue, "CATALOGUE", shorter)
    with pytest.raises(SystemExit, match="power-cut: say `takes`"):
        experiment_catalogue.experiment_catalogue()
