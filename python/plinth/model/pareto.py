"""Fronts of variants that no other one dominates, and what variants are compared by."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.figures import Estimate
from plinth.model.objective import METRIC_TITLES

ParetoMetric = Literal[
    "tps",
    "latency_p99",
    "commits",
    "schedule",
    "written_per_transaction",
    "wal_per_transaction",
    "cost_per_million_transactions",
]
METRIC_NAMES: dict[ParetoMetric, str] = {
    "tps": METRIC_TITLES["tps"],
    "latency_p99": METRIC_TITLES["latency_p99"],
    "commits": METRIC_TITLES["commits"],
    "schedule": "keeping the schedule",
    "written_per_transaction": METRIC_TITLES["written_per_transaction"],
    "wal_per_transaction": METRIC_TITLES["wal_per_transaction"],
    "cost_per_million_transactions": METRIC_TITLES["cost_per_million_transactions"],
}


class ParetoPoint(Frozen):
    """A variant among those of its stratum."""

    variant: str
    tps: Estimate
    latency_p99_ns: Estimate | None = Field(description="Median of the trials' own 99th percentiles.")
    bytes_per_transaction: Estimate | None = Field(
        description="Written to devices, or WAL where these were not counted: see `metrics`."
    )
    cost_per_million: Estimate | None = Field(
        default=None, description="Of a million transactions, by [prices] and in their currency; None without prices."
    )
    dominated_by: tuple[str, ...] = Field(
        description="Variants shown better in one metric at least, and worse by more than 5 % in none. Empty: on the front."
    )


class ParetoFront(Frozen):
    """The variants of a stratum; intervals of all ratios of all metrics and strata hold together at 95 %."""

    stratum: str = Field(description='For people: "16 clients"; empty where there is only one.')
    metrics: tuple[ParetoMetric, ...] = Field(description="What the variants were compared by.")
    points: tuple[ParetoPoint, ...] = Field(description="In the order of the stratum's variants.")
    gaps: tuple[Gap, ...] = Field(description="Metrics and variants that were left out.")
