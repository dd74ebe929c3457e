"""Which variants dominate which, and what the noise leaves open."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analyse_bundles import edit_trial, histogram, sweep
from browser import check_report
from plinth.analyse import analyse
from plinth.analyse.pareto import pareto_fronts
from plinth.analyse.trials import judge_trials
from plinth.model.contents import BundleContents
from plinth.model.factors import design_of
from plinth.model.prices import PricesSpec
from plinth.report import render_html, render_markdown, render_terminal
from plinth.report.charts import draw_charts
from report_bundles import ramdisk
from reported import reported

MS = 1_000_000


def made(pace: Mapping[str, tuple[float, float]], *, noise: float = 0.01, repeats: int = 5) -> BundleContents:
    """Storages with tps and p99 in ms; lognormal noise in both."""
    rng = np.random.default_rng(51)
    contents = sweep(
        {"storage": list(pace)},
        lambda variant, block: pace[str(variant.levels["storage"])][0] * math.exp(noise * rng.standard_normal()),
        repeats=repeats,
    )
    for trial in contents.trials:
        done = trial.trial.measured.done if trial.trial.measured else 0
        p99 = pace[trial.trial.variant][1] * MS * math.exp(noise * rng.standard_normal())
        buckets = {round(p99 / 3): round(0.97 * done), round(p99): done - round(0.97 * done)}
        contents = edit_trial(contents, trial.trial.number, histograms=(histogram(buckets),))
    return contents


def dominated(contents: BundleContents) -> dict[str, set[str]]:
    (front,) = analyse(contents).pareto
    return {point.variant: set(point.dominated_by) for point in front.points}


def priced(contents: BundleContents, **per_hour: float) -> BundleContents:
    """With prices of the storages."""
    storage = {name: {"per_hour": price} for name, price in per_hour.items()}
    prices = PricesSpec.model_validate({"currency": "EUR", "storage": storage})
    experiment = contents.plan.experiment.model_copy(update={"prices": prices})
    return replace(contents, plan=contents.plan.model_copy(update={"experiment": experiment}))


def test_what_is_better_in_one_and_worse_in_none_dominates() -> None:
    found = dominated(made({"disk": (1000, 9), "ssd": (2000, 9), "raid": (3000, 20), "slow": (900, 30)}))
    assert found == {"disk": {"ssd"}, "ssd": set(), "raid": set(), "slow": {"disk", "ssd", "raid"}}


def test_of_two_that_are_alike_the_dearer_is_dominated() -> None:
    contents = made({"disk": (1000, 9), "ssd": (1000, 9), "raid": (3000, 9)}, noise=0.005)
    assert dominated(contents)["ssd"] == {"raid"}
    with_prices = priced(contents, disk=1, ssd=2, raid=9)
    assert dominated(with_prices) == {"disk": set(), "ssd": {"disk"}, "raid": set()}
    markdown = render_markdown(reported(with_prices).report)
    assert "Cost of a million" in markdown and "cost per million transactions" in markdown


def test_what_keeps_its_commits_is_not_dominated_by_what_does_not() -> None:
    contents = made({"disk": (1000, 9), "memory": (3000, 2), "ssd": (900, 12)})
    assert dominated(contents) == {"disk": set(), "memory": set(), "ssd": {"disk"}}


def test_what_the_noise_leaves_open_stays_on_the_front() -> None:
    pace = {"disk": (1000.0, 9.0), "ssd": (1100.0, 8.0), "raid": (2000.0, 9.0)}
    assert dominated(made(pace, noise=0.005))["disk"] == {"ssd", "raid"}
    assert dominated(made(pace, noise=0.15))["disk"] == set()


def test_variants_that_are_the_same_are_rarely_dominated() -> None:
    pace = {"disk": (1000.0, 9.0), "ssd": (1000.0, 9.0), "raid": (1000.0, 9.0)}
    count, false = 60, 0
    rng = np.random.default_rng(52)
    contents = made(pace)
    design = design_of(contents.plan)
    results = {result.id: result for result in analyse(contents).variants}
    for replica in range(count):
        trials = tuple(
            replace(trial, trial=trial.trial.model_copy(update={"tps": 1000 * math.exp(0.02 * rng.standard_normal())}))
            for trial in contents.trials
        )
        measured = judge_trials(replace(contents, trials=trials))
        (front,) = pareto_fronts(design, measured, results, {}, replica)
        false += any(point.dominated_by for point in front.points)
    assert false <= 0.05 * count + 2.5 * math.sqrt(0.05 * 0.95 * count)


def test_what_is_not_known_is_left_out_with_its_reason() -> None:
    contents = made({"disk": (1000, 9), "ssd": (2000, 9), "raid": (3000, 20)})
    contents = replace(contents, storages={name: one for name, one in contents.storages.items() if name != "ssd"})
    contents = edit_trial(contents, 1, histograms=())
    (front,) = analyse(contents).pareto
    assert front.metrics == ("tps",)
    assert {gap.what: gap.reason for gap in front.gaps} == {
        "p99 latency": "it is not known, or 0, in a counted trial of a variant",
        "bytes written per transaction": "it is not known, or 0, in a counted trial of a variant",
        "acknowledged commits": "not known of ssd",
    }
    assert {point.variant: set(point.dominated_by) for point in front.points}["disk"] == {"ssd", "raid"}


def test_too_few_trials_are_named() -> None:
    (front,) = analyse(made({"disk": (1000, 9), "ssd": (2000, 9), "raid": (3000, 20)}, repeats=2)).pareto
    assert front.points == ()
    assert front.gaps[0].what == "disk, ssd, raid" and front.gaps[0].reason == "fewer than 3 counted trials"


def test_two_variants_have_no_front() -> None:
    assert analyse(ramdisk(repeats=3, seconds=5)).pareto == ()


def test_of_two_with_prices_both_have_a_cost() -> None:
    contents = priced(made({"disk": (1000, 9), "ssd": (2000, 9)}, noise=0.001), disk=0.36, ssd=0.36)
    (front,) = analyse(contents).pareto
    costs = {point.variant: point.cost_per_million for point in front.points}
    assert {name: cost and round(cost.value, 3) for name, cost in costs.items()} == {"disk": 0.1, "ssd": 0.05}


@pytest.mark.long
def test_every_form_of_the_report_has_it(tmp_path: Path) -> None:
    run = reported(made({"disk": (1000, 9), "ssd": (2000, 9), "memory": (3000, 2), "slow": (900, 30)}))
    terminal = " ".join(render_terminal(run.report, width=80, color=False).split())
    assert "on the front: ssd; memory. Dominated: disk (by ssd); slow (by disk; ssd)." in terminal
    markdown = render_markdown(run.report)
    assert "## Trade-offs" in markdown and "dominated by disk; ssd" in markdown
    (drawing,) = [one for one in draw_charts(run.report) if "trade-offs" in one.name]
    assert drawing.svg.count("transactions per second") == 1
    file = tmp_path / "report.html"
    file.write_text(render_html(run.report), encoding="utf-8")
    _, found = check_report(file, "light")
    assert [text for text in found["failures"] if not text.startswith(("cursor", "selector"))] == []
    (chart,) = [chart for chart in found["charts"] if chart["id"] == "trade-offs"]
    assert chart["series"] == 9, "a dot and its intervals for each variant, and a cross on that which loses commits"
    rows = found["tables"]["Variants and the Pareto front"]
    assert [row[-1] for row in rows] == ["on the front", "on the front", "dominated by ssd", "dominated by disk; ssd"]
