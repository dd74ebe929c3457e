"""Simulated sets of variants that are all compared with one another, whose true throughputs are known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plinth.analyse.simultaneous import Ratios, Together


class Found(NamedTuple):
    """Shares of simulated experiments."""

    false_alarms: float
    """In which any two variants that are the same were distinguished, or the slower was taken for the faster."""
    best_kept: float
    """In which the variant that is the fastest in truth is not distinguished from the fastest that was seen."""
    covered: float
    """In which the intervals of all ratios held the truth."""
    power: float
    """Of all pairs of variants that differ, those distinguished."""


def sets_of_variants(
    logs: Sequence[float], trials: int, *, noise: Sequence[float], drift: float, strata: int, count: int, seed: int
) -> Found:
    """`count` experiments of `strata` sets alike: variants of these true logarithms and deviations, in blocks that drift."""
    rng = np.random.default_rng(seed)
    truth, deviations = np.array(logs), np.array(noise)
    alarms = kept = covered = told = 0
    for replica in range(count):
        sets = [_measured(rng, truth, deviations, trials, drift) for _ in range(strata)]
        ratios = Ratios(sets, replica)
        pairs = [
            (which, i, j) for which in range(strata) for i in range(len(truth)) for j in range(len(truth)) if i != j
        ]
        bounds = [ratios.interval(which, i, j) for which, i, j in pairs]
        apart = np.array([truth[i] - truth[j] for _, i, j in pairs])
        low, high = (np.log([getattr(one, end) for one in bounds]) for end in ("low", "high"))
        alarms += bool(np.any((low > 0) & (apart <= 0)))
        covered += bool(np.all((low <= apart) & (apart <= high)))
        told += int(np.count_nonzero((low > 0) & (apart > 0)))
        best, first = int(truth.argmax()), int(sets[0].centres.argmax())
        one = None if best == first else ratios.interval(0, first, best)
        kept += one is None or one.low <= 1 <= one.high
    different = strata * sum(a > b for a in logs for b in logs)
    return Found(alarms / count, kept / count, covered / count, told / count / different if different else 1.0)


def _measured(
    rng: np.random.Generator, truth: np.ndarray, deviations: np.ndarray, trials: int, drift: float
) -> Together:
    shared = drift * rng.standard_normal(trials)
    logs = truth[:, np.newaxis] + shared + deviations[:, np.newaxis] * rng.standard_normal((len(truth), trials))
    return Together(tuple(dict(enumerate(one)) for one in logs))
