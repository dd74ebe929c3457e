"""What a report explains: only what is there. Groups, knees, the scalability law, the Pareto front and intervals."""

import math
import re
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from analyse_bundles import sweep
from plinth.analyse import analyse
from plinth.model.plan import Variant
from plinth.report import render_markdown, render_plots, render_terminal
from plinth.report.plots.styles import styles_of
from reported import Reported, reported

STORAGES = ["disk", "ssd", "nvme", "zfs"]


def by_storage(pace: dict[str, float], noise: float) -> Callable[[Variant, int], float]:
    def tps(variant: Variant, block: int) -> float:
        draw = np.random.default_rng(zlib.crc32(f"{block} {variant.id}".encode())).standard_normal()
        return 1000 * pace.get(str(variant.levels["storage"]), 1.0) * math.exp(noise * draw)

    return tps


def texts(run: Reported) -> tuple[str, str]:
    """The terminal's and Markdown's, each on one line."""
    terminal = render_terminal(run.report, width=160, color=False)
    return " ".join(terminal.split()), " ".join(render_markdown(run.report).split())


@pytest.mark.parametrize(
    ("pace", "noise", "told_apart", "says"),
    [
        ({}, 0.05, "none", "No two of the 4 variants were distinguished"),
        ({"ssd": 2, "nvme": 4, "zfs": 8}, 0.005, "all", "Each of the 4 variants was distinguished"),
    ],
)
def test_letters_that_say_nothing_are_a_sentence(
    pace: dict[str, float], noise: float, told_apart: str, says: str
) -> None:
    run = reported(sweep({"storage": STORAGES}, by_storage(pace, noise)))
    (group,) = run.analysis.groups
    assert (group.told_apart, len(group.letters)) == (told_apart, 4)
    assert {variant.group for variant in run.analysis.variants} == {None}
    (note,) = run.report.group_notes
    assert note.startswith(says)
    for text in texts(run):
        assert says in text
        assert "share a letter" not in text


def test_letters_that_say_something_are_explained() -> None:
    run = reported(sweep({"storage": STORAGES}, by_storage({"ssd": 2, "nvme": 4, "zfs": 4}, 0.005)))
    assert sorted(str(variant.group) for variant in run.analysis.variants) == ["a", "a", "b", "c"]
    for text in texts(run):
        assert "share a letter" in text
        assert "distinguished from all others" not in text


def test_of_several_strata_those_alike_are_said_together() -> None:
    run = reported(
        sweep({"storage": STORAGES, "server.settings.work_mem": ["4MB", "8MB"]}, by_storage({}, 0.05), repeats=3)
    )
    assert len(run.analysis.groups) == 2
    assert [note.partition(":")[0] for note in run.report.group_notes] == ["In every stratum"]


CLIENTS = [1, 2, 4, 8, 16, 32]


def rising(variant: Variant, block: int) -> float:
    draw = np.random.default_rng(zlib.crc32(f"{variant.id} {block}".encode())).standard_normal()
    return 500 * variant.workload.clients * math.exp(0.005 * draw)


def bent(variant: Variant, block: int) -> float:
    return rising(variant, block) * min(1.0, 8 / variant.workload.clients)


def contended(variant: Variant, block: int) -> float:
    """Gunther's law with a contention of 5 %."""
    return rising(variant, block) / (1 + 0.05 * (variant.workload.clients - 1))


@pytest.mark.parametrize(("tps", "has_knee", "has_law"), [(bent, True, False), (contended, None, True)])
def test_knees_and_laws_are_explained_where_they_were_found(
    tps: Callable[[Variant, int], float], has_knee: bool | None, has_law: bool
) -> None:
    run = reported(sweep({"workload.clients": CLIENTS}, tps))
    assert run.analysis.sweep is not None
    (curve,) = run.analysis.sweep.curves
    assert (curve.fit is not None and curve.fit.holds) is has_law
    assert has_knee in (None, curve.knee is not None)
    note = run.report.sections.sweep.note
    assert ("knee is where" in note) is (curve.knee is not None)
    assert ("contention is" in note) is has_law
    assert note in texts(run)[1]


def test_of_levels_without_order_neither_knee_nor_law_is_explained() -> None:
    run = reported(sweep({"workload.clients": [1, 2]}, rising))
    note = run.report.sections.sweep.note
    assert note.startswith("Throughput over")
    assert "knee" not in note and "contention" not in note


@pytest.mark.parametrize("matrix", [{"storage": STORAGES}, {"storage": STORAGES, "workload.clients": [1, 2]}])
def test_a_front_of_all_variants_is_one_sentence(matrix: dict[str, list[str | int]]) -> None:
    run = reported(sweep(matrix, by_storage({}, 0.05)))
    assert all(not point.dominated_by for front in run.analysis.pareto for point in front.points)
    assert run.report.pareto_summary.startswith("No variant is dominated")
    for text in texts(run):
        assert run.report.pareto_summary in text


def test_a_front_that_dominates_has_no_such_sentence() -> None:
    run = reported(sweep({"storage": STORAGES}, by_storage({"ssd": 2, "nvme": 4, "zfs": 8}, 0.005)))
    assert any(point.dominated_by for front in run.analysis.pareto for point in front.points)
    assert run.report.pareto_summary == ""
    assert all("No variant is dominated" not in text for text in texts(run))


def test_in_a_terminal_a_point_without_an_interval_is_a_small_letter() -> None:
    def plotted(repeats: int) -> str:
        contents = sweep({"storage": ["disk", "ssd"], "workload.clients": [1, 4, 16]}, rising, repeats=repeats)
        lines = render_plots(contents, analyse(contents), width=80, color=False)
        return lines[lines.index("Throughput over clients") : lines.index("A  disk")]

    few, enough = plotted(1), plotted(5)
    assert "small letters: without an interval" in few and "95 % intervals" not in few
    assert "small letters" not in enough and "95 % intervals" in enough
    drawn = re.compile(r"^ *[\d,]* (.*)$", re.MULTILINE)
    letters = [set("".join(drawn.findall(text.split("\n", 2)[2]))) & set("abAB*") for text in (few, enough)]
    assert letters[0] <= {"a", "b", "*"} and letters[0] & {"a", "b", "*"}
    assert letters[1] <= {"A", "B", "*"} and letters[1] & {"A", "B", "*"}


@pytest.mark.parametrize("matrix", [{"storage": STORAGES}, {"storage": STORAGES[:2], "workload.clients": [1, 2, 4]}])
def test_in_a_terminal_a_variant_has_one_colour_in_all_plots(matrix: dict[str, list[str | int]]) -> None:
    analysis = analyse(contents := sweep(matrix, by_storage({}, 0.01)))
    styles = styles_of(analysis)
    if analysis.sweep is not None:
        for curve, style in zip(analysis.sweep.curves, styles.curves, strict=True):
            assert {styles.variants[point.variant] for point in curve.points} == {style}
    assert len(set(styles.variants.values())) == min(4, len(styles.curves) or 4)
    lines = render_plots(contents, analysis, width=100, color=True).splitlines()
    for variant in analysis.variants:
        colours = [re.findall("\x1b\\[([0-9;]+)m", line) for line in lines if line.startswith(f"{variant.label} ")]
        assert len(colours) == 2, "over time, and the first percentile"
        assert colours[0][:1] == colours[1][:1], variant.label
