"""Transactions counted."""

from pydantic import Field

from plinth.model.base import Frozen


class Totals(Frozen):
    """Counts of transactions; scheduled = done + failed + skipped + open always holds."""

    scheduled: int = Field(description="Begun or skipped; in an open loop, all that were due.")
    done: int
    failed: int
    skipped: int = Field(description="Due in an open loop, and later than the latency limit before they could begin.")
    open: int = Field(description="Neither done nor failed at the end: cut off, or due and still waiting for a client.")
    retries: int = Field(description="Further tries of transactions, all together.")
    retried: int = Field(description="Transactions that were tried more than once.")
    late: int = Field(default=0, description="Of those done: the ones that took longer than the latency limit.")
    serialization_failures: int | None = Field(
        default=None, description="Of those failed: the ones whose last try failed with SQLSTATE 40001."
    )
    deadlock_failures: int | None = Field(default=None, description="Of those failed: the same with SQLSTATE 40P01.")
    rolled_back: int | None = Field(
        default=None,
        description="Of those done: the ones that were rolled back as intended; None where it is not known.",
    )
