"""Intervals for the centre of a few values: a smoothed, symmetric bootstrap-t.

The plain percentile bootstrap of a median resamples only values that were seen: of five trials it gives
an interval that holds the truth far less often than it says. Here each resample is drawn from the trials
blurred by a normal kernel (Silverman and Young 1987), and what is bootstrapped is the studentised
distance of its centre (Efron and Tibshirani 1993, chapter 12; for quantiles: Ho and Lee 2005). The interval
is symmetric about the estimate (Hall 1988). docs/concepts/statistics.md has the measured coverage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from plinth.model.estimate import Estimate, Interval

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Maps values of shape (..., n) to their centres of shape (...)."""

LEVEL = 0.95
RESAMPLES = 20_000
MIN_TRIALS = 3
METHOD = "95% interval by a smoothed bootstrap-t on the log scale"


def median(values: Floats) -> Floats:
    """Medians along the last axis."""
    return np.median(values, axis=-1)


@dataclass(frozen=True)
class Draws:
    """The random part of a bootstrap of n values, kept apart so that every comparison may share it.

    Each row stands twice: once as drawn, once mirrored in order and in sign. So negating the values
    (exchanging the sides of a ratio) negates the estimate and keeps the interval's width, exactly.
    """

    index: NDArray[np.intp]
    noise: Floats


@lru_cache(maxsize=32)
def draws(n: int, seed: int, resamples: int = RESAMPLES) -> Draws:
    """`resamples` rows of n positions and n standard normal numbers; a function of its arguments alone."""
    rng = np.random.default_rng((seed, n))
    index = rng.integers(0, n, (resamples // 2, n))
    noise = rng.standard_normal((resamples // 2, n))
    return Draws(np.concatenate((index, n - 1 - index)), np.concatenate((noise, -noise)))


@dataclass(frozen=True)
class Pivot:
    """A centre, its spread, and how far, in spreads, such a centre strays from the truth.

    `centre` and `spread` have shape (...), `strays` shape (..., resamples): bootstrapped |centre - truth| / spread.
    """

    centre: Floats
    spread: Floats
    strays: Floats

    def half_width(self, level: float = LEVEL) -> Floats:
        """Half the width of the interval centre -+ half_width at `level`."""
        return np.quantile(self.strays, level, axis=-1) * self.spread

    def p_value(self) -> Floats:
        """Two-sided p of "the truth is 0": the smallest 1 - level whose interval leaves 0 out. Never 0."""
        seen = np.abs(self.centre) / self.spread
        beyond = np.count_nonzero(self.strays >= seen[..., np.newaxis], axis=-1)
        return (1 + beyond) / (1 + self.strays.shape[-1])


def bootstrap(values: Floats, drawn: Draws, statistic: Statistic = median) -> Pivot:
    """The pivot of `statistic` for values of shape (..., n), n >= 2 and not all equal.

    Kernel width: Silverman's rule of thumb, 0.9 s n^(-1/5). The resampled statistics are centred at their own
    median, which for a sample median of odd n is the median of the blurred distribution.
    """
    values = np.sort(values, axis=-1)
    spread = values.std(axis=-1, ddof=1)
    width = 0.9 * spread * values.shape[-1] ** -0.2
    resampled = values[..., drawn.index] + width[..., np.newaxis, np.newaxis] * drawn.noise
    centres = statistic(resampled)
    strays = np.abs(centres - median(centres)[..., np.newaxis]) / resampled.std(axis=-1, ddof=1)
    return Pivot(statistic(values), spread, strays)


def estimate(logs: Sequence[float], seed: int, method: str) -> tuple[Estimate, Pivot | None]:
    """exp of the median of `logs` (n >= 1) with its interval, and the pivot; None for both where n is too small.

    For an even number of values the median is the geometric mean of the middle two.
    """
    values = np.asarray(logs, dtype=np.float64)
    n = len(values)
    value = float(np.exp(median(values)))
    if n < MIN_TRIALS:
        note = f"no interval: it needs at least {MIN_TRIALS} trials, not {n}"
        return Estimate(value=value, interval=None, n=n, method=method, note=note), None
    if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        note = f"no interval: all {n} trials gave the same figure, which shows no spread to judge by"
        return Estimate(value=value, interval=None, n=n, method=method, note=note), None
    pivot = bootstrap(values, draws(n, seed))
    factor = float(np.exp(pivot.half_width()))
    interval = Interval(low=value / factor, high=value * factor, level=LEVEL)
    return Estimate(value=value, interval=interval, n=n, method=f"{method}; {METHOD}"), pivot


def of_trials(values: Sequence[float], seed: int) -> Estimate:
    """The median of a figure of each trial with its interval; none where one of them is 0, which has no logarithm."""
    method = "median of the trials"
    if all(value > 0 for value in values):
        return estimate([float(np.log(value)) for value in values], seed, method)[0]
    note = "no interval: in some trials it was 0"
    return Estimate(value=float(np.median(values)), interval=None, n=len(values), method=method, note=note)
