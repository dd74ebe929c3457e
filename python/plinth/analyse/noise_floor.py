"""Noise of fixed work: what two sides that are the same differ by, and what that leaves to be shown."""

import math
from collections.abc import Mapping

from plinth.analyse.bootstrap import estimate, stated
from plinth.analyse.comparison import ALPHA, compare, expected_smallest_ratio, stated_ratio
from plinth.model.doctor import ExpectedRatio, WorkNoise

REPEATS = (3, 5, 10, 20)


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
