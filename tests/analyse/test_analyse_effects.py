"""Main effects and interactions: known ones are found, with intervals that hold what they say."""

import math

import numpy as np
import pytest

from analyse_bundles import sweep
from plinth.analyse import analyse
from plinth.analyse.effects import effects_of
from plinth.analyse.trials import judge_trials
from plinth.model.analysis import Analysis
from plinth.model.factors import design_of
from plinth.model.plan import Variant
from plinth.model.sweep import Effects
from plinth.report import render_markdown, render_terminal
from reported import reported

MATRIX = {"storage": ["disk", "memory"], "workload.clients": [1, 4, 16]}
GAIN = {1: 2.0, 4: 2.0, 16: 3.0}
"""Of memory over disk: an interaction of 1.5 between 16 clients and 1."""


def pace(variant: Variant) -> float:
    clients = variant.workload.clients
    return 100 * clients * (GAIN[clients] if variant.levels.get("storage") == "memory" else 1.0)


def effects(analysis: Analysis) -> Effects:
    assert analysis.sweep is not None and analysis.sweep.effects is not None
    return analysis.sweep.effects


def noisy(seed: int, noise: float = 0.02, repeats: int = 6):
    rng = np.random.default_rng(seed)
    return sweep(
        MATRIX, lambda variant, block: pace(variant) * math.exp(noise * rng.standard_normal()), repeats=repeats
    )


def test_main_effects_are_means_over_the_others_and_interactions_ratios_of_ratios() -> None:
    found = {one.labels: one.ratio for one in effects(analyse(noisy(3))).effects}
    assert list(found) == [
        ("memory over disk",),
        ("16 clients over 1 client",),
        ("memory over disk", "16 clients over 1 client"),
    ]
    gain = (2.0 * 2.0 * 3.0) ** (1 / 3)
    truths = dict(zip(found, (gain, 16 * math.sqrt(1.5), 1.5), strict=True))
    for labels, truth in truths.items():
        interval = found[labels].interval
        assert found[labels].value == pytest.approx(truth, rel=0.05)
        assert interval is not None and interval.high / interval.low < 1.2


@pytest.mark.long
def test_intervals_of_effects_hold_the_truth_as_often_as_they_say() -> None:
    count, held = 75, 0
    design = design_of(noisy(0).plan)
    for seed in range(count):
        found = effects_of(design, judge_trials(noisy(seed)), seed)
        assert found is not None
        interval = found.effects[-1].ratio.interval
        assert interval is not None
        held += interval.low <= 1.5 <= interval.high
    assert 0.95 - 2.5 * math.sqrt(0.95 * 0.05 / count) <= held / count


def test_rates_of_different_transactions_have_no_main_effect_but_interact() -> None:
    matrix = {"storage": ["disk", "memory"], "workload.builtin": ["tpcb-like", "select-only"]}
    found = effects(analyse(sweep(matrix, lambda variant, block: 100.0 + block)))
    assert [one.factors for one in found.effects] == [("storage",), ("storage", "workload.builtin")]


@pytest.mark.parametrize(
    ("tps", "reason"),
    [
        (lambda variant, block: None if variant.is_baseline else 100.0 + block, "no block has a counted trial of every variant"),
        (lambda variant, block: None if (variant.workload.clients == 4) == (block % 2 == 0) else 100.0, "no block has a counted trial of every variant"),
    ],
)  # fmt: skip
def test_without_a_whole_block_there_are_none(tps, reason) -> None:
    assert effects(analyse(sweep(MATRIX, tps))).missing == reason


def test_of_one_factor_and_of_too_many_effects_there_are_none() -> None:
    one = analyse(sweep({"workload.clients": [1, 4]}, lambda variant, block: 100.0 + block))
    assert one.sweep is not None and one.sweep.effects is None
    storages = [f"s{place}" for place in range(110)]
    many = analyse(sweep({"storage": storages, "workload.clients": [1, 4]}, lambda variant, block: 100.0, repeats=1))
    assert effects(many).missing == "219 effects are more than 200"


def test_every_form_of_the_report_has_effects_and_the_ratio_at_each_level() -> None:
    run = reported(noisy(5))
    table = run.report.ratios
    assert table is not None and (table.baseline, table.columns) == ("disk", ("memory",))
    assert [row.stratum for row in table.rows] == ["1 client", "4 clients", "16 clients"]
    assert all(cell is not None and cell.verdict == "better" for row in table.rows for cell in row.cells)
    markdown = render_markdown(run.report)
    assert (
        "| Ratio to disk | memory |" in markdown
        and "| memory over disk, at 16 clients compared with 1 client |" in markdown
    )
    terminal = " ".join(render_terminal(run.report, width=100, color=False).split())
    assert "memory over disk, at 16 clients compared with 1 client: 1.5" in terminal
