"""Figures of a sample of trials.

The centre of several trials is their median, on the logarithmic scale: of an even number of trials the geometric mean of the
middle two, so that the ratio of two variants and its inverse agree. Standard deviations of trials are those of a sample
(divided by n - 1, `plinth.analyse.bootstrap`); those of latencies within a trial are of a population (`plinth.model.histogram`).
"""

import math
from collections.abc import Sequence
from statistics import median


def median_of_trials(values: Sequence[float]) -> float:
    """Return the median; of an even number, none of them 0, the geometric mean of the middle two. Raises ValueError without values."""
    if not values:
        raise ValueError("the median of no trials: at least one is needed")
    if min(values) <= 0:
        return median(values)
    return math.exp(median(math.log(value) for value in values))
