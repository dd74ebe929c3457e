"""Published results and ours: which variant represents which figure."""

import re
import tomllib
from dataclasses import replace

import pytest

import report_bundles
from plinth.model.experiment import Experiment
from plinth.model.loaded import LoadedDataset, LoadedIndex, LoadedTable
from plinth.model.published import (
    PublishedDataset,
    PublishedFact,
    PublishedFigure,
    PublishedFsync,
    PublishedRatio,
    PublishedStatement,
)
from plinth.model.report import FlushFigure, PublishedComparison, StorageFlushes
from plinth.report import render_markdown, render_terminal
from plinth.report.sections.published import compare_with_published
from reported import Reported, reported


def compared(of: Reported) -> PublishedComparison:
    assert of.report.published is not None
    return of.report.published


def test_a_run_that_names_no_study_has_no_comparison(ramdisk: Reported) -> None:
    assert ramdisk.report.published is None
    assert "published study" not in render_markdown(ramdisk.report)


def test_each_figure_is_shown_with_the_variant_of_its_levels(studied: Reported) -> None:
    disk, memory, tape = compared(studied).figures
    results = {variant.id: variant for variant in studied.analysis.variants}
    assert (disk.variant, memory.variant, tape.variant) == ("disk", "memory", None)
    assert memory.tps == results["memory"].tps and memory.published_tps == 1800
    assert (disk.published_ratio, memory.published_ratio, tape.published_ratio) == (1, 9, 0.01)
    assert memory.ratio == studied.analysis.comparisons[0].ratio
    assert disk.ratio is not None and disk.ratio.value == 1
    assert results["memory"].latency is not None
    assert memory.latency_ns == results["memory"].latency.mean_ns
    assert (tape.label, tape.tps, tape.ratio) == ("storage tape", None, None)


def test_what_is_about_another_workload_is_counted_and_not_shown(studied: Reported) -> None:
    assert compared(studied).other_figures == "1 further figure of the study is about another question."
    assert all(row.published_tps != 90_000 for row in compared(studied).figures)


def test_a_ratio_is_that_of_the_comparison_with_its_interval(studied: Reported) -> None:
    (row,) = compared(studied).ratios
    assert (row.variant, row.to, row.published_low, row.published_high) == ("memory", "disk", 2, 4)
    assert row.ratio == studied.analysis.comparisons[0].ratio


def test_a_ratio_of_variants_that_are_not_compared_has_an_interval() -> None:
    study = report_bundles.published().model_copy(
        update={
            "ratio": (
                PublishedRatio(what="x", levels={"storage": "disk"}, to={"storage": "memory"}, low=0.3, high=0.5),
            )
        }
    )
    of = reported(report_bundles.with_reference(report_bundles.ramdisk(), study))
    (row,) = compared(of).ratios
    other_way_round = of.analysis.comparisons[0].ratio
    assert row.ratio is not None and row.ratio.interval is not None and other_way_round.interval is not None
    assert row.ratio.value == pytest.approx(1 / other_way_round.value)
    assert row.ratio.interval.low == pytest.approx(1 / other_way_round.interval.high)
    assert row.ratio.interval.high == pytest.approx(1 / other_way_round.interval.low)


def test_levels_of_the_published_size_stand_for_ours_in_their_order() -> None:
    """[full] has as many levels of the factor as [matrix]."""
    contents = report_bundles.ramdisk()
    toml = contents.experiment_toml + '\n[full]\n"storage" = ["array", "dram"]\n'
    document = {**tomllib.loads(toml), "full": {"storage": ["array", "dram"]}}
    experiment = Experiment.model_validate(document, by_alias=True, by_name=False)
    contents = replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment}))
    study = report_bundles.published().model_copy(
        update={
            "figure": (
                PublishedFigure(levels={"storage": "array"}, tps=10),
                PublishedFigure(levels={"storage": "dram"}, tps=90),
            ),
            "ratio": (),
        }
    )
    rows = compared(reported(report_bundles.with_reference(contents, study))).figures
    assert [(row.variant, row.stands_for) for row in rows] == [("disk", "storage array"), ("memory", "storage dram")]
    assert [row.published_ratio for row in rows] == [1, 9]


def test_the_terminal_shows_both_where_ours_was_measured(studied: Reported) -> None:
    text = render_terminal(studied.report, width=200, color=False)
    _, _, section = text.partition("Comparison with the published study (")
    disk, memory, ratio, *_ = section.splitlines()[1:]
    assert disk.startswith("disk: published 200 tps (1x); ours ") and "storage tape" not in section
    assert re.match(r"memory: published 1,800 tps \(9x\); ours [\d,]+ tps \([\d.]+x \[[\d.]+, [\d.]+\]\)$", memory)
    assert re.match(r"memory against disk: published 2 to 4x; ours [\d.]+x \[", ratio)
    without = studied.report.model_copy(update={"published": None})
    assert "published" not in render_terminal(without, width=200, color=False)


def test_the_terminal_separates_pairs_that_share_a_ratio(studied: Reported) -> None:
    of = compared(studied)
    (first,) = [row for row in of.ratios if row.variant]
    of = of.model_copy(update={"ratios": (first, first.model_copy(update={"variant": "slower, memory"}))})
    text = render_terminal(studied.report.model_copy(update={"published": of}), width=200, color=False)
    assert f"{first.what} ({first.variant}): published" in text and f"{first.what} (slower, memory): published" in text


