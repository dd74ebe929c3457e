"""Objectives in the forms of the report: the terminal has the unmet first, the page a table that a browser shows."""

from dataclasses import replace
from pathlib import Path

import pytest

import report_bundles
from browser import check_report
from plinth.model.objective import Objective
from plinth.report import render_html, render_markdown, render_terminal
from reported import Reported, reported

OBJECTIVES = (
    Objective(metric="tps", min=1),
    Objective(metric="latency_p99", max="1ns"),
    Objective(metric="written_per_transaction", max="8kB", where={"storage": "memory"}),
)


def made() -> Reported:
    contents = report_bundles.ramdisk()
    experiment = contents.plan.experiment.model_copy(update={"objectives": OBJECTIVES})
    return reported(replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment})))


def test_the_terminal_names_what_is_not_met_first() -> None:
    lines = render_terminal(made().report, width=200, color=False).splitlines()
    start = lines.index("Objectives:")
    assert "p99 latency at most 1ns: not met" in lines[start + 1]
    assert "transactions per second at least 1: met" in lines[start + 5]


def test_markdown_has_a_row_for_each_and_its_reason() -> None:
    text = render_markdown(made().report)
    section = text[text.index("## Objectives") :]
    assert "| transactions per second at least 1 | memory |" in section
    assert "not measured: " in section


@pytest.mark.long
def test_the_page_shows_them(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_html(made().report), encoding="utf-8")
    _, found = check_report(file, "light")
    assert found["failures"] == []
    assert "Objectives" in file.read_text(encoding="utf-8")
