"""Curves against simulated machines whose truth is known: how often knees, gains and the scalability law are right."""

import math
from collections import Counter

import numpy as np
import pytest

from curve_simulation import DOUBLING, curves, scalability_law, two_lines
from plinth.analyse.scaling import Levels, gains_end, holds_end, knee, scalability
from plinth.model.figures import Estimate
from plinth.model.sweep import Knee, ScalabilityFit

COUNT = 150


def slack(share: float) -> float:
    """Two and a half standard errors of a share as simulated."""
    return 2.5 * math.sqrt(share * (1 - share) / COUNT)


def covers(found: Estimate, truth: float) -> bool:
    assert found.interval is not None
    return found.interval.low <= truth <= found.interval.high


@pytest.mark.parametrize(
    ("values", "at", "cv", "trials", "drift"),
    [
        (DOUBLING, 11.0, 0.05, 5, 0.3),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (
                (DOUBLING, 11.0, 0.05, 3, 0.0),
                ((1.0, 4.0, 16.0, 32.0, 90.0), 11.0, 0.05, 5, 0.0),
                ((1.0, 2.0, 4.0, 8.0), 3.0, 0.05, 4, 0.1),
            )
        ),
    ],
)
def test_the_interval_of_a_knee_holds_its_place(
    values: tuple[float, ...], at: float, cv: float, trials: int, drift: float
) -> None:
    found = [
        knee(one) for one in curves(two_lines(at), values, cv=cv, trials=trials, count=COUNT, seed=31, drift=drift)
    ]
    bends = [one for one in found if isinstance(one, Knee)]
    assert len(bends) >= 0.95 * COUNT, "so clear a bend is found"
    coverage = sum(covers(one.at, at) for one in bends) / len(bends)
    assert 0.93 - slack(0.93) <= coverage <= 0.97 + slack(0.97)


def test_a_straight_line_is_rarely_taken_for_a_bent_one() -> None:
    straight = two_lines(1.0, after=0.6)
    found = [knee(one) for one in curves(straight, DOUBLING, cv=0.05, trials=5, count=COUNT, seed=32)]
    assert sum(isinstance(one, Knee) for one in found) / COUNT <= 0.05 + slack(0.05)


def test_a_fall_begins_at_a_knee_too_and_a_bend_upwards_is_none() -> None:
    (falling,) = curves(two_lines(1e5, 0.0, -0.7), (1e3, 1e4, 3e4, 3e5, 1e6), cv=0.02, trials=5, count=1, seed=33)
    found = knee(falling)
    assert isinstance(found, Knee)
    assert covers(found.at, 1e5)
    assert abs(found.slope_before) < 0.1 and found.slope_after == pytest.approx(-0.7, abs=0.1)
    (rising,) = curves(two_lines(8.0, 0.1, 0.9), DOUBLING, cv=0.02, trials=5, count=1, seed=33)
    assert knee(rising) == (
        "no knee shown: throughput does not bend downwards within these levels, as far as the noise lets see"
    )


def test_a_level_of_zero_is_no_obstacle() -> None:
    (fill,) = curves(lambda x: 1000 * math.exp(-8 * max(0, x - 0.6)), (0.0, 0.3, 0.5, 0.8, 0.95), cv=0.02, trials=5, count=1, seed=34)  # fmt: skip
    found = knee(fill)
    assert isinstance(found, Knee) and covers(found.at, 0.6)


def test_what_is_too_little_for_a_knee_says_so() -> None:
    (three,) = curves(two_lines(2.0), (1.0, 2.0, 4.0), cv=0.05, trials=5, count=1, seed=35)
    assert knee(three) == "a knee needs at least 4 levels; there are 3"
    (few,) = curves(two_lines(2.0), DOUBLING, cv=0.05, trials=2, count=1, seed=35)
    assert knee(few) == "a knee needs at least 3 counted trials of each level; one has 2"
    (same,) = curves(two_lines(2.0), DOUBLING, cv=0.0, trials=3, count=1, seed=35)
    assert knee(same) == "a knee needs trials that differ, to judge the noise by; those of one level are all the same"
    assert scalability(three) == "the scalability law needs at least 4 levels; there are 3"


