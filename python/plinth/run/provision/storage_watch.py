"""Monitors the storages during a run: a daemon that died, a device that does not answer any more.

A device that hangs is known by the kernel's own counters (Documentation/admin-guide/iostats): requests are under way and
none has ended for a while. So nothing is read or written for it, which would disturb the measurement, or hang as well.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from plinth.model.errors import PlinthError, StorageBroken
from plinth.run.host import Host
from plinth.run.local_host import HOST

HANG_S = 60.0
"""So long nothing ends while something is under way; a healthy disk, however slow, ends something every second."""
_INTERVAL_S = 1.0
# Fields of /proc/diskstats after the name.
_ENDED = (0, 4, 11, 15)  # reads, writes, discards, flushes; older kernels have fewer
_IN_FLIGHT = 8


class Watched(NamedTuple):
    """A storage that is monitored: `failure` says cheaply why it has failed, `devices` are kernel names.

    `force_detach` makes processes that wait for it fail at once.
    """

    name: str
    failure: Callable[[], str | None]
    devices: tuple[str, ...]
    force_detach: Callable[[], object]


class _State(NamedTuple):
    ended: int
    in_flight: int
    since_s: float


class StorageWatch:
    """Looks in a thread once a second at what was added, those below first, until `close`."""

    def __init__(
        self,
        *,
        host: Host = HOST,
        hang_s: float = HANG_S,
        interval_s: float = _INTERVAL_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._clock_s = clock_s
        self._hang_s = hang_s
        self._interval_s = interval_s
        self._watched: dict[str, Watched] = {}
        self._states: dict[str, _State] = {}
        self._watching: tuple[Collection[str], Callable[[StorageBroken], None]] | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storage watch", daemon=True)

    def close(self) -> None:
        """Stop monitoring. The thread is not waited for: the call that it is in may itself hang."""
        self._ending.set()

    def add(self, watched: Watched) -> None:
        """Monitor a storage, from now on; those that it is built on must have been added before."""
        with self._lock:
            self._watched[watched.name] = watched
        if not self._thread.is_alive():
            self._thread.start()

    def remove(self, name: str) -> None:
        """Stop monitoring a storage."""
        with self._lock:
            self._watched.pop(name, None)

    @contextmanager
    def watching(self, names: Collection[str], on_failure: Callable[[StorageBroken], None]) -> Iterator[None]:
        """Call `on_failure`, once and from the watching thread, when one of `names` has failed.

        It is detached by force then, since nothing else could interrupt a process that waits for it in the kernel.
        """
        with self._lock:
            self._watching = (names, on_failure)
        try:
            yield
        finally:
            with self._lock:
                self._watching = None

    def first_failure(self, names: Collection[str]) -> StorageBroken | None:
        """Return the first of `names` that has failed, as far as is known now."""
        with self._lock:
            watched = [one for name, one in self._watched.items() if name in names]
        for one in watched:
            if reason := one.failure() or self.hang_reason(one.devices):
                return StorageBroken(one.name, reason)
        return None

    def hang_reason(self, devices: Collection[str]) -> str | None:
        """Return which of `devices` hangs."""
        now_s = self._clock_s()
        for device in devices:
            state = self._states.get(device)
            if state is not None and state.in_flight and now_s - state.since_s >= self._hang_s:
                return (
                    f"its device {device} hangs: {state.in_flight} requests are under way, and none has ended "
                    f"for {now_s - state.since_s:.0f} s"
                )
        return None

    def _run(self) -> None:
        while not self._ending.wait(self._interval_s):
            self._read_counters()
            with self._lock:
                watching = self._watching
            found = self.first_failure(watching[0]) if watching is not None else None
            if found is None or watching is None:
                continue
            with self._lock:
                broken = self._watched.get(found.storage) if self._watching is watching else None
                if broken is not None:
                    self._watching = None
                    watching[1](found)
            if broken is not None:
                with suppress(PlinthError):  # `Storages.force_detach` detaches it once more, and reports
                    broken.force_detach()

    def _read_counters(self) -> None:
        now_s = self._clock_s()
        wanted = {device for one in tuple(self._watched.values()) for device in one.devices}
        for name, fields in self._host.diskstats().items():
            if name not in wanted:
                continue
            ended = sum(fields[place] for place in _ENDED if place < len(fields))
            in_flight, before = fields[_IN_FLIGHT], self._states.get(name)
            idle = before is None or not before.in_flight or not in_flight or ended != before.ended
            self._states[name] = _State(ended, in_flight, now_s if idle or before is None else before.since_s)
