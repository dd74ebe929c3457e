"""A schedule that is not kept is no better variant: open loops are judged by what they did in time, and by latency."""

from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import edit_trial, histogram, sweep
from plinth.analyse import analyse
from plinth.analyse.between_runs import Run, compare_runs
from plinth.analyse.run_figures import run_figures
from plinth.model.analysis import Analysis, Comparison
from plinth.model.contents import BundleContents
from plinth.model.load import Totals
from plinth.report import render_markdown, render_terminal
from reported import reported


def open_loops(
    matrix: dict[str, list[Any]],
    done: dict[str, float],
    *,
    rate: float | None = None,
    late: dict[str, float] | None = None,
    p99_ms: dict[str, float] | None = None,
    missed_in: dict[str, int] | None = None,
    **measure: Any,
) -> BundleContents:
    """Open loops with a latency limit, of which each second `done` are done by the label of the variant, and all others skipped.

    `late` of those done are late. `missed_in`: the variant misses its schedule in so many trials and keeps it in the others.
    """
    contents = sweep(matrix, lambda variant, block: 1.0, **measure)
    variants = tuple(
        one.model_copy(update={"workload": one.workload.model_copy(update={"rate": rate or one.workload.rate})})
        for one in contents.plan.variants
    )
    contents = replace(contents, plan=contents.plan.model_copy(update={"variants": variants}))
    by_id = {one.id: one for one in variants}
    for trial in [one.trial for one in contents.trials]:
        variant = by_id[trial.variant]
        asked = variant.workload.rate
        assert isinstance(asked, int | float)
        per_s = done[variant.label]
        if missed_in and trial.block > missed_in.get(variant.label, 99):
            per_s = asked
        due, count = round(30 * asked), round(30 * per_s * (1 + 0.002 * (trial.number * 7 % 5 - 2) * (per_s < asked)))
        totals = Totals(
            scheduled=due, done=count, failed=0, skipped=due - count, open=0, retries=0, retried=0,
            late=round(count * (late or {}).get(variant.label, 0)),
        )  # fmt: skip
        latency_ns = round((p99_ms or {}).get(variant.label, 2.0) * 1e6 * (1 + 0.01 * (trial.number * 3 % 5)))
        contents = edit_trial(
            contents, trial.number, measured=totals, totals=totals, tps=count / 30, histograms=(histogram({latency_ns: count}),)
        )  # fmt: skip
    return contents


def comparison(analysis: Analysis, label: str) -> Comparison:
    ids = {one.label: one.id for one in analysis.variants}
    return next(one for one in analysis.comparisons if one.variant == ids[label])


FOUND = open_loops({"workload.rate": [500.0, 20_000.0]}, {"500/s": 500.0, "20,000/s": 6_200.0})


def test_a_rate_that_was_not_reached_is_worse_than_a_low_one_that_was_kept() -> None:
    run = reported(FOUND)
    found = comparison(run.analysis, "20,000/s")
    assert (found.verdict, found.by_schedule, found.is_undecided) == ("worse", "misses the schedule", False)
    assert found.sentence.startswith(
        "20,000/s does not keep up with its schedule, and 500/s does: of 3,000,000 transactions due, "
    )
    assert "were skipped as too late and 0 left waiting at the end; in time, 20,000/s did 12" in found.sentence
    assert run.analysis.answer.startswith("The server keeps up with the schedule up to 500/s")
    assert "misses the schedule" in render_markdown(run.report)
    assert "misses the schedule" in " ".join(render_terminal(run.report, width=200, color=False).split())
    assert "better" not in render_terminal(run.report, width=200, color=False)


def test_the_other_way_round_the_rate_that_is_kept_is_better() -> None:
    loops = open_loops({"workload.rate": [20_000.0, 500.0]}, {"500/s": 500.0, "20,000/s": 6_200.0})
    found = comparison(analyse(loops), "500/s")
    assert (found.verdict, found.by_schedule) == ("better", "keeps the schedule")
    assert found.ratio.value < 1, "it is better although it did less"


def test_of_two_rates_that_are_kept_none_is_better() -> None:
    found = comparison(
        analyse(open_loops({"workload.rate": [500.0, 1000.0]}, {"500/s": 500.0, "1,000/s": 1000.0})), "1,000/s"
    )
    assert (found.verdict, found.by_schedule, found.is_undecided) == ("no difference shown", "as asked", False)
    assert found.sentence.startswith("1,000/s and 500/s keep up with their schedules, so that their throughput is what")


STORAGES: dict[str, list[Any]] = {"storage": ["disk", "ssd", "nvme", "tape"]}