def test_that_nothing_more_is_gained_is_rarely_said_where_something_is() -> None:
    """Throughput is level but for the last step, which gains 10 %: claims about the top are false."""
    truth = two_lines(8.0)
    step = lambda x: truth(x) * (1.1 if x == DOUBLING[-1] else 1.0)  # noqa: E731
    ends = [gains_end(one) for one in curves(step, DOUBLING, cv=0.03, trials=5, count=COUNT, seed=36)]
    assert sum(end is not None for end in ends) / COUNT <= 0.05


def test_the_level_above_which_nothing_is_gained_is_found() -> None:
    truth = two_lines(8.0)
    ends = Counter(gains_end(one) for one in curves(truth, DOUBLING, cv=0.01, trials=5, count=50, seed=37))
    assert ends[DOUBLING.index(8.0)] >= 45, ends
    falls = two_lines(8.0, 0.0, -0.9)
    held = Counter(holds_end(one) for one in curves(falls, DOUBLING, cv=0.01, trials=5, count=50, seed=38))
    assert held[DOUBLING.index(8.0)] >= 45, held


def test_ratios_along_a_curve_cover_and_turn_round() -> None:
    truth = two_lines(8.0)
    found = [one.ratio(3, 0) for one in curves(truth, DOUBLING, cv=0.05, trials=5, count=COUNT, seed=39, drift=0.3)]
    coverage = sum(covers(one, truth(8) / truth(1)) for one in found if one) / COUNT
    assert 0.93 - slack(0.93) <= coverage <= 0.97 + slack(0.97)
    (one,) = curves(truth, DOUBLING, cv=0.05, trials=5, count=1, seed=40)
    there, back = one.ratio(3, 0), one.ratio(0, 3)
    assert there and back and there.interval and back.interval
    assert there.interval.low == pytest.approx(1 / back.interval.high)


def test_the_parameters_of_the_scalability_law_are_covered() -> None:
    values = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    fits = [
        scalability(one)
        for one in curves(scalability_law(0.06, 0.001), values, cv=0.05, trials=5, count=COUNT, seed=41, drift=0.2)
    ]
    known = [fit for fit in fits if isinstance(fit, ScalabilityFit)]
    assert len(known) == COUNT
    assert sum(fit.holds for fit in known) / COUNT >= 0.93
    assert min(fit.r_squared for fit in known) > 0.9
    for truth, of in ((0.06, "contention"), (0.001, "coherency")):
        coverage = sum(covers(getattr(fit, of), truth) for fit in known) / COUNT
        assert 0.93 - slack(0.93) <= coverage <= 0.97 + slack(0.97), of
    peaks = [fit.peak_clients for fit in known if fit.peak_clients is not None]
    assert np.median(peaks) == pytest.approx(math.sqrt(0.94 / 0.001), rel=0.1)


def test_where_the_law_does_not_hold_that_is_said_with_the_level() -> None:
    """A curve that is level from 8 clients on, at once, is not what contention and coherency make."""
    (levelling,) = curves(two_lines(4.0, before=1.0), DOUBLING, cv=0.01, trials=5, count=1, seed=42)
    fit = scalability(levelling)
    assert isinstance(fit, ScalabilityFit) and not fit.holds
    assert fit.reason is not None and "than the law gives, which noise does not explain" in fit.reason
    superlinear = Levels((1.0, 2.0, 4.0, 8.0), tuple({b: math.log(1000 * v**2) + 0.01 * b for b in range(3)} for v in (1, 2, 4, 8)), 1)  # fmt: skip
    fit = scalability(superlinear)
    # What blocks share is taken out, and here it is all of the noise.
    assert isinstance(fit, str) and "are all the same" in fit