def test_markdown_shows_both_with_the_source(studied: Reported) -> None:
    text = render_markdown(studied.report)
    section = text.partition("## Comparison with the published study\n")[2].partition("\n## ")[0]
    assert "An invented study, 1999 (https://example.invalid/study)" in section
    (memory,) = [line for line in section.splitlines() if line.startswith("| memory |")]
    cells = [cell.strip() for cell in memory.strip("|").split("|")]
    assert (cells[1], cells[3], cells[5], cells[7]) == ("1,800", "9x", "4.00 ms", "in a hurry")
    assert cells[2][0].isdigit() and cells[4].endswith("]") and cells[6].endswith("s")
    assert "| storage tape | 2 | n/a: not measured here | 0.01x |" in section
    assert "| memory against disk | memory / disk | 2 to 4x |" in section
    assert "fsync: 778 per s" in section and "Tape tears." in section
    assert "1 further figure of the study is about another question." in section


def test_the_latency_of_a_statement_is_shown_with_the_published_one() -> None:
    def fact(storage: str, statement: str) -> PublishedFact:
        by = PublishedStatement(levels={"storage": storage}, statement=statement)
        return PublishedFact(what=f"{statement} on {storage}", value=0.5, unit="ms", measured_by=by)

    facts = (fact("disk", "END"), fact("memory", "END"), fact("disk", "VACUUM"), fact("tape", "END"))
    study = report_bundles.published().model_copy(update={"fact": facts})
    of = reported(report_bundles.with_reference(report_bundles.ramdisk(), study))
    means_ms = {
        variant.id: statement.latency.mean_ns / 1e6
        for variant in of.analysis.variants
        for statement in variant.statements
        if statement.text == "END;"
    }
    assert [row.ours for row in compared(of).facts] == [means_ms["disk"], means_ms["memory"], None, None]
    assert "END on tape: published 0.5 ms; ours n/a: not measured here" in render_markdown(of.report)


def test_what_the_io_probe_measured_is_shown_with_the_published_figure(studied: Reported, probed: Reported) -> None:
    without, with_ours = "published 52 MB/s; ours n/a: not measured here", "published 52 MB/s; ours 98.3 MB/s"
    assert f"dd to the disk: {without}" in render_markdown(studied.report)
    assert f"dd to the disk: {with_ours}" in render_markdown(probed.report)
    assert "dd to the disk" not in render_terminal(studied.report, width=200, color=False)
    text = render_terminal(probed.report, width=200, color=False)
    assert f"dd to the disk: {with_ours}" in text


def test_the_fsync_probe_is_shown_with_the_published_one(studied: Reported) -> None:
    def fact(storage: str, fsync: str, per_unit: float = 1) -> PublishedFact:
        by = PublishedFsync(storage=storage, fsync=fsync, per_unit=per_unit)
        return PublishedFact(what=f"{fsync} on {storage}", value=1, unit="per s", measured_by=by)

    facts = (
        fact("disk", "fdatasync"),
        fact("disk", "fdatasync", 1000),
        fact("disk", "fsync_writethrough"),
        fact("tape", "fsync"),
    )
    study = report_bundles.published().model_copy(update={"fact": facts})
    plan = report_bundles.with_reference(report_bundles.ramdisk(), study).plan
    figures = (
        FlushFigure(
            label="fdatasync",
            kind="write",
            ops_per_s=860,
            latency_p50_ns=1_000_000,
            latency_p99_ns=None,
            unavailable=None,
        ),
        FlushFigure(
            label="fsync_writethrough",
            kind="write",
            ops_per_s=None,
            latency_p50_ns=None,
            latency_p99_ns=None,
            unavailable="only macOS and Windows have it",
        ),
    )
    flushes = StorageFlushes(storage="disk", verdict="plausible", reasons=(), figures=figures)
    found = compare_with_published(plan, studied.analysis, flushes=[flushes])
    assert found is not None and [row.ours for row in found.facts] == [860, 0.86, None, None]


def test_what_was_loaded_is_shown_with_the_published_size_only_if_it_has_as_many_rows() -> None:
    def fact(figure: str, **given: object) -> PublishedFact:
        by = PublishedDataset.model_validate({"rows": 1_000_000, "figure": figure, **given})
        return PublishedFact(what=figure, value=1, unit="MB", measured_by=by)

    facts = (
        fact("table_bytes", per_unit=1e6),
        fact("index_bytes", per_unit=1e6),
        fact("load_s"),
        fact("load_s", loader="copy"),
        fact("load_s", loader="pages"),
        fact("table_bytes", rows=1_000_000_000),
    )
    table = LoadedTable(
        name="numbers",
        rows=1_003_000,  # by the estimate of ANALYZE
        size_bytes=44_000_000,
        indexes=(LoadedIndex(name="numbers_pkey", size_bytes=22_000_000, levels=2, lookup_buffers=4),),
    )
    loaded = LoadedDataset(cluster="1-disk", kind="tpcb", load_s=14.5, tasks=(), tables=(table,))
    study = report_bundles.published().model_copy(update={"fact": facts})
    contents = report_bundles.with_reference(report_bundles.ramdisk(), study)
    of = reported(replace(contents, datasets={"1-disk": loaded}))
    assert [row.ours for row in compared(of).facts] == [44, 22, 14.5, 14.5, None, None]
