"""The clocks that trials are timed by."""

import time
from typing import Protocol


class Clock(Protocol):
    """The clocks that a trial is timed by."""

    def unix_ns(self) -> int:
        """Return the wall clock, in ns since 1970."""
        ...

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC, in ns, by which samples are taken."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def unix_ns(self) -> int:
        """Return the wall clock, in ns since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC, in ns."""
        return time.monotonic_ns()
