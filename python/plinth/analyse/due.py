"""The transactions of an open loop that were due: whether a trial kept up with them, and which of those done were in time."""

import math
from typing import Protocol

from plinth.model.totals import Totals

MANY_MISSED = 0.01
"""Share of an open loop's schedule that may be missed before the server is said not to keep up."""


class Due(Protocol):
    """Counts of transactions that were due."""

    @property
    def scheduled(self) -> int:
        """All of them."""
        ...

    @property
    def skipped(self) -> int:
        """Not begun, as too late."""
        ...

    @property
    def open(self) -> int:
        """Still waiting at the end."""
        ...


def keeps_up(due: Due, clients: int) -> bool:
    """Whether at most MANY_MISSED of the transactions due were skipped, or left waiting at the end of the trial (or of each trial).

    As many as there are clients may be under way at the end, which is no waiting.
    """
    return due.skipped + max(0, due.open - clients) <= MANY_MISSED * due.scheduled


def log_share_in_time(done: Totals | None) -> float:
    """Return the log of the share of what was done that was within the latency limit; of none in time, as of one, which has a logarithm."""
    return math.log(max(done.done - done.late, 1) / done.done) if done is not None and done.late else 0.0
