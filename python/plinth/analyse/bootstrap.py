"""Intervals for the centre of a few values: a smoothed, symmetric bootstrap-t.

The plain percentile bootstrap of a median resamples only values that were seen: of five trials it gives
an interval that holds the truth far less often than it says. Here each resample is drawn from the trials
blurred by a normal kernel (Silverman and Young 1987), and what is bootstrapped is the studentised
distance of its centre (Efron and Tibshirani 1993, chapter 12; for quantiles: Ho and Lee 2005). The interval
is symmetric about the estimate (Hall 1988). docs/concepts/statistics.md has the measured coverage.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from plinth.model.figures import Estimate, Interval

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Maps values of shape (..., n) to their centres of shape (...)."""

LEVEL = 0.95
RESAMPLES = 20_000
MAX_TRIALS = 1000
"""The largest number of trials that is advised."""
MIN_TRIALS = 3
WIDEST = 10.0
"""Upper over lower bound from which on an interval is not stated: not even the order of magnitude is known."""
_SHORT_ROW = 64
"""The number of values up to which sorting a row is faster than partitioning it."""
METHOD = "95 % interval by a smoothed bootstrap-t on the log scale"


def median(values: Floats) -> Floats:
    """Return medians along the last axis, as `numpy.median` has them, which takes three times as long. No NaN."""
    n = values.shape[-1]
    middle = (max(0, n // 2 - 1), n // 2)
    ordered = np.partition(values, middle, axis=-1) if n > _SHORT_ROW else np.sort(values, axis=-1)
    upper = ordered[..., n // 2]
    return upper if n % 2 else (ordered[..., n // 2 - 1] + upper) / 2


@dataclass(frozen=True)
class Draws:
    """The random part of a bootstrap of n values, kept apart so that every comparison may share it.

    Each row is there twice: once as drawn, once mirrored in order and in sign. So negating the values
    (exchanging the sides of a ratio) negates the estimate and keeps the interval's width, exactly.
    """

    index: NDArray[np.intp]
    noise: Floats


@lru_cache(maxsize=32)
def draws(n: int, seed: int, resamples: int = RESAMPLES) -> Draws:
    """Return `resamples` rows of n positions and n standard normal numbers; a function of its arguments alone."""
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
        """Return half the width of the interval centre -+ half_width at `level`."""
        return np.quantile(self.strays, level, axis=-1) * self.spread

    def p_value(self) -> Floats:
        """Return the two-sided p of "the truth is 0": the smallest 1 - level whose interval leaves 0 out. Never 0."""
        seen = np.abs(self.centre) / self.spread
        beyond = np.count_nonzero(self.strays >= seen[..., np.newaxis], axis=-1)
        return (1 + beyond) / (1 + self.strays.shape[-1])


def bootstrap(values: Floats, drawn: Draws, statistic: Statistic = median) -> Pivot:
    """Return the pivot of `statistic` for values of shape (..., n), n >= 2 and not all equal.

    Kernel width: Silverman's rule of thumb, 0.9 s n^(-1/5). The resampled statistics are centred at their own
    median, which for a sample median of odd n is the median of the blurred distribution.
    """
    values = np.sort(values, axis=-1)
    errors, spreads = _resampled(values, drawn, statistic)
    return Pivot(statistic(values), values.std(axis=-1, ddof=1), np.abs(errors) / spreads)


def bootstrap_difference(first: Floats, second: Floats, drawn: tuple[Draws, Draws]) -> Pivot:
    """Return the pivot of the difference of two medians, of independent values of shapes (n,) and (m,), not all equal in both.

    The draws must be independent of each other. The spread is scaled as that of min(n, m) values (Welch): for n = m it is
    sqrt(s1^2 + s2^2).
    """
    sides = (np.sort(first), np.sort(second))
    n = min(len(first), len(second))
    weights = [n / len(side) for side in sides]
    errors, spreads = zip(*(_resampled(side, one, median) for side, one in zip(sides, drawn, strict=True)), strict=True)

    def joint(of_first: Floats, of_second: Floats) -> Floats:
        return np.sqrt(weights[0] * of_first**2 + weights[1] * of_second**2)

    spread = joint(sides[0].std(ddof=1), sides[1].std(ddof=1))
    return Pivot(median(sides[0]) - median(sides[1]), spread, np.abs(errors[0] - errors[1]) / joint(*spreads))


def _resampled(values: Floats, drawn: Draws, statistic: Statistic) -> tuple[Floats, Floats]:
    """Return, of each resample of sorted values, the signed distance of its centre from their median, and its standard deviation."""
    n = values.shape[-1]
    width = 0.9 * values.std(axis=-1, ddof=1) * n**-0.2
    # What follows is most of an analysis: done in place, and with sums by einsum, it takes half the time.
    resampled = width[..., np.newaxis, np.newaxis] * drawn.noise
    resampled += np.take(values, drawn.index, axis=-1)
    centres = statistic(resampled)
    resampled -= np.einsum("...i->...", resampled)[..., np.newaxis] / n
    spreads = np.sqrt(np.einsum("...i,...i->...", resampled, resampled) / (n - 1))
    return centres - median(centres)[..., np.newaxis], spreads


def estimate(logs: Sequence[float], seed: int, method: str) -> tuple[Estimate, Pivot | None]:
    """Return exp of the median of `logs` (n >= 1) with its interval, and the pivot; None for both where n is too small.

    For an even number of values the median is the geometric mean of the middle two.
    """
    return _estimate(tuple(logs), seed, method)


@lru_cache(maxsize=64)
def _estimate(logs: tuple[float, ...], seed: int, method: str) -> tuple[Estimate, Pivot | None]:
    """Return what `estimate` does; cached, since several parts of an analysis use the same figure of the same trials."""
    values = np.asarray(logs, dtype=np.float64)
    n = len(values)
    value = float(np.exp(median(values)))
    if n < MIN_TRIALS:
        return _too_few(value, n, method, ""), None
    if _is_constant(values):
        note = f"no interval: all {n} trials gave the same figure, which shows no spread to judge by"
        return Estimate(value=value, interval=None, n=n, method=method, note=note), None
    pivot = bootstrap(values, draws(n, seed))
    return _with_interval(value, pivot, n, method), pivot


def estimate_ratio(
    logs: Sequence[float], base_logs: Sequence[float], seed: int, method: str
) -> tuple[Estimate, Pivot | None]:
    """Return exp of the difference of the medians of two independent groups (n >= 1 each), as `estimate` gives the median of one."""
    first, second = np.asarray(logs, dtype=np.float64), np.asarray(base_logs, dtype=np.float64)
    n = min(len(first), len(second))
    value = float(np.exp(median(first) - median(second)))
    if n < MIN_TRIALS:
        return _too_few(value, n, method, " on either side"), None
    if _is_constant(first) and _is_constant(second):
        note = "no interval: the trials of either side gave the same figure, which shows no spread to judge by"
        return Estimate(value=value, interval=None, n=n, method=method, note=note), None
    pivot = bootstrap_difference(first, second, (draws(len(first), seed), draws(len(second), seed + 1)))
    return _with_interval(value, pivot, n, method), pivot


def _too_few(value: float, n: int, method: str, where: str) -> Estimate:
    note = f"not enough trials for an interval: it needs at least {MIN_TRIALS}{where}, not {n}"
    return Estimate(value=value, interval=None, n=n, method=method, note=note, more_trials=MIN_TRIALS - n)


def _is_constant(values: Floats) -> bool:
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


def _with_interval(value: float, pivot: Pivot, n: int, method: str) -> Estimate:
    factor = float(np.exp(pivot.half_width()))
    interval = Interval(low=value / factor, high=value * factor, level=LEVEL)
    return Estimate(value=value, interval=interval, n=n, method=f"{method}; {METHOD}")


def stated(found: Estimate, pivot: Pivot | None) -> Estimate:
    """Return the estimate as it is reported: without an interval that is wider than WIDEST, and with how many trials it takes."""
    if found.interval is None or pivot is None or _is_narrow(found.interval):
        return found
    apart = found.interval.high / found.interval.low if found.interval.low > 0 else math.inf
    factor = f"{apart:,.0f}" if apart < 1000 else "more than 1,000"
    trials = np.arange(found.n + 1, found.n + 1 + MAX_TRIALS)
    enough = expected_half_widths(float(pivot.spread), trials, 1 - LEVEL) <= math.log(WIDEST) / 2
    more = int(np.argmax(enough)) + 1 if enough.any() else MAX_TRIALS
    note = f"not enough trials: {found.n} that differ so much give an interval that spans a factor of {factor}"
    note = f"{found.note}; {note}" if found.note else note
    return found.model_copy(update={"interval": None, "note": note, "more_trials": more})


def _is_narrow(interval: Interval) -> bool:
    return interval.low > 0 and interval.high <= WIDEST * interval.low


def expected_half_widths(spread: float, trials: NDArray[np.int_], alpha: float) -> Floats:
    """Return expected half-widths, of logarithms, for these numbers of trials: Student's t times the standard error of a normal's
    median."""
    from scipy.special import stdtrit

    return math.sqrt(math.pi / 2) * stdtrit(trials - 1, 1 - alpha / 2) * spread / np.sqrt(trials)


def of_trials(values: Sequence[float], seed: int) -> Estimate:
    """Return the median of a figure of each trial with its interval; none where one of them is 0, which has no logarithm."""
    return stated(*of_trials_in_full(values, seed))


def of_trials_in_full(values: Sequence[float], seed: int) -> tuple[Estimate, Pivot | None]:
    """Return the same as `of_trials`, with an interval however wide it is, and its pivot."""
    method = "median of the trials"
    if all(value > 0 for value in values):
        return estimate([float(np.log(value)) for value in values], seed, method)
    value = float(median(np.asarray(values, dtype=np.float64)))
    note = "no interval: in some trials it was 0"
    return Estimate(value=value, interval=None, n=len(values), method=method, note=note), None
