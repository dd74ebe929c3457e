"""Permutation tests of "the variant makes no difference": exact where the arrangements can all be tried.

They assume nothing of the noise, and so are the check on the bootstrap; but with few trials they cannot
give a small p however clear the difference, which `smallest_p_*` tells beforehand.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from plinth.analyse.bootstrap import Floats

MAX_EXACT = 50_000
SAMPLED = 20_000
_TIE = 1e-9
"""Arrangements that differ from the observed one by rounding alone, relative to all that is summed, count as equal."""


def within_blocks(log_ratios: Floats, seed: int) -> float:
    """Return two-sided p when, within each block, the two variants are exchanged or not: all 2^n ways, or a sample of them.

    `log_ratios` has one log(a/b) a block. The test of the randomised block design itself (Fisher 1935, section 21):
    exact for any drift that the blocks share. Statistic: |mean|.
    """
    n = len(log_ratios)
    exact = 2**n <= MAX_EXACT
    if exact:
        signs = 1 - 2 * ((np.arange(2**n)[:, np.newaxis] >> np.arange(n)) & 1)
    else:
        signs = np.random.default_rng((seed, n)).choice((-1, 1), (SAMPLED, n))
    return _share(signs @ log_ratios, float(log_ratios.sum()), float(np.abs(log_ratios).sum()), exact=exact)


def over_all(a: Floats, b: Floats, seed: int) -> float:
    """Return two-sided p when the labels of all trials are shuffled: all ways, or a sample of them. `a`, `b` are logs.

    Exact when trials are exchangeable; drift shared by the trials of a block makes it conservative.
    Statistic: |mean(a) - mean(b)|.
    """
    pooled = np.concatenate((a, b))
    pooled = pooled - pooled.mean()
    n, exact = len(pooled), comb(len(pooled), len(a)) <= MAX_EXACT
    if exact:
        chosen = np.array(list(combinations(range(n), len(a))))
    else:
        chosen = np.argsort(np.random.default_rng((seed, n)).random((SAMPLED, n)), axis=1)[:, : len(a)]
    observed = float(pooled[: len(a)].sum())
    return _share(pooled[chosen].sum(axis=1), observed, float(np.abs(pooled).sum()), exact=exact)


def smallest_p_within_blocks(n: int) -> float:
    """Return the smallest two-sided p that n blocks can give: 2 of 2^n arrangements."""
    return 2.0 ** (1 - n)


def smallest_p_over_all(n_a: int, n_b: int) -> float:
    """Return the smallest two-sided p that so many trials can give: by symmetry two arrangements if the sides are equal."""
    return (2 if n_a == n_b else 1) / comb(n_a + n_b, n_a)


def _share(arranged: Floats, observed: float, summed: float, *, exact: bool) -> float:
    """Return the share of arrangements at least as far out; a sample counts the observed one too (Phipson and Smyth 2010)."""
    beyond = int(np.count_nonzero(np.abs(arranged) >= abs(observed) - _TIE * summed))
    return beyond / len(arranged) if exact else (beyond + 1) / (len(arranged) + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Apply Holm's step-down correction (1979): the p values may be compared with one level for the whole family, in which what has no
    p stays, without."""
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(p_values) - rank)))
        corrected[place] = highest
    return corrected
