"""How busy an agent's machine and its engine, or a driver's clients, were in the measured phase: from /proc, looked at with each poll."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import NamedTuple

from plinth.fleet.protocol import Usage

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_IDLE_MODES = (3, 4)
_MODES = 8
_NAME = "plinth-load"


class _Look(NamedTuple):
    at_ns: int
    host_total_s: float
    host_idle_s: float
    threads: dict[str, int]
    """CPU time and time in the run queue of each engine thread, or each client of a driver, in ns."""


@dataclass
class UsageWatch:
    """The first and the last look of the measured phase."""

    _first: _Look | None = None
    _last: _Look | None = None

    def look(self, is_measuring: bool, processes: Sequence[int] = ()) -> None:
        """Look, if the load is measured now. `processes` are a driver's own, of which the first only waits for the others."""
        if not is_measuring:
            return
        look = _look(processes[1:])
        if self._first is None:
            self._first = look
        elif look.threads:  # threads that have ended leave nothing to be read
            self._last = look

    def usage(self) -> Usage:
        """Return the shares between the two looks; unknown where there were none."""
        first, last = self._first, self._last
        if first is None or last is None:
            return Usage()
        total_s = last.host_total_s - first.host_total_s
        idle_s = last.host_idle_s - first.host_idle_s
        threads = first.threads.keys() & last.threads.keys()
        spent_ns = sum(last.threads[thread] - first.threads[thread] for thread in threads)
        time_ns = (last.at_ns - first.at_ns) * len(threads)
        return Usage(
            engine_busy=min(1.0, spent_ns / time_ns) if time_ns else None,
            host_busy=min(1.0, max(0.0, 1 - idle_s / total_s)) if total_s > 0 else None,
        )


def _look(clients: Sequence[int]) -> _Look:
    fields = [int(ticks) * _TICK_S for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1 : 1 + _MODES]]
    threads = {}
    for task in (*_engine_threads(), *(Path(f"/proc/{client}") for client in clients)):
        with suppress(OSError):  # it ended meanwhile
            worked_ns, waited_ns, _ = (task / "schedstat").read_text().split()
            threads[task.name] = int(worked_ns) + int(waited_ns)
    return _Look(monotonic_ns(), sum(fields), sum(fields[mode] for mode in _IDLE_MODES), threads)


def _engine_threads() -> Iterator[Path]:
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            if (task / "comm").read_text().startswith(_NAME):
                yield task
