"""Figures with their intervals: what every statistic of an analysis is given as, and how people read them wherever they are shown,
with the digits that their interval allows, never in powers of ten."""

import math
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen


class Interval(Frozen):
    """A confidence interval at `level`."""

    low: float
    high: float
    level: float = 0.95


class Estimate(Frozen):
    """A figure with its interval; the interval is None where there is none that could be used, and `note` says why."""

    value: float
    interval: Interval | None
    n: int
    method: str
    note: str | None = None
    more_trials: int | None = Field(
        default=None, description="Where there are not enough trials for an interval: about how many more it takes."
    )

    def through(self, turned: Callable[[float], float]) -> "Estimate":
        """Return a monotonic function of the figure, such as its inverse, with the interval that its bounds give."""
        interval = self.interval
        if interval is not None:
            low, high = sorted((turned(interval.low), turned(interval.high)))
            interval = Interval(low=low, high=high, level=interval.level)
        return self.model_copy(update={"value": turned(self.value), "interval": interval})


NOT_AVAILABLE = "n/a"
NOT_ENOUGH = "not enough trials"
_MOST_DECIMALS = 6


def number(value: float) -> str:
    """Format with at least three significant digits, whole from 100 up: 0.0123, 3.14, 12,345; "n/a" if it is not finite."""
    if not math.isfinite(value):
        return NOT_AVAILABLE
    if value == 0 or abs(value) >= 99.95:
        return f"{value:,.0f}"
    text = f"{value:.{_decimals(value, significant=3)}f}"
    return text.rstrip("0").rstrip(".")


def times(estimate: Estimate) -> str:
    """Return a ratio with its interval, for a table: "3.1x [2.8, 3.4]"; "3.1x" without one."""
    value, interval = _times(estimate)
    return f"{value}x [{', '.join(interval)}]" if interval else f"{value}x"


def times_of(estimate: Estimate, base: str) -> str:
    """Return a ratio with its interval, for a sentence: "3.1x disk (95 % CI 2.8 to 3.4)"; without one, why there is none. `base` may be
    empty where the sentence has said it."""
    value, interval = _times(estimate)
    of = f"{value}x {base}".rstrip()
    if estimate.interval is None or interval is None:
        return of + (f" ({estimate.note})" if estimate.note else "")
    return f"{of} ({percent(estimate.interval.level)} CI {' to '.join(interval)})"


def _times(estimate: Estimate) -> tuple[str, tuple[str, str] | None]:
    """Return a ratio and the bounds of its interval, with the digits that half the interval's width allows."""
    if estimate.interval is None:
        return number(estimate.value), None
    low, high = estimate.interval.low, estimate.interval.high
    digits = _digits(low, high)
    while digits < 4 and any(bound != 1 and float(f"{bound:.{digits}f}") == 1 for bound in (low, high)):
        digits += 1  # a bound that is not 1 does not read as 1
    return _at_least(estimate.value, digits), (_at_least(low, digits), _at_least(high, digits))


def bounds(estimate: Estimate, text: Callable[[float], str]) -> str:
    """Return what follows a figure in a table: " [1,200, 1,260]", or " [not enough trials]" where more would give an interval."""
    if estimate.interval is not None:
        return f" [{text(estimate.interval.low)}, {text(estimate.interval.high)}]"
    return "" if estimate.more_trials is None else f" [{NOT_ENOUGH}]"


def percent_or_times(ratio: float) -> str:
    """Return how far a ratio above 1 is from it: "4.3 %", and from twice upwards "2.4x"."""
    return f"{number(float(f'{(ratio - 1) * 100:.2g}'))} %" if ratio < 2 else f"{number(ratio)}x"


def _at_least(value: float, digits: int) -> str:
    """Format with `digits` decimals, or as many more as two significant digits take: 12.4, 0.12."""
    decimals = max(digits, _decimals(value, significant=2)) if 0 < value < 10 else digits
    least = 10**-_MOST_DECIMALS
    return f"<{least:.{_MOST_DECIMALS}f}" if 0 < value < least else f"{value:,.{decimals}f}"


def _decimals(value: float, significant: int) -> int:
    return max(0, significant - 1 - math.floor(math.log10(abs(value))))


def _digits(low: float, high: float) -> int:
    """Return how many decimals, 0 to 4, show half the width of an interval to one significant digit or better."""
    half = (high - low) / 2
    return 4 if half <= 0 else min(4, max(0, math.ceil(-math.log10(half))))


def percent(share: float, decimals: int | None = None) -> str:
    """Return a share of 1, with so many decimals or else with three significant digits: "5 %", "2.5 %"; the sign stands apart, as SI has
    it."""
    return f"{100 * share:.3g} %" if decimals is None else f"{100 * share:.{decimals}f} %"


def more_command(trials: int | Literal["N"]) -> str:
    """Return the command that adds so many trials of each variant to a bundle, for a sentence that says that they would decide."""
    return f"`plinth resume BUNDLE --more {trials}`"
