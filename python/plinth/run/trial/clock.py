"""The clocks that trials are timed by."""

import time


class Clock:
    """The clocks of this machine."""

    def unix_ns(self) -> int:
        """Return the wall clock, in ns since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns, by which samples are taken."""
        return time.monotonic_ns()
