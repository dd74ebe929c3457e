"""Keying and think times, for which a client waits between its transactions as a terminal with a user does."""

from typing import Annotated, NamedTuple

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.units import MAX_DURATION_S

WaitS = Annotated[float, Field(ge=0, le=MAX_DURATION_S, allow_inf_nan=False)]


class Paced(Frozen):
    """What a client runs, with the waits around it; neither is part of a latency."""

    keying_s: WaitS = Field(default=0.0, description="How long a client waits before each.")
    think_s: WaitS = Field(
        default=0.0,
        description="How long it waits afterwards, on average: exponentially distributed, cut at ten times the average.",
    )
    deferred: bool = Field(
        default=False,
        description="Whether a client does not wait for its end: the wait afterwards then begins when it was due.",
    )


class Pace(NamedTuple):
    """The waits around a type of transaction."""

    keying_s: float
    think_s: float


TPCC_PACES = {
    "new-order": Pace(18, 12),
    "payment": Pace(3, 12),
    "order-status": Pace(2, 10),
    "delivery": Pace(2, 5),
    "stock-level": Pace(2, 5),
}
"""Least keying times, and least averages of think times, of clause 5.2.5.7 of the TPC-C specification, revision 5.11."""
