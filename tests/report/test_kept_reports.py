"""Reports in small form, and the pages of the studies that are made of them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kept_reports
from kept_reports import (
    DATA,
    HIDDEN,
    ROOT,
    by_columns,
    by_rows,
    folders_of_one_machine,
    kept_text,
    read_kept,
    report_of,
    small_form,
    studies,
    study_runs,
    with_texts_in_place,
    with_texts_once,
)
from plinth.model.figures import Estimate, Interval
from plinth.model.report import Report
from plinth.report import render_html
from plinth.report.charts import draw_charts
from reported import Reported
from study_pages import GALLERY, carried_over, main, study_pages, unwanted

KEPT = sorted(path.stem for path in DATA.glob("*.json"))
MOST_BYTES = 2_000_000
"""Of all that the pages of studies and the gallery add to the repository."""


def kept(name: str) -> Report:
    report = read_kept(name)
    assert report is not None
    return report


@pytest.fixture
def no_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of kept reports that has none yet."""
    folder = tmp_path / "docs/studies/data"
    folder.mkdir(parents=True)
    monkeypatch.setattr(kept_reports, "ROOT", tmp_path)
    monkeypatch.setattr(kept_reports, "DATA", folder)
    read_kept.cache_clear()
    yield folder
    read_kept.cache_clear()


def test_pages_say_what_was_not_yet_measured(no_reports: Path) -> None:
    pages = study_pages()
    for study in studies():
        page = pages[f"docs/studies/{study['page']}.md"]
        assert page.count("Not yet measured: no run of it meets the [rule") == len(study["run"])
    assert "\n## " not in pages[str(GALLERY)]


def test_a_kept_report_that_breaks_the_rule_of_publication_stops_the_pages(no_reports: Path, ramdisk: Reported) -> None:
    (no_reports / "ramdisk.json").write_text(kept_text(ramdisk.report, ["/srv/"]))
    with pytest.raises(
        SystemExit, match=r"data/ramdisk.json may not be published: the doctor did not examine the machine"
    ):
        study_pages()


def test_the_small_form_is_a_report_and_draws_the_same_charts(studied: Reported) -> None:
    whole = studied.report
    small = report_of(kept_text(whole, ["/srv/"]))
    assert small.published and whole.published and small.published.reference == whole.published.reference
    assert (small.analysis.answer, small.sections) == (whole.analysis.answer, whole.sections)
    assert small.schema_version == whole.schema_version
    charts = {drawing.title: drawing.svg for drawing in draw_charts(whole)}
    kept = {drawing.title: drawing.svg for drawing in draw_charts(small)}
    assert {"Every trial, tps", "Latency percentiles"} <= kept.keys()
    assert kept == {title: charts[title] for title in kept}
    assert len(kept_text(whole, ["/srv/"])) < 0.6 * len(whole.model_dump_json())
    assert "has no time series" in render_html(small)


def test_the_small_form_says_nothing_of_the_machine_that_made_it(ramdisk: Reported) -> None:
    run = ramdisk.report.run.model_copy(update={"bundle": "/home/someone/bundles/ramdisk-1"})
    busy = "other processes took 1.79 of 2 processors: editor (pid 11) 0.9, browser (pid 12) 0.7; 5 more in the report"
    server = "another PostgreSQL runs (pid 7) on /mnt/theirs/data"
    warnings = ("tmpfs on /home/someone/state/work/a.b-1 keeps its files in memory, /home/someone/c", busy, server)
    warned = ramdisk.analysis.model_copy(update={"warnings": warnings})
    report = ramdisk.report.model_copy(update={"run": run, "analysis": warned})
    with pytest.raises(ValueError, match=r"folders of this machine: /home"):
        kept_text(report, ["/srv/"])
    text = kept_text(report, ["/home/someone", "/srv/"])
    assert "someone" not in text and f"tmpfs on {HIDDEN}/a.b-1 keeps its files in memory, {HIDDEN}/c" in text
    assert "theirs" not in text and "another PostgreSQL runs" in text
    assert "editor" not in text and "other processes took 1.79 of 2 processors; 5 more in the report" in text
    kept = json.loads(text)
    assert kept["run"]["bundle"] == "ramdisk-1" and kept["host"]["kernel"].count(".") == 1


