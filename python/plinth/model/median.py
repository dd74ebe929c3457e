"""The one definition of the figure of several trials."""

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
