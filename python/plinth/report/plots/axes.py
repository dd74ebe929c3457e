"""Axes of terminal plots: positions of values, and round ticks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_DECADE = 10.0


def spans_decade(values: Sequence[float]) -> bool:
    """Return whether positive values span more than a decade and so need a logarithmic axis."""
    return min(values) > 0 and max(values) > _DECADE * min(values)


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; a logarithmic one has both above 0."""

    low: float
    high: float
    is_logarithmic: bool

    def place(self, value: float) -> float:
        """Return the position of a value as a share of the axis, clamped to 0 and 1."""
        if self.high <= self.low:
            return 0.5
        if self.is_logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Return round values on the axis; on a logarithmic one powers of ten, and their multiples by 2 and 5 if those are few."""
        if not self.is_logarithmic:
            step = _round_step((self.high - self.low) / 4)
            return [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        digits = (1,) if len(powers) > 4 else (1, 2, 5)
        all_ticks = [digit * _DECADE**power for power in powers for digit in digits]
        return [tick for tick in all_ticks if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]


def decades(values: Sequence[float]) -> Axis:
    """Return a logarithmic axis of whole decades that contains the values, all above 0."""
    low, high = (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
    return Axis(_DECADE**low, _DECADE ** max(high, low + 1), is_logarithmic=True)


def _round_step(least: float) -> float:
    power = _DECADE ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next((digit * power for digit in (1, 2, 2.5, 5) if digit * power >= least * (1 - 1e-9)), 10 * power)
