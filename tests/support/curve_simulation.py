"""Simulated curves of throughput over a numeric factor, whose truth is known."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from plinth.analyse.scaling import Levels, law

DOUBLING = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
Truth = Callable[[float], float]
"""tps at a level."""


def two_lines(at: float, before: float = 0.9, after: float = 0.0) -> Truth:
    """Straight on both sides of `at`, log over log."""
    return lambda x: 1000 * min(x, at) ** before * (max(x, at) / at) ** after


def scalability_law(contention: float, coherency: float) -> Truth:
    """Universal Scalability Law, 1,000 tps of one client."""
    return lambda x: float(law(np.array([x]), 1000.0, contention, coherency)[0])


def curves(
    truth: Truth, values: Sequence[float], *, cv: float, trials: int, count: int, seed: int, drift: float = 0.0
) -> Iterator[Levels]:
    """`count` experiments with lognormal noise of `cv`, and a drift that each block shares."""
    rng = np.random.default_rng(seed)
    for replica in range(count):
        shared = drift * rng.standard_normal(trials)
        noise = cv * rng.standard_normal((len(values), trials))
        logs = [
            {block: math.log(truth(value)) + float(shared[block] + noise[place, block]) for block in range(trials)}
            for place, value in enumerate(values)
        ]
        yield Levels(tuple(values), tuple(logs), seed=replica)
