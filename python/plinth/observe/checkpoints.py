"""Detects checkpoints, from the server's log if it reports them, else from the counters."""

import errno
import os
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from plinth.observe.source import Reading, Readout
from plinth.system.log_file import LogFile

# Messages of LogCheckpointStart and LogCheckpointEnd in xlog.c and of checkpointer.c, PostgreSQL 13 to 18.
_MESSAGES = re.compile(
    r"LOG: +(?:"
    r"(?P<checkpoint_start>(?:check|restart)point starting:.*)"
    r"|(?P<checkpoint_end>(?:check|restart)point complete:.*)"
    r"|(?P<checkpoint_warning>checkpoints are occurring too frequently.*))"
)


class ObservedEvent(NamedTuple):
    """An event with the monotonic time at which it was detected."""

    seen_ns: int
    kind: str
    text: str


class ServerLog:
    """Follows the server's log file from its current end; `events` holds the checkpoints that it reports."""

    name = "server log"
    sparse = False

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self._offset: int | None = None
        self._rest = b""
        self.events: list[ObservedEvent] = []

    @property
    def followed(self) -> bool:
        """Whether the file could be read."""
        return self._offset is not None

    def read(self) -> Readout:
        """Read the lines that were added since the last call; the first call only finds the end."""
        file = self._log.to_read()
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._log.path))
        with file as log:
            end = log.seek(0, 2)
            if self._offset is None:
                self._offset = end
                return Readout([])
            # A file that became shorter was truncated or replaced.
            begin = log.seek(self._offset if self._offset <= end else 0)
            added = log.read()
        self._offset = begin + len(added)
        *lines, self._rest = (self._rest + added).split(b"\n")
        seen_ns = time.monotonic_ns()
        for line in lines:
            if match := _MESSAGES.search(line.decode(errors="replace")):
                kind = str(match.lastgroup)
                self.events.append(ObservedEvent(seen_ns, kind, match[kind]))
        return Readout([])


def counted_checkpoints(series: Sequence[tuple[int, Sequence[Reading]]]) -> list[ObservedEvent]:
    """Return checkpoints from successive readings of pg_checkpointer, each at the time of the reading after it."""
    events = []
    before: dict[str, float] = {}
    for seen_ns, readings in series:
        now = {reading.metric: reading.value for reading in readings}
        grown = {metric: value - before.get(metric, value) for metric, value in now.items()}
        started = [kind for kind in ("timed", "requested") if grown.get(f"num_{kind}", 0) > 0]
        if started:
            events.append(ObservedEvent(seen_ns, "checkpoint_start", f"counted: {', '.join(started)}"))
        write_s, sync_s = grown.get("write_time_s", 0), grown.get("sync_time_s", 0)
        if write_s > 0 or sync_s > 0:
            text = f"counted: write {write_s:.3f} s, sync {sync_s:.3f} s"
            events.append(ObservedEvent(seen_ns, "checkpoint_end", text))
        before = now
    return events
