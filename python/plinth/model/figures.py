"""Figures as people read them, wherever they stand: with the digits that their interval allows, and no more."""

import math

from plinth.model.estimate import Estimate


def times(estimate: Estimate) -> str:
    """A ratio with its interval: "3.1x [2.8, 3.4]"; "3.1x" without one."""
    if estimate.interval is None:
        return f"{estimate.value:.3g}x"
    low, high = estimate.interval.low, estimate.interval.high
    digits = _digits(low, high)
    while digits < 4 and any(bound != 1 and float(f"{bound:.{digits}f}") == 1 for bound in (low, high)):
        digits += 1  # a bound that is not 1 does not read as 1
    return f"{estimate.value:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"


def _digits(low: float, high: float) -> int:
    """Decimals that show half the width of an interval to one significant digit or better, from 0 to 4."""
    half = (high - low) / 2
    return 4 if half <= 0 else min(4, max(0, math.ceil(-math.log10(half))))
