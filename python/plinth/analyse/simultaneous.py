"""Intervals of all ratios within sets of variants that hold together: the studentised maximum over all pairs, by bootstrap.

Tukey's honest differences for variants of unequal noise (Games and Howell 1976), with medians in place of means, and the
distribution of the largest of all studentised differences taken from a smoothed bootstrap (Westfall and Young 1993, chapter 2)
in place of the normal one. The chance that any interval of all sets misses its ratio is 5 %. docs/concepts/statistics.md has the
shares that were found in simulation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plinth.analyse.bootstrap import LEVEL, MIN_TRIALS, Floats, median
from plinth.model.figures import Interval

LogsByBlock = Mapping[int, float]
"""Logarithms of a figure of a variant's trials, by block."""


def without_blocks(logs: Sequence[LogsByBlock]) -> tuple[Floats, ...]:
    """Return the logarithms of each variant less, for each block, the mean of the deviations in it from the variants' means."""
    means = [float(np.mean(list(one.values()))) for one in logs]
    deviations: dict[int, list[float]] = {}
    for one, mean in zip(logs, means, strict=True):
        for block, log in one.items():
            deviations.setdefault(block, []).append(log - mean)
    shared = {block: float(np.mean(of_block)) for block, of_block in deviations.items()}
    return tuple(np.array([log - shared[block] for block, log in one.items()]) for one in logs)


RESAMPLES = 2000
MOST_PAIRS = 20_000
"""The work grows with the pairs: of 200 variants that are all compared with one another it takes about a second."""
GROUPS_EACH = 2
"""Letters for each variant at most."""


@dataclass(frozen=True)
class Together:
    """At least two variants to be compared: logarithms of their counted trials, at least MIN_TRIALS of each, by block."""

    logs: tuple[LogsByBlock, ...]

    def __post_init__(self) -> None:
        if len(self.logs) < 2 or any(len(one) < MIN_TRIALS for one in self.logs):
            raise ValueError(f"at least two variants of {MIN_TRIALS} trials each")

    @cached_property
    def adjusted(self) -> tuple[Floats, ...]:
        """The logarithms without what their blocks share.

        Of two variants, the differences within blocks, and nothing: half of what a block shares would be the noise itself.
        """
        common = self.logs[0].keys() & self.logs[1].keys()
        if len(self.logs) == 2 and len(common) >= MIN_TRIALS:
            first, second = self.logs
            return np.array([first[block] - second[block] for block in sorted(common)]), np.zeros(len(common))
        return without_blocks(self.logs)

    @cached_property
    def centres(self) -> Floats:
        """The median of each variant's adjusted logarithms."""
        return np.array([float(median(one)) for one in self.adjusted])

    @cached_property
    def _counts(self) -> Floats:
        return np.array([len(one) for one in self.adjusted], dtype=np.float64)

    @cached_property
    def _widened(self) -> tuple[Floats, ...]:
        """The adjusted logarithms about their means, as far apart as before the blocks' share was taken out of them."""
        count = len(self.logs)
        factor = math.sqrt(count / (count - 1)) if count > 2 else 1.0
        return tuple((one - one.mean()) * factor for one in self.adjusted)

    def spreads(self, place: int) -> Floats:
        """Return the spreads of the differences between the variant at `place` and those that follow it."""
        deviations = np.array([one.std(ddof=1) for one in self._widened])
        return self._joint(deviations, place)

    def largest(self, rng: np.random.Generator) -> Floats:
        """Return the largest studentised difference of all pairs in each resample, where there is none in truth: shape (RESAMPLES,)."""
        drawn = [_resampled(one, rng) for one in self._widened]
        errors = np.stack([error for error, _ in drawn], axis=1)
        deviations = np.stack([deviation for _, deviation in drawn], axis=1)
        most = np.zeros(RESAMPLES)
        for place in range(len(self.logs) - 1):
            spreads = self._joint(deviations, place)
            apart = np.abs(errors[:, place + 1 :] - errors[:, place : place + 1])
            studentised = np.divide(apart, spreads, out=np.zeros_like(apart), where=spreads > 0)
            np.maximum(most, studentised.max(axis=1), out=most)
        return most

    def _joint(self, deviations: Floats, place: int) -> Floats:
        """Return deviations of differences, as of min(n, m) trials (Welch): shape (..., variants after `place`)."""
        fewer = np.minimum(self._counts[place], self._counts[place + 1 :])
        of_one, of_others = fewer / self._counts[place], fewer / self._counts[place + 1 :]
        one, others = deviations[..., place : place + 1], deviations[..., place + 1 :]
        return np.sqrt(of_one * one**2 + of_others * others**2)


