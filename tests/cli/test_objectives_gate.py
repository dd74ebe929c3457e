"""--fail-on and --junit of plinth report: exit code 99 for objectives, on bundles on disk."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from analyse_bundles import bundle
from plinth.cli import main
from plinth.model.objective import Objective
from written_bundles import write_bundle

MET = {"metric": "tps", "min": 500}
NOT_MET = {"metric": "tps", "min": 2000}
OPEN = {"metric": "tps", "min": 1000}
HOSTILE = "<img src=x onerror=alert(1)> | [x](http://h) \x1b[2J\x00"


def written(path: Path, *objectives: dict[str, Any], label: str | None = None) -> str:
    contents = bundle({"disk": [1000.0, 1010.0, 990.0, 1005.0, 995.0]})
    stated = tuple(Objective.model_validate(keys) for keys in objectives)
    experiment = contents.plan.experiment.model_copy(update={"objectives": stated})
    (variant,) = contents.plan.variants
    variants = (variant.model_copy(update={"label": label or variant.label}),)
    plan = contents.plan.model_copy(update={"experiment": experiment, "variants": variants})
    return str(write_bundle(path, replace(contents, plan=plan)))


@pytest.mark.parametrize(
    ("objectives", "fail_on", "code"),
    [
        ([MET], ["objective", "inconclusive"], 0),
        ([MET, NOT_MET], [], 0),
        ([MET, NOT_MET], ["objective"], 99),
        ([MET, NOT_MET], ["inconclusive"], 0),
        ([MET, OPEN], ["objective"], 0),
        ([MET, OPEN], ["inconclusive"], 99),
        ([{"metric": "wal_per_transaction", "max": "1kB"}], ["inconclusive"], 99),
    ],
)
def test_only_what_is_asked_for_stops_a_pipeline(
    tmp_path: Path, objectives: list[dict[str, Any]], fail_on: list[str], code: int
) -> None:
    options = [word for finding in fail_on for word in ("--fail-on", finding)]
    assert main(["report", written(tmp_path / "b", *objectives), *options]) == code


def test_every_form_has_the_objectives_and_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "b", MET, NOT_MET, OPEN)
    for form in ([], ["--markdown"], ["--json"], ["--html", "--output", str(tmp_path / "r.html")], ["--csv"]):
        assert main(["report", place, *form, "--fail-on", "objective"]) == 99
        out = capsys.readouterr().out
        if form == ["--json"]:
            report = json.loads(out)
            assert [one["outcome"] for one in report["objectives"]] == ["met", "not met", "inconclusive"]
            assert [one["bound"] for one in report["analysis"]["objectives"]] == [500, 2000, 1000]
        elif form in ([], ["--markdown"]):
            assert "transactions per second at least 2,000" in out and "not met" in out


def test_junit_has_a_case_for_each_objective_of_each_variant(tmp_path: Path) -> None:
    place, junit = written(tmp_path / "b", MET, NOT_MET, OPEN, label=HOSTILE), tmp_path / "junit.xml"
    assert main(["report", place, "--junit", str(junit)]) == 0
    root = ElementTree.parse(junit).getroot()
    assert [root.get(count) for count in ("tests", "failures", "skipped")] == ["3", "1", "1"]
    case = root.find("testsuite/testcase")
    assert case is not None and "<img src=x onerror=alert(1)>" in str(case.get("name"))
    assert main(["report", place, "--junit", str(junit), "--fail-on", "inconclusive"]) == 99
    assert ElementTree.parse(junit).getroot().get("failures") == "2"


def test_hostile_names_stay_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = written(tmp_path / "b", NOT_MET, label=HOSTILE)
    for form in ([], ["--markdown"], ["--json"]):
        assert main(["report", place, *form]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and "\x00" not in out
        if form == ["--markdown"]:
            assert "<img" not in out and "](http" not in out


@pytest.mark.parametrize("option", [["--fail-on", "objective"], ["--junit", "junit.xml"]])
def test_without_objectives_a_gate_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert main(["report", written(tmp_path / "b"), *option]) == 2
    assert "[[objective]]" in capsys.readouterr().err
