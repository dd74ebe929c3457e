"""The forecast of a run on other drives: `plinth forecast`."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.figures import Estimate

Limit = Literal["latency", "requests a second", "bytes a second", "seeks", "CPU"]


class DriveForecast(Frozen):
    """What a variant would do on another drive."""

    profile: str
    tps: Estimate | None = Field(default=None, description="Transactions a second, with a 90 % interval.")
    latency_p99_ns: Estimate | None = Field(default=None, description="With a 90 % interval.")
    limit: Limit | None = Field(default=None, description="What would hold it back.")
    notes: tuple[str, ...] = ()
    unavailable: str | None = Field(default=None, description="Why there is no figure.")


class Forecast(Frozen):
    """The forecast of one variant of a run."""

    run_id: str
    experiment: str
    variant: str = Field(description="The variant that was measured, by its label.")
    measured_tps: Estimate
    measured_p99_ns: int | None
    clients: int
    parts: dict[str, float] = Field(
        description="Where a transaction's time went, as fractions: CPU, WAL flush, reads, writes, locks."
    )
    drives: tuple[DriveForecast, ...] = Field(description="In the order asked for.")