def _resampled(widened: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return how far medians of smoothed resamples stray from their own median, and the resamples' standard deviations."""
    n = len(widened)
    noise = 0.9 * widened.std(ddof=1) * n**-0.2 * rng.standard_normal((RESAMPLES, n))
    resampled = widened[rng.integers(0, n, (RESAMPLES, n))] + noise
    centres = median(resampled)
    return centres - median(centres), resampled.std(axis=-1, ddof=1)


class Ratios:
    """The ratios of all pairs of all sets, with intervals that hold together."""

    def __init__(self, sets: Sequence[Together], seed: int) -> None:
        """Raise ValueError for more than MOST_PAIRS pairs; see `pairs_of`."""
        if pairs_of([len(one.logs) for one in sets]) > MOST_PAIRS:
            raise ValueError(f"more than {MOST_PAIRS} pairs")
        rng = np.random.default_rng((seed, len(sets)))
        largest = np.zeros(RESAMPLES)
        for one in sets:
            np.maximum(largest, one.largest(rng), out=largest)
        self.critical = float(np.quantile(largest, LEVEL))
        """How many spreads an interval reaches to either side."""
        self._intervals = [_intervals(one, self.critical) for one in sets]

    def interval(self, which: int, over: int, under: int) -> Interval | None:
        """Return the interval of the ratio of two variants of a set; None where the trials of both show no spread."""
        low, high = self._intervals[which]
        if not low[over, under] < high[over, under]:
            return None
        return Interval(low=_power(low[over, under]), high=_power(high[over, under]), level=LEVEL)


def pairs_of(sizes: Sequence[int]) -> int:
    """Return how many pairs there are within sets of these sizes."""
    return sum(size * (size - 1) // 2 for size in sizes)


def _intervals(one: Together, critical: float) -> tuple[Floats, Floats]:
    """Return bounds of the logarithms of all ratios of a set, by the places of its variants."""
    count = len(one.logs)
    reach = np.zeros((count, count))
    for place in range(count - 1):
        reach[place, place + 1 :] = reach[place + 1 :, place] = critical * one.spreads(place)
    apart = one.centres[:, np.newaxis] - one.centres[np.newaxis, :]
    return apart - reach, apart + reach


def _power(log: float) -> float:
    return math.exp(min(700.0, max(-700.0, float(log))))


def compact_letters(apart: Sequence[Sequence[bool]]) -> list[str] | None:
    """Return letters of each variant so that two share one exactly if they were not distinguished (Piepho 2004: insert and absorb).

    `apart[i][j]` says whether i and j were distinguished; "a" is of the first variant. Past z follow aa, ab, ..., with blanks between.
    None where there would be more than GROUPS_EACH letters for each variant, which is too many to read: in the worst case their number
    grows exponentially.
    """
    count = len(apart)
    groups = [(1 << count) - 1]
    for i in range(count):
        for j in range(i + 1, count):
            if apart[i][j]:
                groups = _split(groups, 1 << i, 1 << j)
            if len(groups) > GROUPS_EACH * count:
                return None
    groups.sort(key=lambda group: [not group >> place & 1 for place in range(count)])
    names = [_letters(place) for place in range(len(groups))]
    blank = " " if len(groups) > 26 else ""
    return [
        blank.join(name for name, group in zip(names, groups, strict=True) if group >> place & 1)
        for place in range(count)
    ]


def _split(groups: list[int], one: int, other: int) -> list[int]:
    """Return groups without any that has both, and without those that another one has whole."""
    kept = [group for group in groups if not (group & one and group & other)]
    halves = [group & ~bit for group in groups if group & one and group & other for bit in (one, other)]
    for half in sorted(set(halves), key=int.bit_count, reverse=True):
        if not any(half & group == half for group in kept):
            kept.append(half)
    return kept


def _letters(place: int) -> str:
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(ord("a") + rest) + text
    return text
