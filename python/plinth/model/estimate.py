"""A figure with its interval: what every statistic of an analysis is given as."""

from plinth.model.base import Frozen


class Interval(Frozen):
    """A confidence interval at `level`."""

    low: float
    high: float
    level: float = 0.95


class Estimate(Frozen):
    """A figure with its interval; the interval is None where too few trials allow one, and `note` says so."""

    value: float
    interval: Interval | None
    n: int
    method: str
    note: str | None = None
