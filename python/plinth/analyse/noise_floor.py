"""Noise floors: by how much two sides that are the same differ, in a run (its A/A pair) and in the doctor's fixed-work check."""

import math
from collections.abc import Mapping

from plinth.analyse.bootstrap import estimate, stated
from plinth.analyse.comparison import ALPHA, Ratio, compare, expected_smallest_ratio, stated_ratio
from plinth.model.analysis import NoiseFloor
from plinth.model.doctor import ExpectedRatio, WorkNoise

REPEATS = (3, 5, 10, 20)


def noise_floor(pair: Ratio) -> NoiseFloor | None:
    """Compute the noise floor of the A/A pair: half the width of its interval, or what the pair itself shows where that is more."""
    if pair.pivot is None or pair.p_value is None:
        return None
    smallest = math.exp(max(float(pair.pivot.half_width()), abs(pair.log)))
    return NoiseFloor(ratio=stated_ratio(pair), smallest_ratio=smallest, alarm=pair.p_value <= ALPHA)


def why_no_floor(pair: Ratio | None, *, has_twin: bool) -> str:
    """Return why `noise_floor` has nothing to say; `pair` is None where no block has a counted trial of both."""
    if not has_twin:
        return "no A/A pair was measured"
    if pair is None:
        return "no block has a counted trial of both sides of the A/A pair"
    return f"of its A/A pair: {pair.estimate.note}"


def work_noise(work: str, what: str, sides: tuple[Mapping[int, float], Mapping[int, float]], seed: int) -> WorkNoise:
    """Return the noise in how often a second some work was done, by block, on either side of each (at least one block)."""
    first, second = ({block: math.log(rate) for block, rate in side.items()} for side in sides)
    pair = compare(first, second, seed, family=1)
    assert pair is not None, "both sides are of the same blocks"
    rate = stated(*estimate([*first.values(), *second.values()], seed, "median of the slots"))
    expected = [(repeats, expected_smallest_ratio(pair, repeats)) for repeats in REPEATS]
    return WorkNoise(
        work=work,
        what=what,
        rate_per_s=rate,
        pair=stated_ratio(pair),
        told_apart=pair.p_value is not None and pair.p_value <= ALPHA,
        expected=tuple(ExpectedRatio(repeats=n, ratio=ratio) for n, ratio in expected if ratio is not None),
    )
