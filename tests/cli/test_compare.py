"""plinth compare on bundles on disk: forms, gates, baseline files, and bundles that are not to be trusted."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analyse_bundles import bundle
from plinth.cli import main
from written_bundles import write_bundle

STEADY = (1000.0, 1010.0, 990.0, 1005.0, 995.0)
HOSTILE = "<img src=x onerror=alert(1)> | [x](http://h) $(reboot) \x1b[2J\x00 `id`"


def written(path: Path, tps: Iterable[float], run_id: str, label: str | None = None) -> Path:
    contents = bundle({"disk": list(tps)})
    (variant,) = contents.plan.variants
    variants = (variant.model_copy(update={"label": label or variant.label}),)
    plan = contents.plan.model_copy(update={"run_id": run_id, "variants": variants})
    return write_bundle(path, replace(contents, plan=plan))


@pytest.fixture
def before(tmp_path: Path) -> str:
    return str(written(tmp_path / "before", STEADY, "aaaa"))


@pytest.fixture
def after(tmp_path: Path) -> str:
    return str(written(tmp_path / "after", [0.8 * tps for tps in STEADY], "bbbb"))


def test_a_regression_is_shown_and_stops_a_pipeline_only_when_asked(
    before: str, after: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", before, after]) == 0
    assert "worse" in capsys.readouterr().out
    assert main(["compare", before, after, "--fail-on", "inconclusive"]) == 0
    assert main(["compare", before, after, "--fail-on", "inconclusive", "--fail-on", "regression"]) == 99
    assert main(["compare", after, before, "--fail-on", "regression"]) == 0


def test_json_markdown_and_junit(before: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit = tmp_path / "junit.xml"
    assert main(["compare", before, after, "--json", "--junit", str(junit)]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["ratios"][0]["ratio"]["value"] == pytest.approx(0.8)
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None and "worse" in str(failure.get("message"))
    assert main(["compare", before, after, "--markdown"]) == 0
    assert re.search(r"^\| disk \| tps \| 1,000 .* \| worse \|$", capsys.readouterr().out, re.M)


def test_hostile_names_stay_text(before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = str(written(tmp_path / "hostile", STEADY, "cccc", label=HOSTILE))
    junit = tmp_path / "junit.xml"
    for form in ([], ["--markdown"], ["--json"]):
        assert main(["compare", before, hostile, "--junit", str(junit), *form]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and "\x00" not in out
        if form == ["--markdown"]:
            assert "<img" not in out and "](http" not in out
    case = ElementTree.parse(junit).getroot().find("testsuite/testcase")
    assert case is not None and "<img src=x onerror=alert(1)>" in str(case.get("name"))


def test_a_baseline_file_replaces_its_bundle(
    before: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = str(tmp_path / "baseline.json")
    assert main(["compare", "--save-baseline", baseline, before]) == 0
    capsys.readouterr()
    assert main(["compare", "--baseline", baseline, after, "--json"]) == 0
    by_file = json.loads(capsys.readouterr().out)
    assert main(["compare", before, after, "--json"]) == 0
    by_bundle = json.loads(capsys.readouterr().out)
    assert by_file["ratios"] == by_bundle["ratios"] and by_file["differences"] == by_bundle["differences"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda document: {**document, "schema_version": 99}, "reads up to 1"),
        (lambda document: {**document, "variants": 3}, "variants: "),
        (lambda document: {**document, "more": 3}, "more: "),
        (lambda document: [], "no schema_version"),
        (lambda document: _with_tps(document, -1), "tps"),
        (lambda document: _with_tps(document, float("inf")), "tps"),
    ],
)
def test_a_bad_baseline_file_is_refused_by_name(
    before: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], change, said: str
) -> None:
    baseline = tmp_path / "baseline.json"
    assert main(["compare", "--save-baseline", str(baseline), before]) == 0
    baseline.write_text(json.dumps(change(json.loads(baseline.read_text()))))
    assert main(["compare", "--baseline", str(baseline), after]) == 2
    error = capsys.readouterr().err
    assert said in error and str(baseline) in error


def _with_tps(document, tps: float):
    document["variants"][0]["trials"][0]["tps"] = tps
    return document


def test_a_link_in_place_of_a_baseline_file_is_not_followed(before: str, after: str, tmp_path: Path) -> None:
    assert main(["compare", "--save-baseline", str(tmp_path / "real.json"), before]) == 0
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    assert main(["compare", "--baseline", str(tmp_path / "link.json"), after]) == 1


def test_bundles_that_were_changed_half_written_newer_or_none_are_refused(
    before: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = next(Path(after).glob("trials/*/trial.json"))
    whole = trial.read_bytes()
    trial.write_bytes(whole.replace(b'"tps": ', b'"tps": 9'))
    assert main(["compare", before, after]) == 1
    assert "changed after its run" in capsys.readouterr().err
    trial.write_bytes(whole)
    (Path(after) / "SHA256SUMS").unlink()
    assert main(["compare", before, after]) == 2
    assert "not complete" in capsys.readouterr().err
    assert main(["compare", before, after, "--allow", "incomplete"]) == 0
    trial.write_bytes(whole[:20])
    assert main(["compare", before, after, "--allow", "incomplete"]) == 1
    assert str(trial) in capsys.readouterr().err
    manifest = Path(after) / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    assert main(["compare", before, after]) == 2
    assert main(["compare", before, str(tmp_path)]) == 2
    assert "not a bundle" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["BEFORE"], ["BEFORE", "AFTER", "--json", "--markdown"], ["BEFORE", "BEFORE"]])
def test_wrong_usage_is_exit_2(before: str, after: str, words: list[str]) -> None:
    assert main(["compare", *({"BEFORE": before, "AFTER": after}.get(word, word) for word in words)]) == 2
