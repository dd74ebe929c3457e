"""Open loops: up to which rate the server keeps up with the schedule, and what is compared while it does."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import edit_trial, histogram, sweep
from plinth.analyse import analyse
from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents
from plinth.model.load import Totals
from plinth.model.plan import Variant
from plinth.model.sweep import ScalingCurve
from plinth.report import render_markdown, render_terminal
from reported import reported
from typed import of

RATES = {"workload.rate": [2000, 500, 1000, 4000]}
CAPACITY = {"disk": 1500.0, "memory": 3000.0}
LATENCY_NS = {"disk": 8_000_000, "memory": 1_000_000}


def scheduled(
    matrix: Mapping[str, list[Any]],
    missed: Callable[[Variant, int], float] | None = None,
    workload: Mapping[str, Any] | None = None,
) -> BundleContents:
    """Open loops on storages of CAPACITY; `missed` is the share of the schedule that a trial leaves waiting."""
    contents = sweep(matrix, lambda variant, block: 1.0)
    if workload:
        variants = tuple(
            one.model_copy(update={"workload": one.workload.model_copy(update=dict(workload))})
            for one in contents.plan.variants
        )
        contents = replace(contents, plan=contents.plan.model_copy(update={"variants": variants}))
    variants_by_id = {one.id: one for one in contents.plan.variants}
    for trial in [one.trial for one in contents.trials]:
        variant = variants_by_id[trial.variant]
        storage, rate = str(variant.levels.get("storage", "disk")), variant.workload.rate
        rate = of(float, rate)
        share = missed(variant, trial.block) if missed else max(0.0, 1 - CAPACITY[storage] / rate)
        due = round(30 * rate)
        done = round(due * (1 - share))
        totals = Totals(scheduled=due, done=done, failed=0, skipped=0, open=due - done, retries=0, retried=0)
        latency_ns = round(LATENCY_NS[storage] * (1 + 0.01 * (trial.number * 3 % 5)))
        contents = edit_trial(
            contents,
            trial.number,
            measured=totals,
            totals=totals,
            tps=done / 30 * (1 + 0.001 * ((trial.number * 7) % 5)),
            histograms=(histogram({latency_ns: max(done, 1)}),),
        )
    return contents


def curve(analysis: Analysis) -> ScalingCurve:
    assert analysis.sweep is not None
    (found,) = analysis.sweep.curves
    return found


def test_the_answer_names_the_rate_from_which_the_server_does_not_keep_up() -> None:
    analysis = analyse(scheduled(RATES))
    assert analysis.answer.startswith(
        "The server keeps up with the schedule up to 1,000/s (p99 latency 8.32 ms); from 2,000/s on it does not: it reaches 1,5"
    )
    assert "nconclusive" not in analysis.answer
    limit = curve(analysis).schedule
    assert limit is not None and (limit.kept_until, limit.missed_from) == ("1,000/s", "2,000/s")
    assert [(one.label, one.kept, one.trials) for one in limit.levels] == [
        ("500/s", 5, 5),
        ("1,000/s", 5, 5),
        ("2,000/s", 0, 5),
        ("4,000/s", 0, 5),
    ]


def test_a_server_that_keeps_up_with_everything_or_nothing_is_said_to() -> None:
    everything = analyse(scheduled(RATES, lambda variant, block: 0.005))
    assert everything.answer.startswith(
        "The server keeps up with the schedule at every rate, up to 4,000/s (p99 latency "
    )
    limit = curve(everything).schedule
    assert limit is not None and (limit.kept_until, limit.missed_from) == ("4,000/s", None)
    nothing = analyse(scheduled(RATES, lambda variant, block: 0.5))
    assert nothing.answer.startswith("The server does not keep up with the schedule, not even at 500/s: it reaches ")


def test_a_rate_that_some_trials_keep_up_with_is_not_decided() -> None:
    def sometimes(variant: Variant, block: int) -> float:
        rate = float(str(variant.levels["workload.rate"]))
        return 0.3 if rate > 2000 or (rate == 2000 and block < 3) else 0.0

    assert analyse(scheduled(RATES, sometimes)).answer.startswith(
        "The server keeps up with the schedule up to 1,000/s (p99 latency 8.32 ms); at 2,000/s it keeps up in 3 of 5 trials; "
        "at 4,000/s it does not: it reaches "
    )


def test_a_stall_at_a_low_rate_is_not_where_the_server_stops_keeping_up() -> None:
    def stalls(variant: Variant, block: int) -> float:
        return 0.3 if variant.workload.rate in (1000, 4000) else 0.0

    assert analyse(
        scheduled(RATES, lambda variant, block: 0.3 if variant.workload.rate == 500 and block == 1 else 0.0)
    ).answer.startswith(
        "At 500/s the server keeps up with the schedule in 4 of 5 trials; at 1,000/s it keeps up in 5 of 5 trials; "
    )
    limit = curve(analyse(scheduled(RATES, stalls))).schedule
    assert limit is not None and (limit.kept_until, limit.missed_from) == ("500/s", "4,000/s")
    assert (
        "at 1,000/s it keeps up in 0 of 5 trials; at 2,000/s it keeps up in 5 of 5 trials; at 4,000/s it does not"
        in limit.sentence
    )


def test_storages_that_keep_up_are_compared_by_latency_and_otherwise_by_throughput() -> None:
    analysis = analyse(scheduled({"storage": ["disk", "memory"], **RATES}))
    disk, memory, first, _safety = analysis.answer.removesuffix(".").split(". ")
    assert first.startswith(
        "Memory keeps up with the schedule as disk does up to 1,000/s: p99 latency 0.123x disk's (95 % CI "
    )
    assert (
        "; it keeps up with its schedule at 2,000/s, and disk does not; it wins at 4,000/s, where neither keeps"
        in first
    )
    assert disk.startswith(
        "Disk: the server keeps up with the schedule up to 1,000/s (p99 latency 8.16 ms); from 2,000/s on"
    )
    assert memory.startswith(
        "Memory: the server keeps up with the schedule up to 2,000/s (p99 latency 1.02 ms); at 4,000/s"
    )
    by_latency = {one.variant for one in analysis.comparisons if one.latency_p99 is not None}
    assert by_latency == {"memory-500-s", "memory-1000-s"}
    assert not any(one.is_undecided for one in analysis.comparisons)


def test_the_tables_of_an_open_loop_have_its_latency_and_no_verdict_on_what_was_asked_for() -> None:
    run = reported(scheduled({"storage": ["disk", "memory"], **RATES}))
    lines = render_terminal(run.report, width=80, color=False).splitlines()
    assert "p50 / p99" in lines[0]
    rows = [line for line in render_markdown(run.report).splitlines() if "| memory, " in line]
    assert ["same schedule" in row and "p99 0.12" in row for row in rows[:4]] == [True, True, False, False]
    assert run.report.ratios is not None
    cells = [row.cells[0] for row in run.report.ratios.rows]
    assert [cell and cell.verdict for cell in cells] == [
        "same schedule",
        "same schedule",
        "keeps the schedule",
        "better",
    ]
    effects = run.analysis.sweep and run.analysis.sweep.effects
    assert effects and effects.missing == "the throughput of an open loop is what its schedule asks for"


def test_the_answer_says_briefly_where_latencies_have_no_interval() -> None:
    contents = scheduled({"storage": ["disk", "memory"], **RATES}, lambda variant, block: 0.0)
    variants = {one.id: one for one in contents.plan.variants}
    for trial in [one.trial for one in contents.trials]:
        if variants[trial.variant].label == "memory, 500/s":
            wild = histogram({2_000_000 * 12 ** (trial.block % 3): 1000})
            contents = edit_trial(contents, trial.number, histograms=(wild,))
    analysis = analyse(contents)
    assert "x disk's (not enough trials) at 500/s, 0.12" in analysis.answer
    assert "spans a factor" not in analysis.answer
    assert {one.variant for one in analysis.comparisons if one.is_undecided} == {"memory-500-s"}


@pytest.mark.parametrize(
    ("storages", "said"),
    [
        (
            ["disk", "memory"],
            "Both keep up with the schedule, so that their throughput is what was asked for; p99 latency: memory 0.12",
        ),
        (
            ["memory", "disk", "tape"],
            "All keep up with the schedule, so that their throughput is what was asked for; p99 latency: tape 3",
        ),
    ],
)
def test_at_one_rate_latency_is_the_answer(storages: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPACITY, "tape", 5000.0)
    monkeypatch.setitem(LATENCY_NS, "tape", 3_000_000)
    analysis = analyse(scheduled({"storage": storages}, workload={"rate": 1000.0}))
    assert analysis.answer.startswith(said)
    assert "(95 % CI " in analysis.answer


def test_storages_that_keep_up_are_ranked_by_latency_regardless_of_their_throughput(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(CAPACITY, "tape", 5000.0)
    monkeypatch.setitem(LATENCY_NS, "tape", 3_000_000)
    contents = scheduled({"storage": ["disk", "tape", "memory"]}, workload={"rate": 1000.0})
    storages = {one.id: str(one.levels["storage"]) for one in contents.plan.variants}
    by_throughput = {"disk": 1003.0, "tape": 1002.0, "memory": 1001.0}  # just as the clock had it
    for one in contents.trials:
        contents = edit_trial(
            contents, one.trial.number, tps=by_throughput[storages[one.trial.variant]] + 0.01 * one.trial.block
        )
    run = reported(contents)
    assert [(one.label, one.rank, one.ranked_by) for one in run.analysis.variants] == [
        ("memory", 1, "latency"),
        ("tape", 2, "latency"),
        ("disk", 3, "latency"),
    ]
    said = "Ranked by p99 latency, the lowest first: all keep up with their schedule, so that throughput is what was asked for."
    assert run.report.ranking == said
    assert said in render_markdown(run.report)
    assert said in " ".join(render_terminal(run.report, width=80, color=False).split())
    (group,) = run.analysis.groups
    assert (group.letters, group.missing) == (
        {},
        "not grouped: the throughput of an open loop is what its schedule asks for",
    )


def test_only_levels_whose_schedule_all_keep_up_with_are_ranked_by_latency() -> None:
    run = reported(scheduled({"storage": ["disk", "memory"], **RATES}))
    ranks = [(one.label, one.rank, one.ranked_by) for one in run.analysis.variants]
    assert ranks == [
        ("memory, 500/s", 1, "latency"),
        ("disk, 500/s", 2, "latency"),
        ("memory, 1,000/s", 1, "latency"),
        ("disk, 1,000/s", 2, "latency"),
        ("memory, 2,000/s", 1, "schedule"),
        ("disk, 2,000/s", 2, "schedule"),
        ("memory, 4,000/s", 1, "schedule"),
        ("disk, 4,000/s", 2, "schedule"),
    ]
    assert run.report.ranking == (
        "Ranked by p99 latency at 500/s, 1,000/s, the lowest first: all keep up with their schedule, so that throughput is what was "
        "asked for; by the schedule at 2,000/s, 4,000/s: variants that keep up with it come first, by p99 latency; the others follow, "
        "by what they did in time."
    )


def test_a_ranking_by_throughput_needs_no_sentence() -> None:
    run = reported(sweep({"storage": ["disk", "memory"]}, lambda variant, block: 1000.0 + block))
    assert {one.ranked_by for one in run.analysis.variants} == {"throughput"}
    assert run.report.ranking == "" and "Ranked by" not in render_markdown(run.report)


def test_without_counts_of_what_was_due_throughput_is_all_there_is() -> None:
    contents = scheduled(RATES)
    for one in contents.trials:
        contents = edit_trial(contents, one.trial.number, measured=None)
    found = curve(analyse(contents))
    assert found.schedule is None and found.sentence.startswith("throughput rises to ")
