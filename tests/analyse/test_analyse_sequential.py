"""Trials that stop when they have decided: false alarms over all looks, power, and the trials that it takes, simulated."""

import math

import numpy as np
import pytest

import noise_simulation as simulation
from plinth.analyse.sequential import Rule, critical_values, decide, looks
from plinth.model.experiment import FIRST_LOOK

EMULATED_DISK = simulation.lognormal(0.02)
"""Coefficient of variation of trials of some seconds on a disk whose delays are emulated."""


def share(decided: list, decision: str) -> float:
    return float(np.mean([one.decision == decision for one in decided]))


@pytest.mark.parametrize("noise", ["lognormal, any size", "normal, 30 %", "t with 5 degrees, 10 %", "disturbed, 10 %"])
def test_looks_after_every_block_give_no_more_false_alarms_than_one_look_would(noise: str) -> None:
    replicas = 1500
    found = simulation.sequential_decisions(simulation.NOISES[noise], Rule(0.001, 20, 1), 1.0, replicas, seed=41)
    assert share(found, "difference") <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / replicas)


@pytest.mark.parametrize(("most", "family"), [(4, 1), (12, 1), (20, 1), (20, 5)])
def test_the_critical_values_spend_no_more_than_they_may(most: int, family: int) -> None:
    replicas, allowed = 300_000, 0.05 / family
    found = simulation.sequential_false_alarms(Rule(0.001, most, family), replicas, seed=46)
    assert 0.9 * allowed < found <= allowed + math.sqrt(allowed * (1 - allowed) / replicas)


def test_five_comparisons_share_the_false_alarms() -> None:
    found = simulation.sequential_decisions(EMULATED_DISK, Rule(0.001, 20, 5), 1.0, 1500, seed=42)
    assert share(found, "difference") <= 0.01 + 2 * math.sqrt(0.01 * 0.99 / 1500)


def test_a_difference_of_five_percent_takes_half_the_trials_of_a_fixed_plan() -> None:
    found = simulation.sequential_decisions(EMULATED_DISK, Rule(0.03, 12, 1), 1.05, 400, seed=43)
    power, trials = share(found, "difference"), float(np.mean([one.trials for one in found]))
    assert power >= 0.9
    of_twice_as_many = simulation.fixed_power(EMULATED_DISK, math.floor(2 * trials), 1.05, 2000, seed=44)
    assert of_twice_as_many <= power


def test_no_difference_is_shown_to_be_within_the_target() -> None:
    found = simulation.sequential_decisions(simulation.lognormal(0.01), Rule(0.03, 20, 1), 1.0, 200, seed=45)
    assert share(found, "within the target") >= 0.9


def test_what_was_decided_stays_decided_regardless_of_what_follows() -> None:
    decided = decide([0.5, 0.52, 0.48, 0.51], Rule(0.03, 20, 1))
    assert (decided.decision, decided.trials) == ("difference", 4)
    assert decided.interval is not None and 1 < decided.interval.low < math.exp(0.5) < decided.interval.high
    assert decide([0.5, 0.52, 0.48, 0.51, -3.0, 2.0, -9.0], Rule(0.03, 20, 1)) == decided


def test_undecided_says_about_how_many_more_trials_would_decide() -> None:
    found = decide([0.12, -0.05, 0.10, 0.01, 0.08], Rule(0.03, 40, 1))
    assert found.decision == "undecided" and found.trials == 5
    assert found.more_trials is not None and 1 < found.more_trials < 40
    assert decide([5.0, -5.0, 5.0, -5.0, 0.1], Rule(0.001, 40, 1)).more_trials is None  # not within a thousand


def test_too_few_or_equal_trials_decide_nothing() -> None:
    assert decide([0.5] * (FIRST_LOOK - 1), Rule(0.03, 20, 1)).interval is None
    assert decide([0.5] * 10, Rule(0.03, 20, 1)).decision == "undecided"


def test_the_last_look_is_at_the_most_trials_and_looks_grow_apart() -> None:
    assert looks(4) == [4]
    assert looks(20) == list(range(4, 21))
    assert looks(1000)[-1] == 1000 and len(looks(1000)) < 120
    values = critical_values(12, 0.05)
    assert list(values) == looks(12) and all(value > 2 for value in values.values())


def test_one_look_at_few_trials_is_students_t() -> None:
    assert critical_values(4, 0.05)[4] == pytest.approx(3.182, rel=0.02)


@pytest.mark.parametrize("rule", [(0.0, 20, 1), (0.03, 3, 1), (0.03, 20, 0)])
def test_a_rule_that_could_decide_nothing_is_refused(rule: tuple[float, int, int]) -> None:
    with pytest.raises(ValueError, match="4 trials or more"):
        Rule(*rule)
