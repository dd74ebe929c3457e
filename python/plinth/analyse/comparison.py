"""A variant against the baseline: ratio with interval, tests, noise floor, verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plinth.analyse import permutation
from plinth.analyse.bootstrap import (
    LEVEL,
    MAX_TRIALS,
    MIN_TRIALS,
    Pivot,
    estimate,
    estimate_ratio,
    expected_half_widths,
    stated,
)
from plinth.model.analysis import NoiseFloor, Verdict
from plinth.model.figures import Estimate, number

_Pair = tuple[str, str]
ALPHA = 1 - LEVEL
EQUIVALENCE = 1.05
"""A ratio whose whole interval lies inside 1/1.05 to 1.05 is no difference for practical purposes."""
FEW_TRIALS = 5
"""The number of trials that is advised where there are too few for an interval."""


@dataclass(frozen=True)
class Ratio:
    """tps of a variant over tps of the baseline; `pivot` and `p_value` (not yet corrected) are None without interval."""

    estimate: Estimate
    pivot: Pivot | None
    p_value: float | None
    permutation_p_value: float | None

    @property
    def log(self) -> float:
        """Log of the ratio; 0 is no difference."""
        return math.log(self.estimate.value)


@dataclass(frozen=True)
class Outcome:
    """What is reported of a comparison: the ratio, the verdict, and what either rests on, corrected for the whole family."""

    ratio: Estimate
    verdict: Verdict
    p_value: float | None = None
    permutation_p_value: float | None = None
    more_trials: int | None = None
    reason: str | None = None


def compare(variant: dict[int, float], baseline: dict[int, float], seed: int, family: int) -> Ratio | None:
    """Return the ratio from log(tps) by block, over the blocks that have both; None if there are none.

    `family` is the number of comparisons that will be corrected together: it decides which permutation test
    could reach 0.05 at all. That choice looks at the number of trials only, never at what they gave.
    """
    blocks = sorted(variant.keys() & baseline.keys())
    if not blocks:
        return None
    logs = np.array([variant[block] - baseline[block] for block in blocks])
    ratio, pivot = estimate(logs.tolist(), seed, "median of the ratios within blocks")
    unpaired = len(variant) + len(baseline) - 2 * len(blocks)
    if unpaired:
        left_out = f"left out: {unpaired} trial{'s' if unpaired > 1 else ''} without a partner in the block"
        ratio = ratio.model_copy(update={"note": f"{ratio.note}; {left_out}" if ratio.note else left_out})
    permuted = None
    if permutation.smallest_p_within_blocks(len(blocks)) * family <= ALPHA:
        permuted = permutation.within_blocks(logs, seed)
    elif permutation.smallest_p_over_all(len(variant), len(baseline)) * family <= ALPHA:
        permuted = permutation.over_all(np.array(list(variant.values())), np.array(list(baseline.values())), seed)
    return Ratio(ratio, pivot, float(pivot.p_value()) if pivot else None, permuted)


def compare_unpaired(variant: Sequence[float], baseline: Sequence[float], seed: int, family: int) -> Ratio:
    """Return the ratio from logarithms of trials that share no blocks, such as those of two runs, at least one on each side.

    What differs between the runs as wholes is in the ratio: nothing cancels it.
    """
    ratio, pivot = estimate_ratio(variant, baseline, seed, "ratio of the medians of the trials")
    permuted = None
    if permutation.smallest_p_over_all(len(variant), len(baseline)) * family <= ALPHA:
        permuted = permutation.over_all(np.array(variant), np.array(baseline), seed)
    return Ratio(ratio, pivot, float(pivot.p_value()) if pivot else None, permuted)


def stated_ratio(ratio: Ratio) -> Estimate:
    """Return the ratio as it is reported: a wide interval that holds 1 is not stated; one that does not still shows which side is
    faster."""
    bounds = ratio.estimate.interval
    told_apart = bounds is not None and not bounds.low <= 1 <= bounds.high
    return ratio.estimate if told_apart else stated(ratio.estimate, ratio.pivot)


def inverse(ratio: Estimate) -> Estimate:
    """Return the same comparison seen from the other side."""
    return ratio.through(lambda value: 1 / value)


def differs_from_medians(ratio: Estimate, variant: Estimate, baseline: Estimate) -> str | None:
    """Return why the ratio is not the quotient of the medians that are shown with it, where that is to be seen; else None."""
    quotient = variant.value / baseline.value
    if abs(math.log(quotient / ratio.value)) <= math.log(EQUIVALENCE):
        return None
    return (
        f"{number(ratio.value)}x is the median of {ratio.n} ratios, each between trials of the same block, which a slow period of the "
        f"machine slows alike; the medians of all trials, shown in the table, have the ratio {number(quotient)}x"
    )


def verdict(ratio: Ratio, p_value: float | None, floor: NoiseFloor | None) -> Verdict:
    """Judge a ratio by its Holm-corrected p value.

    better, worse: distinguished from 1; and, where the A/A pair was distinguished too, larger than what that shows. no
    difference shown: the whole interval lies inside 5 %, and so not on a machine too noisy to tell. undecided:
    anything else.
    """
    if p_value is None or ratio.estimate.interval is None:
        return "undecided"
    if p_value <= ALPHA and not in_doubt(ratio.estimate, floor):
        return "better" if ratio.log > 0 else "worse"
    interval = ratio.estimate.interval
    tight = interval.low >= 1 / EQUIVALENCE and interval.high <= EQUIVALENCE
    return "no difference shown" if tight else "undecided"


def outcomes(ratios: Mapping[_Pair, Ratio], floor: NoiseFloor | None) -> dict[_Pair, Outcome]:
    """Judge comparisons of a fixed number of trials, corrected over all of them together."""
    held = permutation.holm([ratio.p_value for ratio in ratios.values()])
    permuted = permutation.holm([ratio.permutation_p_value for ratio in ratios.values()])
    found: dict[_Pair, Outcome] = {}
    for (pair, ratio), p_value, permutation_p_value in zip(ratios.items(), held, permuted, strict=True):
        reached = verdict(ratio, p_value, floor)
        stated_one = stated_ratio(ratio)
        more, reason = None, None
        if reached == "undecided":
            more, reason = more_trials(ratio, len(ratios)), why_undecided(stated_one, floor, len(ratios))
        found[pair] = Outcome(stated_one, reached, p_value, permutation_p_value, more, reason)
    return found


def in_doubt(ratio: Estimate, floor: NoiseFloor | None) -> bool:
    """Return whether the A/A pair differs significantly, and this ratio is not larger than its difference."""
    return floor is not None and floor.alarm and abs(math.log(ratio.value)) <= math.log(floor.smallest_ratio)


def why_undecided(ratio: Estimate, floor: NoiseFloor | None, family: int) -> str | None:
    """Return why a ratio is undecided, where its interval does not show it: the A/A pair, or the comparisons that it is one of."""
    if floor is not None and in_doubt(ratio, floor):
        return f"the A/A pair, which is the same, differs by {number(floor.smallest_ratio)}x"
    if ratio.interval is None or ratio.interval.low <= 1 <= ratio.interval.high:
        return None
    return f"clear alone, but not as one of {family} comparisons" if family > 1 else None


def more_trials(ratio: Ratio, family: int) -> int | None:
    """Estimate how many more trials of each would decide, if ratio and spread stay as seen; None if over a thousand.

    Decided is: the interval, corrected for the family, narrower than the difference seen; or else the whole interval
    inside the 5 % margin, whichever takes fewer trials.
    """
    n = ratio.estimate.n
    if n < MIN_TRIALS:
        return FEW_TRIALS - n
    if ratio.pivot is None:
        return None
    spread = float(ratio.pivot.spread)
    trials = np.arange(n + 1, n + 1 + MAX_TRIALS)
    told_apart = expected_half_widths(spread, trials, ALPHA / family) <= abs(ratio.log)
    alike = expected_half_widths(spread, trials, ALPHA) <= math.log(EQUIVALENCE) - abs(ratio.log)
    decided = told_apart | alike
    return int(np.argmax(decided)) + 1 if decided.any() else None


def expected_smallest_ratio(ratio: Ratio, trials: int) -> float | None:
    """Return the smallest ratio that so many trials of each would be expected to tell from 1, were the spread as it is in
    `ratio`; None where that shows no spread."""
    if ratio.pivot is None:
        return None
    return math.exp(float(expected_half_widths(float(ratio.pivot.spread), np.array([trials]), ALPHA)[0]))
