"""A figure with its interval: what every statistic of an analysis is given as."""

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