def test_those_that_keep_up_are_ranked_first_by_latency_and_the_others_by_what_they_did_in_time() -> None:
    loops = open_loops(
        STORAGES,
        {"disk": 700.0, "tape": 800.0, "ssd": 1000.0, "nvme": 1000.0},
        rate=1000.0,
        late={"tape": 0.5},
        p99_ms={"disk": 0.5, "tape": 0.4, "ssd": 3.0, "nvme": 2.0},
    )
    run = reported(loops)
    assert [(one.label, one.rank, one.ranked_by, one.schedule) for one in run.analysis.variants] == [
        ("nvme", 1, "schedule", "kept"),
        ("ssd", 2, "schedule", "kept"),
        ("disk", 3, "schedule", "missed"),
        ("tape", 4, "schedule", "missed"),
    ]
    assert run.report.ranking == (
        "Ranked by the schedule: variants that keep up with it come first, by p99 latency; the others follow, by what they did in time."
    )
    tape = comparison(run.analysis, "tape")
    assert (tape.by_schedule, tape.verdict) == ("neither keeps up", "worse")
    assert tape.ratio.value == pytest.approx(400 / 700, rel=0.01), "half of what tape did was late"
    assert tape.note is not None and tape.note.startswith("the ratio is of what was done within the latency limit")
    (front,) = run.analysis.pareto
    dominated = {point.variant: point.dominated_by for point in front.points}
    assert "schedule" in front.metrics and not {"disk", "tape"} & {*dominated["ssd"], *dominated["nvme"]}


def test_where_no_variant_keeps_up_throughput_in_time_decides() -> None:
    loops = open_loops({"storage": ["disk", "ssd"]}, {"disk": 500.0, "ssd": 900.0}, rate=1000.0)
    found = comparison(analyse(loops), "ssd")
    assert (found.verdict, found.by_schedule) == ("better", "neither keeps up")
    assert found.sentence.startswith("Neither keeps up with its schedule; in time, ssd did 1.79x disk (95 % CI ")


def test_a_schedule_that_is_kept_in_some_trials_decides_nothing() -> None:
    loops = open_loops({"storage": ["disk", "ssd"]}, {"disk": 1000.0, "ssd": 700.0}, rate=1000.0, missed_in={"ssd": 3})
    analysis = analyse(loops)
    found = comparison(analysis, "ssd")
    assert (found.verdict, found.by_schedule) == ("undecided", None)
    assert found.reason == "ssd keeps up with the schedule in 2 of 5 trials"
    assert found.reason in found.sentence
    assert [one.label for one in analysis.variants] == ["disk", "ssd"]


def test_two_trials_are_too_few_for_a_schedule_too() -> None:
    loops = open_loops({"storage": ["disk", "ssd"]}, {"disk": 500.0, "ssd": 1000.0}, rate=1000.0, repeats=2)
    found = comparison(analyse(loops), "ssd")
    assert (found.verdict, found.more_trials) == ("undecided", 3)
    assert found.reason == "a schedule is judged by at least 3 trials of each"


def test_with_several_factors_each_level_says_who_keeps_up() -> None:
    matrix: dict[str, list[Any]] = {"storage": ["disk", "ssd"], "workload.rate": [500.0, 1000.0]}
    done = {"disk, 500/s": 500.0, "ssd, 500/s": 400.0, "disk, 1,000/s": 700.0, "ssd, 1,000/s": 1000.0}
    answer = analyse(open_loops(matrix, done)).answer
    assert (
        "ssd keeps up with its schedule at 1,000/s, and disk does not; it does not keep up with its schedule at 500/s, and disk does."
        in answer
    )


def runs(before: dict[str, float], after: dict[str, float], **fields: Any) -> tuple[Run, Run]:
    found: list[Run] = []
    for name, done in (("monday", before), ("tuesday", after)):
        contents = open_loops({"storage": list(done)}, done, rate=1000.0, **fields)
        contents = replace(contents, manifest=contents.manifest.model_copy(update={"run_id": name}))
        found.append(Run(name, run_figures(contents, analyse(contents))))
    return found[0], found[1]


def test_a_later_run_that_no_longer_keeps_up_is_worse_and_its_latency_is_not_compared() -> None:
    throughput, latency = compare_runs(runs({"disk": 1000.0}, {"disk": 980.0})).ratios
    assert throughput.verdict == "worse"
    assert throughput.sentence.endswith("worse (the first run kept up with the schedule, the later one did not)")
    assert latency.refused == (
        "the schedule was not kept in 5 of 5 trials of the later run, and what was not done has no latency",
    )
    (better, _) = compare_runs(runs({"disk": 980.0}, {"disk": 1000.0})).ratios
    assert better.verdict == "better"


def test_runs_that_keep_up_are_compared_by_latency_as_before() -> None:
    throughput, latency = compare_runs(runs({"disk": 1000.0}, {"disk": 1000.0})).ratios
    assert not throughput.refused and not latency.refused and latency.ratio is not None
