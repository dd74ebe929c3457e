"""Throughput over the levels of a numeric factor: up to where it is gained, where the curve bends, and by what law.

Everything rests on the trials' logarithms with what a whole block shares taken out. `docs/concepts/statistics.md` has the methods
and how often their intervals held the truth in simulation.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plinth.analyse.bootstrap import LEVEL, MIN_TRIALS, Floats, median
from plinth.analyse.comparison import ALPHA, EQUIVALENCE, compare, inverse, stated_ratio
from plinth.analyse.simultaneous import LogsByBlock, without_blocks
from plinth.model.figures import Estimate, Interval, percent
from plinth.model.sweep import Knee, ScalabilityFit
from plinth.model.units import format_count

RESAMPLES = 2000
PLACES = 49
"""Places of a bend that are tried, evenly spaced on the axis."""
LEAST_LEVELS = 4
"""Of a bend and of the scalability law: both have three parameters or more."""
OFF = 0.10
"""How far a level may lie from the scalability law before that is said not to hold, where noise does not explain it."""


@dataclass(frozen=True)
class Levels:
    """A curve: `values` of the factor, ascending, and log(tps) of the counted trials at each, by block."""

    values: tuple[float, ...]
    logs: tuple[LogsByBlock, ...]
    seed: int

    @property
    def fewest(self) -> int:
        """Trials of the level that has fewest."""
        return min(len(one) for one in self.logs)

    @cached_property
    def places(self) -> Floats:
        """The positions of the levels on the axis on which a bend is looked for: logarithms, where there is no level 0."""
        values = np.array(self.values)
        return np.log(values) if values.min() > 0 else values

    def back(self, place: float) -> float:
        """Return the value of the factor at a place of that axis."""
        return math.exp(place) if min(self.values) > 0 else place

    @cached_property
    def adjusted(self) -> tuple[Floats, ...]:
        """The logarithms without what their blocks share."""
        return without_blocks(self.logs)

    @cached_property
    def medians(self) -> Floats:
        """The median of each level, adjusted."""
        return np.array([float(median(one)) for one in self.adjusted])

    @cached_property
    def errors(self) -> Floats:
        """How far medians of resampled trials stray from the level's: shape (RESAMPLES, levels).

        Smoothed as in `plinth.analyse.bootstrap`, and shrunk, so that a resampled trial has the trials' own variance
        (Silverman and Young 1987). Widened by what taking out the blocks took of it, and, since few trials tell their own
        variance badly, as Student's t is wider than the normal distribution.
        """
        from scipy.special import ndtri, stdtrit

        count = len(self.logs)
        freedom = sum(len(one) - 1 for one in self.logs)
        student = float(stdtrit(freedom, (1 + LEVEL) / 2) / ndtri((1 + LEVEL) / 2))
        rng = np.random.default_rng((self.seed, count))
        columns: list[Floats] = []
        for one in self.adjusted:
            n, centred = len(one), (one - one.mean()) * math.sqrt(count / (count - 1))
            width = 0.9 * n**-0.2
            drawn = centred[rng.integers(0, n, (RESAMPLES, n))]
            noise = width * centred.std(ddof=1) * rng.standard_normal((RESAMPLES, n))
            columns.append(student * median((drawn + noise) / math.sqrt((n - 1) / n + width**2)))
        return np.stack(columns, axis=1)

    def ratio(self, over: int, under: int) -> Estimate | None:
        """Return the throughput at one level over that at another, within blocks; None where no block has both."""
        if over < under:
            found = self.ratio(under, over)
            return found and inverse(found)
        if (over, under) not in self._ratios:
            found = compare(dict(self.logs[over]), dict(self.logs[under]), self.seed, family=1)
            self._ratios[over, under] = found and stated_ratio(found)
        return self._ratios[over, under]

    @cached_property
    def _ratios(self) -> dict[tuple[int, int], Estimate | None]:
        """Those that were asked for."""
        return {}


def gains_end(levels: Levels) -> int | None:
    """Return the lowest level above which nothing is gained: no higher one is faster by more than 5 %, at 95 % confidence each.

    From the top downwards, a claim is made only while all those above it hold, which keeps the chance of any false one at
    that of one (a fixed sequence; each claim is an intersection-union test). None where not even the last step is decided.
    """
    last = len(levels.values) - 1
    found = None
    for low in range(last - 1, -1, -1):
        if not all(_gains_little(levels.ratio(high, low)) for high in range(low + 1, last + 1)):
            break
        found = low
    return found


def holds_end(levels: Levels) -> int | None:
    """Return the highest level up to which throughput holds: no lower one is faster by more than 5 %; see `gains_end`."""
    found = None
    for high in range(1, len(levels.values)):
        if not all(_gains_little(levels.ratio(low, high)) for low in range(high)):
            break
        found = high
    return found


def _gains_little(ratio: Estimate | None) -> bool:
    return ratio is not None and ratio.interval is not None and ratio.interval.high <= EQUIVALENCE


def knee(levels: Levels) -> Knee | str:
    """Find where a rise slows down, or a fall begins: the bend of two lines through the medians, log over log; or why there is none.

    The interval of its place is the percentile interval of the bends of resampled medians. It is said only where one
    straight line is refuted: where its misfit, less that of the bent one, is more than in 95 % of resamples from that line.
    """
    reason = _why_not(levels, "a knee")
    if reason is not None:
        return reason
    places = np.linspace(levels.places[1], levels.places[-2], PLACES)
    bent = [_Line(np.stack((np.ones_like(x := levels.places), x, np.maximum(x - at, 0)), axis=1)) for at in places]
    straight = _Line(np.stack((np.ones_like(levels.places), levels.places), axis=1))

    def misfits(medians: Floats) -> Floats:
        return np.stack([line.misfit(medians) for line in bent], axis=-1)

    observed = misfits(levels.medians)
    best = int(observed.argmin())
    _, before, change = bent[best].parameters(levels.medians)
    gain = float(straight.misfit(levels.medians) - observed[best])
    null = straight.fitted(levels.medians) + levels.errors
    by_chance = straight.misfit(null) - misfits(null).min(axis=-1)
    p_value = (1 + int(np.count_nonzero(by_chance >= gain))) / (1 + RESAMPLES)
    if p_value > ALPHA or change >= 0:
        return "no knee shown: throughput does not bend downwards within these levels, as far as the noise lets see"
    found = places[misfits(levels.medians + levels.errors).argmin(axis=-1)]
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    at_end = [text for text, bound, end in (("low", low, places[0]), ("high", high, places[-1])) if bound == end]
    note = f"the interval ends at the {' and the '.join(at_end)} end of where two lines can bend" if at_end else None
    return Knee(
        at=Estimate(
            value=levels.back(float(places[best])),
            interval=Interval(low=levels.back(float(low)), high=levels.back(float(high)), level=LEVEL),
            n=levels.fewest,
            method="bend of two lines through the medians; 95 % percentile interval of a smoothed bootstrap over trials",
            note=note,
        ),
        slope_before=float(before),
        slope_after=float(before + change),
        p_value=p_value,
    )


class _Line:
    """Least squares of medians on the columns of a design."""

    def __init__(self, design: Floats) -> None:
        self._design = design
        self._solve = np.linalg.pinv(design)
        self._residual = np.eye(len(design)) - design @ self._solve

    def parameters(self, medians: Floats) -> Floats:
        return self._solve @ medians

    def fitted(self, medians: Floats) -> Floats:
        return self._design @ (self._solve @ medians)

    def misfit(self, medians: Floats) -> Floats:
        """Return the sum of squares; medians have shape (..., levels)."""
        residual = medians @ self._residual
        return np.einsum("...i,...i->...", residual, residual)


def _why_not(levels: Levels, what: str) -> str | None:
    if len(levels.values) < LEAST_LEVELS:
        return f"{what} needs at least {LEAST_LEVELS} levels; there are {len(levels.values)}"
    if levels.fewest < MIN_TRIALS:
        return f"{what} needs at least {MIN_TRIALS} counted trials of each level; one has {levels.fewest}"
    if any(np.ptp(one) <= 1e-12 for one in levels.adjusted):
        return f"{what} needs trials that differ, to judge the noise by; those of one level are all the same"
    return None


def scalability(levels: Levels) -> ScalabilityFit | str:
    """Fit the Universal Scalability Law, X(N) = l N / (1 + s (N - 1) + k N (N - 1)), through the medians; or why there is none.

    Gunther 2007. N / X is linear in 1/l, s/l and k/l, none below 0; each level is weighted so that its relative error counts.
    """
    reason = _why_not(levels, "the scalability law")
    if reason is not None:
        return reason
    clients = np.array(levels.values)
    rate, contention, coherency = _law(clients, levels.medians[np.newaxis])[0]
    spread = _law(clients, levels.medians + levels.errors)
    measured = np.exp(levels.medians)
    fitted = law(clients, rate, contention, coherency)
    off = measured / fitted - 1
    worst = int(np.abs(off).argmax())
    noise = 2 * float(levels.errors[:, worst].std())
    holds = abs(float(off[worst])) <= max(OFF, math.expm1(noise))
    squares = float(((measured - fitted) ** 2).sum() / ((measured - measured.mean()) ** 2).sum())

    def stated(value: float, resampled: Floats) -> Estimate:
        low, high = (float(bound) for bound in np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
        method = "Universal Scalability Law; 95 % percentile interval of a smoothed bootstrap over trials"
        return Estimate(value=value, interval=Interval(low=low, high=high), n=levels.fewest, method=method)

    peak = math.sqrt((1 - contention) / coherency) if coherency > 0 and contention < 1 else None
    return ScalabilityFit(
        one_client_per_s=stated(float(rate), spread[:, 0]),
        contention=stated(float(contention), spread[:, 1]),
        coherency=stated(float(coherency), spread[:, 2]),
        peak_clients=peak if peak is not None and peak <= clients[-1] else None,
        r_squared=1 - squares,
        largest_error=float(off[worst]),
        holds=holds,
        reason=None
        if holds
        else f"at {format_count(int(clients[worst]), 'client')} {percent(abs(float(off[worst])), 0)} "
        f"{'more' if off[worst] > 0 else 'less'} was measured than the law gives, which noise does not explain",
    )


def law(clients: Floats, rate: Floats | float, contention: Floats | float, coherency: Floats | float) -> Floats:
    """Return throughput by the Universal Scalability Law."""
    return rate * clients / (1 + contention * (clients - 1) + coherency * clients * (clients - 1))


def _law(clients: Floats, medians: Floats) -> Floats:
    """Fit (rate, contention, coherency) to medians of shape (..., levels): of the fits on every subset of the terms, the best
    without a negative one."""
    per_client = np.exp(medians) / clients
    scale = float(clients[-1])
    terms = np.stack((np.ones_like(clients), (clients - 1) / scale, clients * (clients - 1) / scale**2), axis=-1)
    design = per_client[..., np.newaxis] * terms
    best = np.zeros((*medians.shape[:-1], 3))
    least = np.full(medians.shape[:-1], np.inf)
    for kept in ([0], [0, 1], [0, 2], [0, 1, 2]):
        part = design[..., kept]
        normal = np.einsum("...li,...lj->...ij", part, part)
        found = np.linalg.solve(normal, part.sum(axis=-2)[..., np.newaxis])[..., 0]
        misfit = ((np.einsum("...li,...i->...l", part, found) - 1) ** 2).sum(axis=-1)
        better = (found >= 0).all(axis=-1) & (found[..., 0] > 0) & (misfit < least)
        whole = np.zeros_like(best)
        whole[..., kept] = found
        best = np.where(better[..., np.newaxis], whole, best)
        least = np.where(better, misfit, least)
    one, linear, square = np.moveaxis(best, -1, 0)
    return np.stack((1 / one, linear / one / scale, square / one / scale**2), axis=-1)
