"""How much a host may send. Its agent may be broken, or not be ours."""

import time
from collections.abc import Callable

MAX_FRAME_BYTES = 32 * 2**20
"""Of one message; the largest of an agent are pieces of logs, and what was read in the time of an interval."""
MAX_VALUES = 500_000
"""Of one message: a value takes a hundred times as much memory as its JSON."""
MAX_UNASKED_PER_S, MAX_UNASKED_AT_ONCE = 500.0, 20_000
"""Of progress and commands, which no request limits."""
MAX_UNASKED_BYTES_PER_S, MAX_UNASKED_BYTES_AT_ONCE = 4 * 2**20, 64 * 2**20
MAX_LOG_BYTES = 64 * 2**20
"""Of one log that is fetched from a host."""
MAX_LOGS_BYTES = 256 * 2**20
"""Of all logs that a run fetches from one host."""
LOG_PIECE_BYTES = 4 * 2**20
MAX_TEXT = 2**20
"""Characters of one text of an answer."""
MAX_READINGS = 5_000_000
"""Of one host in one trial, which take about a gigabyte of memory."""
QUICK_S = 300.0
"""For what only looks at a host, or starts something there."""
LONG_S = 24 * 3600.0
"""For what takes as long as the data of an experiment need, since the last progress."""


class Allowance:
    """So much a second, and so much at once after a time in which there was nothing."""

    def __init__(self, per_s: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._at_once = at_once
        self._clock = clock
        self._left = at_once
        self._seen_s = clock()

    def allows(self, amount: float) -> bool:
        """Use up an amount; return whether that was allowed."""
        now_s = self._clock()
        self._left = min(self._at_once, self._left + (now_s - self._seen_s) * self._per_s) - amount
        self._seen_s = now_s
        return self._left >= 0
