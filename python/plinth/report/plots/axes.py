"""Axes of terminal plots: where a value stands, and round ticks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_DECADE = 10.0


def spans_decade(values: Sequence[float]) -> bool:
    """All above 0, and the highest over ten times the lowest: such values belong on a logarithmic axis."""
    return min(values) > 0 and max(values) > _DECADE * min(values)


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; a logarithmic one has both above 0."""

    low: float
    high: float
    is_logarithmic: bool

    def place(self, value: float) -> float:
        """Share of the axis at which a value stands; outside of it, at its nearer end."""
        if self.high <= self.low:
            return 0.5
        if self.is_logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Round figures on the axis: powers of ten of a logarithmic one, with their halves and fifths where those are few."""
        if not self.is_logarithmic:
            step = _round_step((self.high - self.low) / 4)
            return [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        digits = (1,) if len(powers) > 4 else (1, 2, 5)
        all_ticks = [digit * _DECADE**power for power in powers for digit in digits]
        return [tick for tick in all_ticks if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]


def decades(values: Sequence[float]) -> Axis:
    """A logarithmic axis of whole decades around values above 0."""
    low, high = (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
    return Axis(_DECADE**low, _DECADE ** max(high, low + 1), is_logarithmic=True)


def _round_step(least: float) -> float:
    power = _DECADE ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next((digit * power for digit in (1, 2, 2.5, 5) if digit * power >= least * (1 - 1e-9)), 10 * power)
