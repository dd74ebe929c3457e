"""The progress of long work."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """The progress of one task; `total` is None while unknown. `unit` is what is counted: "rows", "s", "bytes".

    `rate` is how much of it a second, and `bytes_per_s` what that is in bytes, since the task was begun or taken up
    again; None where it is not known.
    """

    task: str
    done: float
    total: float | None
    unit: str
    detail: str = ""
    rate: float | None = None
    bytes_per_s: float | None = None

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at this rate."""
        if not self.rate or self.total is None:
            return None
        return max(0.0, self.total - self.done) / self.rate


Report = Callable[[Progress], None]
