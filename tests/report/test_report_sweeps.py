"""A sweep in every form of the report: the curves in words, drawn in a real browser, next to what was published."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyse_bundles import server_facts, sweep
from browser import check_report
from plinth.model.plan import Variant
from plinth.model.published import PublishedFigure, Reference
from plinth.report import render_html, render_markdown, render_terminal
from report_bundles import with_reference
from reported import Reported, reported


def saturating(variant: Variant, block: int) -> float:
    """One core's worth of work for eight clients; memory is twice as fast; a rate is kept up to 2,000 a second."""
    rng = np.random.default_rng(zlib.crc32(f"{variant.id} {block}".encode()))
    levels = variant.levels
    place = 2.0 if levels.get("storage") == "memory" else 1.0
    size = 1.0 if levels.get("server.settings.shared_buffers", "1MB") == "1MB" else 1.3
    done = 500 * place * size * min(variant.workload.clients, 8)
    rate = levels.get("workload.rate")
    return min(done, float(str(rate)) if rate is not None else done) * math.exp(0.005 * rng.standard_normal())


def made(matrix: dict[str, Sequence[Any]], figures: Sequence[PublishedFigure] = ()) -> Reported:
    contents = sweep(matrix, saturating)
    if figures:
        study = Reference(
            spec=1, title="A study", source="x", date="1999", machine="x", conditions="x", figure=tuple(figures)
        )
        contents = with_reference(contents, study)
    return reported(contents)


def drawn(run: Reported, folder: Path, only: str | None = None) -> dict[str, Any]:
    """What the check finds in the page. The trials' seconds are invented and alike, so that a change of the trial in focus is
    not to be seen in the time series: that alone may be found wrong."""
    file = folder / "report.html"
    file.write_text(render_html(run.report), encoding="utf-8")
    _, found = check_report(file, only)
    wrong = [text for text in found["failures"] if not text.startswith(("cursor", "selector"))]
    assert wrong == []
    return found


CLIENTS = {"storage": ["disk", "memory"], "workload.clients": [1, 2, 4, 8, 16, 32]}


@pytest.fixture(scope="module")
def clients() -> Reported:
    published = [PublishedFigure(levels={"storage": "disk", "workload.clients": n}, tps=100.0 * n) for n in (1, 4, 16)]
    return made(CLIENTS, published)


def test_the_curves_in_words_are_the_same_in_every_form(clients: Reported) -> None:
    disk, memory = clients.report.curves
    assert (disk.name, memory.name) == ("disk, over clients", "memory, over clients")
    assert disk.throughput.endswith("at 8 clients; above, nothing is gained")
    assert " clients (95 % CI " in disk.knee
    assert disk.law.startswith("does not hold: at ")
    markdown = render_markdown(clients.report)
    terminal = " ".join(render_terminal(clients.report, width=80, color=False).split())
    assert "## Scaling" in markdown
    for curve in (disk, memory):
        assert curve.throughput in markdown and curve.knee in markdown
        assert f"{curve.name}: knee {curve.knee}; scalability law {curve.law}" in terminal


def test_a_published_figure_is_compared_with_the_baseline_of_its_own_stratum(clients: Reported) -> None:
    compared = clients.report.published
    assert compared is not None
    ratios = {row.label: (row.published_ratio, row.ratio and row.ratio.value) for row in compared.figures}
    assert ratios == {f"disk, {n} client{'s' * (n > 1)}": (1.0, 1.0) for n in (1, 4, 16)}


@pytest.mark.long
def test_the_page_draws_curves_intervals_and_what_was_published(clients: Reported, tmp_path: Path) -> None:
    found = drawn(clients, tmp_path)
    charts = {chart["id"]: chart for chart in found["charts"]}
    # Two curves with their intervals, and the published one of the disk.
    assert charts["scaling-0"]["series"] == 5
    assert charts["scaling-0"]["points"] == 2 * 6 + 2 * 2 * 6 + 3
    rows = found["tables"]["Curves in words"]
    assert [row[0] for row in rows] == ["disk, over clients", "memory, over clients"]


@pytest.mark.long
def test_an_open_loop_has_latency_over_throughput(tmp_path: Path) -> None:
    found = drawn(made({"workload.rate": [500, 1000, 2000, 4000, 8000]}), tmp_path, only="light")
    points = {chart["id"]: chart["points"] for chart in found["charts"]}
    assert points["latency-over-throughput-0"] == 5


@pytest.mark.long
def test_two_numbers_are_a_heat_map_and_three_factors_small_multiples(tmp_path: Path) -> None:
    two = {"server.settings.shared_buffers": ["1MB", "8MB"], "workload.clients": [1, 2, 4, 16]}
    found = drawn(made(two), tmp_path, only="light")
    heat = found["tables"]["Throughput over shared_buffers and clients"]
    assert [row[0] for row in heat] == ["1MB", "8MB"] and [len(row) for row in heat] == [5, 5]
    three = drawn(made({"storage": ["disk", "memory"], **two}), tmp_path, only="light")
    drawings = [chart["id"] for chart in three["charts"] if chart["id"].startswith("scaling-")]
    assert len(drawings) == 4, "shared_buffers on each storage, and clients on each"
    assert not any("Throughput over" in name for name in three["tables"])


@pytest.fixture(scope="module")
def long_labels() -> Reported:
    """Three factors, noise, and every grade of safety."""

    def noisy(variant: Variant, block: int) -> float:
        rng = np.random.default_rng(zlib.crc32(f"{variant.id} {block}".encode()))
        is_slow = variant.levels["storage"] == "ssd" and variant.settings["synchronous_commit"] == "on"
        return (100 if is_slow else 6000) * math.exp(0.2 * rng.standard_normal())

    matrix: dict[str, Sequence[Any]] = {
        "storage": ["ssd", "memory"],
        "workload.clients": [1, 4, 16],
        "server.settings.synchronous_commit": ["on", "off"],
    }
    contents = sweep(matrix, noisy, repeats=3)
    servers = {
        one.id: server_facts(synchronous_commit=str(one.settings["synchronous_commit"]))
        for one in contents.plan.variants
    }
    return reported(replace(contents, servers=servers))


@pytest.mark.long
@pytest.mark.parametrize("view", ["light", "phone", pytest.param("tablet", marks=pytest.mark.long)])
def test_a_ranking_with_long_labels_is_not_cut_off(long_labels: Reported, tmp_path: Path, view: str) -> None:
    assert max(len(one.label) for one in long_labels.analysis.variants) > 30
    assert {one.safety.grade for one in long_labels.analysis.variants} == {
        "keeps",
        "may lose recent commits",
        "does not keep",
    }
    drawn(long_labels, tmp_path, view)


def test_a_plain_comparison_has_no_curves() -> None:
    plain = made({"storage": ["disk", "memory"]})
    assert plain.report.curves == () and plain.analysis.sweep is None
    assert "## Scaling" not in render_markdown(plain.report)