def test_what_is_computed_to_many_digits_is_kept_with_nine(ramdisk: Reported) -> None:
    text = kept_text(ramdisk.report, ["/srv/"])
    curve = small_form(ramdisk.report).variants[0].latency_curve
    assert [one.quantile for one in report_of(text).variants[0].latency_curve] == [one.quantile for one in curve]
    assert not re.search(r"\d\.\d{17}", text)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([{"a": 1, "b": [2]}, {"a": 3, "b": []}], {"(keys)": ["a", "b"], "(rows)": [[1, [2]], [3, []]]}),
        (
            [{"a": [{"b": 1}, {"b": 2}]}, {"a": []}],
            {"(keys)": ["a"], "(rows)": [[{"(keys)": ["b"], "(rows)": [[1], [2]]}], [[]]]},
        ),
        ([{"a": 1}, {"b": 1}], [{"a": 1}, {"b": 1}]),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
        ([{"a": 1}], [{"a": 1}]),
        ([{}, {}], [{}, {}]),
        ([{"a": 1}, None], [{"a": 1}, None]),
        ({"a": [1, "b", None]}, {"a": [1, "b", None]}),
        ([], []),
    ],
)
def test_objects_with_the_same_keys_are_kept_by_columns(rows: object, columns: object) -> None:
    assert by_columns(rows) == columns
    assert json.dumps(by_rows(columns)) == json.dumps(rows)


LONG = "a text that is longer than thirty characters"
NESTED = f"{LONG}, and another"


@pytest.mark.parametrize(
    ("document", "kept", "texts"),
    [
        (
            {"a": LONG, "b": [LONG, {"c": NESTED}], "d": {"e": [NESTED, 1]}},
            {"a": {"(text)": 0}, "b": [{"(text)": 0}, {"c": {"(text)": 1}}], "d": {"e": [{"(text)": 1}, 1]}},
            [LONG, NESTED],
        ),
        ({"a": LONG, "b": NESTED}, {"a": LONG, "b": NESTED}, []),
        ({"a": "short", "b": ["short"]}, {"a": "short", "b": ["short"]}, []),
        ({LONG: LONG, "b": {LONG: None}}, {LONG: LONG, "b": {LONG: None}}, []),
    ],
)
def test_long_texts_that_repeat_are_kept_once(
    document: dict[str, object], kept: dict[str, object], texts: list[str]
) -> None:
    once = with_texts_once(document)
    assert once == kept | {"(texts)": texts}
    assert json.dumps(with_texts_in_place(once)) == json.dumps(document)


def test_each_kept_report_is_shown_and_readable_and_names_no_machine() -> None:
    assert unwanted() == []
    assert KEPT
    for name in KEPT:
        assert kept(name).analysis.experiment == study_runs()[name].get("experiment", name)
        assert folders_of_one_machine((DATA / f"{name}.json").read_text()) == []


def test_pages_have_the_answers_and_only_links_that_lead_somewhere(tmp_path: Path) -> None:
    pages = {name: text for name, text in study_pages().items() if name.endswith(".md")}
    assert len(pages) == len(studies()) + 2
    main(tmp_path / "docs/gallery")
    for name, text in pages.items():
        for link in re.findall(r"\]\(([^)#]+)", text):
            target = (ROOT / name).parent / link
            made = tmp_path / Path(name).parent / link
            assert target.exists() or made.exists(), f"{name}: {link}"
    gallery = pages[str(GALLERY)]
    for name in KEPT:
        assert (kept(name).analysis.answer.split("(")[0] in gallery) == study_runs()[name].get("of_speed", True)
        assert "plinth-report" in (tmp_path / f"docs/gallery/{name}.html").read_text()


def test_all_of_it_stays_small() -> None:
    made = sum(len(text.encode()) for text in study_pages().values())
    kept = sum(path.stat().st_size for path in DATA.glob("*"))
    assert made + kept < MOST_BYTES


@pytest.mark.parametrize(
    ("published", "ours", "became"),
    [
        ((3, 3), (2.8, 3.1), "as published"),
        ((2, 3), (2.9, 4), "as published"),
        ((9, 9), (1.8, 2.0), "same direction"),
        ((0.2, 0.2), (0.5, 0.7), "same direction"),
        ((3, 3), (0.8, 1.4), "undecided"),
        ((3, 3), (0.8, 3.4), "undecided"),
        ((1, 1), (0.9, 1.2), "as published"),
        ((3, 3), (0.5, 0.7), "no"),
        ((0.2, 0.2), (1.5, 1.7), "no"),
        ((1, 1), (1.5, 1.7), "no"),
        ((3, 3), None, "n/a: ours has no interval"),
    ],
)
def test_what_carried_over(published: tuple[float, float], ours: tuple[float, float] | None, became: str) -> None:
    bounds = None if ours is None else Interval(low=ours[0], high=ours[1], level=0.95)
    value = 1.0 if ours is None else sum(ours) / 2
    assert carried_over(*published, Estimate(value=value, interval=bounds, n=5, method="test")) == became
