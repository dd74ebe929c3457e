"""Taking out of trials what a whole block shares, such as the drift of the machine."""

from collections.abc import Mapping, Sequence

import numpy as np

from plinth.analyse.bootstrap import Floats

LogsByBlock = Mapping[int, float]
"""Logarithms of a figure of a variant's trials, by block."""


def without_blocks(logs: Sequence[LogsByBlock]) -> tuple[Floats, ...]:
    """The logarithms of each variant less, for each block, the mean of the deviations in it from the variants' means."""
    means = [float(np.mean(list(one.values()))) for one in logs]
    deviations: dict[int, list[float]] = {}
    for one, mean in zip(logs, means, strict=True):
        for block, log in one.items():
            deviations.setdefault(block, []).append(log - mean)
    shared = {block: float(np.mean(of_block)) for block, of_block in deviations.items()}
    return tuple(np.array([log - shared[block] for block, log in one.items()]) for one in logs)
