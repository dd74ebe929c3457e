"""What becomes of the transactions that an open loop has due, and how two open loops compare."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.latency import LatencyPercentiles

ScheduleKept = Literal["kept", "kept in part", "missed"]
"""By all, some or none of the counted trials of a variant."""
BySchedule = Literal["same schedule", "as asked", "keeps the schedule", "misses the schedule", "neither keeps up"]
"""How two open loops compare; but for the last, it stands in tables in the place of a verdict on throughput.

same schedule: both keep up with it, and only latency differs. as asked: both keep up with different ones. keeps, misses: only the variant
does, or only the baseline.
"""


class OpenLoop(Frozen):
    """The outcome of a schedule: transactions due at set times, in the counted trials' measured phases."""

    scheduled: int
    done: int
    skipped: int = Field(description="Not begun, because they were already later than the latency limit.")
    late: int = Field(description="Done, but not within the latency limit.")
    open: int = Field(description="Still waiting, or cut off, at the end.")
    service: LatencyPercentiles | None = Field(description="From the actual start to the end.")
    schedule_lag: LatencyPercentiles | None = Field(description="From the intended start to the actual one.")
