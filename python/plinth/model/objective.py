"""Objectives: bounds that variants have to keep, and the results for each."""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from plinth.model.base import Frozen, Name
from plinth.model.figures import Estimate, number
from plinth.model.level import Level, same_level
from plinth.model.safety import GRADES, SafetyBasis, SafetyGrade
from plinth.model.units import parse_duration, parse_latency, parse_size

ObjectiveMetric = Literal[
    "tps",
    "latency_p50",
    "latency_p95",
    "latency_p99",
    "written_per_transaction",
    "wal_per_transaction",
    "cost_per_million_transactions",
    "commits",
    "recovery",
]
Outcome = Literal["met", "not met", "inconclusive", "not measured"]
Price = Annotated[float, Field(gt=0, allow_inf_nan=False)]
METRIC_TITLES: dict[ObjectiveMetric, str] = {
    "tps": "transactions per second",
    "latency_p50": "p50 latency",
    "latency_p95": "p95 latency",
    "latency_p99": "p99 latency",
    "written_per_transaction": "bytes written per transaction",
    "wal_per_transaction": "WAL per transaction",
    "cost_per_million_transactions": "cost per million transactions",
    "commits": "acknowledged commits",
    "recovery": "recovery after a power cut",
}
LATENCY_QUANTILES: dict[ObjectiveMetric, float] = {"latency_p50": 0.5, "latency_p95": 0.95, "latency_p99": 0.99}
SIZES: frozenset[ObjectiveMetric] = frozenset({"written_per_transaction", "wal_per_transaction"})
"""Metrics in bytes."""
_BOUND_GRADES: dict[str, SafetyGrade] = {grade: grade for grade in GRADES if grade != "unknown"}


class Objective(Frozen):
    """A bound that variants have to keep."""

    metric: ObjectiveMetric = Field(
        description="What is bounded: tps; a percentile of the latency; written_per_transaction, bytes that reached the devices "
        "directly below the file systems; wal_per_transaction, bytes of WAL generated; cost_per_million_transactions, at "
        "price_per_hour or [prices]; commits, what becomes of acknowledged ones in a power failure; recovery, from the return of the power until "
        "the server takes connections.",
        examples=["latency_p99"],
    )
    max: float | str | None = Field(
        default=None,
        description='At most this: a latency or a time with its unit ("20ms", "30s"), a size ("8kB"), else a number. This or min.',
        examples=["20ms"],
    )
    min: float | str | None = Field(
        default=None,
        description='At least this. Of commits: "keeps", or "may lose recent commits", which allows both.',
        examples=[1000],
    )
    where: dict[str, Level | tuple[Level, ...]] = Field(
        default_factory=dict,
        description="The variants that it holds for: factors of [matrix], each with a level or a list of levels. Default: all.",
        examples=[{"storage": "disk"}],
    )
    price_per_hour: Price | dict[Name, Price] | None = Field(
        default=None,
        description="Of cost_per_million_transactions: what an hour costs, in any currency; or a table of prices by the storage "
        "of the data directory. Default: what [prices] make of servers and storages.",
        examples=[0.35],
    )

    @field_validator("max", "min", mode="before")
    @classmethod
    def _bound_of_its_metric(cls, bound: Any, info: ValidationInfo) -> Any:
        if bound is not None and (metric := info.data.get("metric")) is not None:
            _parse_bound(metric, bound)
        return bound

    @model_validator(mode="after")
    def _one_bound_and_its_price(self) -> "Objective":
        if (self.max is None) == (self.min is None):
            raise ValueError("give exactly one of max and min")
        if self.metric == "commits" and self.max is not None:
            raise ValueError('max: not of commits, which is a grade: min = "keeps"')
        if self.metric == "recovery" and self.max is None:
            raise ValueError('min: not of recovery, which takes as long as it takes: max = "30s"')
        if self.metric != "cost_per_million_transactions" and self.price_per_hour is not None:
            raise ValueError("price_per_hour: of cost_per_million_transactions only")
        return self

    @property
    def bound(self) -> float | SafetyGrade:
        """The bound in transactions/s, ns, bytes, s of recovery, or the currency of the price; for commits a grade."""
        return _parse_bound(self.metric, self.min if self.max is None else self.max)

    @property
    def requirement(self) -> str:
        """The requirement as text: "p99 latency at most 20ms"."""
        bound = self.min if self.max is None else self.max
        text = bound if isinstance(bound, str) else number(float(bound or 0))
        if self.metric == "commits":
            return f"{METRIC_TITLES[self.metric]}: {'' if bound == GRADES[0] else 'at worst '}{text}"
        return f"{METRIC_TITLES[self.metric]} at {'least' if self.max is None else 'most'} {text}"

    def applies_to(self, levels: dict[str, Level]) -> bool:
        """Return whether it holds for the variant with these levels."""
        return all(
            factor in levels and any(same_level(levels[factor], one) for one in _levels_of(wanted))
            for factor, wanted in self.where.items()
        )


class ObjectiveResult(Frozen):
    """An objective for one of its variants."""

    objective: int = Field(description="Its place in the experiment, from 0.")
    variant: str
    metric: ObjectiveMetric
    requirement: str = Field(description="For people: p99 latency at most 20ms.")
    direction: Literal["max", "min"]
    bound: float | SafetyGrade = Field(
        description="The bound in transactions/s, ns, bytes, s of recovery, or the currency of the price; for commits a grade."
    )
    outcome: Outcome = Field(
        description="met, not met: the whole interval lies on that side of the bound. inconclusive: it includes the bound, or there "
        "is none."
    )
    figure: Estimate | None = Field(
        description="In the unit of the bound; None where it was not measured, and of commits."
    )
    grade: SafetyGrade | None = Field(default=None, description="Of commits.")
    basis: SafetyBasis | None = Field(default=None, description="Of commits: what the grade rests on.")
    reason: str | None = Field(default=None, description="Why it is inconclusive or not measured.")


def _levels_of(wanted: Level | tuple[Level, ...]) -> tuple[object, ...]:
    """Return the levels that one entry of `where` allows; a level that is a list itself is also one of them."""
    return (wanted, *wanted) if isinstance(wanted, tuple) else (wanted,)


def _parse_bound(metric: ObjectiveMetric, bound: object) -> float | SafetyGrade:
    if metric == "commits":
        found = _BOUND_GRADES.get(str(bound))
        if found is None:
            raise ValueError(f"got {bound!r}; allowed: {', '.join(_BOUND_GRADES)}")
        return found
    if metric == "recovery":
        return parse_duration(bound)
    if metric in LATENCY_QUANTILES:
        if not isinstance(bound, str):
            raise ValueError(f'got {bound!r}; expected a latency with its unit, such as "20ms"')
        return parse_latency(bound)
    if metric in SIZES and isinstance(bound, str):
        return parse_size(bound)
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not (0 <= bound < math.inf):
        expected = 'a size such as "8kB" or a number of bytes' if metric in SIZES else "a number that is not negative"
        raise ValueError(f"got {bound!r}; expected {expected}")
    return bound
