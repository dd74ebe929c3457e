"""The reading of a host while a load runs that another machine drives: its agent samples, the coordinator fetches."""

import os

from plinth.model.base import Frozen, Gap
from plinth.observe.checkpoints import ObservedEvent
from plinth.observe.host_sampler import HostRequest, host_sampler
from plinth.observe.processes import LOAD_ENGINE, Processes, RunProcesses
from plinth.observe.sampler import Sampler, stop_all
from plinth.observe.source import Reading

_FIRST_READING_TIMEOUT_S = 5.0
_LAST_READING_TIMEOUT_S = 2.0


class SourceName(Frozen):
    """A source of readings, as `observe.source.Source` has it."""

    name: str
    sparse: bool


class HostSampling:
    """Reads this host; times are of its monotonic clock."""

    def __init__(self) -> None:
        self._sampler: Sampler | None = None
        self._sent: dict[str, int] = {}

    def begin(self, request: HostRequest) -> tuple[SourceName, ...]:
        """Begin to read; comes back when everything was read once. Returns the sources."""
        self.end()
        run = RunProcesses(request.postmaster_pid, other_servers=request.other_servers)
        listed = Processes(run, own_backends=lambda: set(request.own_backends), own_threads=_own_threads)
        self._sampler = host_sampler(request, listed)
        self._sent = {}
        self._sampler.start()
        self._sampler.wait_for_first(_FIRST_READING_TIMEOUT_S)
        return tuple(SourceName(name=source.name, sparse=source.sparse) for source in self._sampler.sources)

    def readings(self) -> dict[str, list[tuple[int, list[Reading]]]]:
        """Return what was read since it was asked last. The load engine is on another machine: nothing is said of it."""
        if self._sampler is None:
            return {}
        found: dict[str, list[tuple[int, list[Reading]]]] = {}
        for name, series in self._sampler.series.items():
            begin, end = self._sent.get(name, 0), len(series)
            self._sent[name] = end
            found[name] = [
                (at_ns, [reading for reading in readings if reading.object != LOAD_ENGINE])
                for at_ns, readings in series[begin:end]
            ]
        return found

    def measure(self, begin_ns: int, end_ns: int) -> None:
        """Read at both ends of the load's measured phase."""
        if self._sampler is not None:
            self._sampler.measure(begin_ns, end_ns)

    def end(self) -> None:
        """Take the last reading, and stop."""
        if self._sampler is not None:
            stop_all([self._sampler], _LAST_READING_TIMEOUT_S)

    def gaps(self, t0_ns: int) -> tuple[Gap, ...]:
        """Return what could not be read, with times since `t0_ns`."""
        return () if self._sampler is None else tuple(self._sampler.gaps(t0_ns))

    def events(self) -> list[ObservedEvent]:
        """Return when sources were lost and found again."""
        return [] if self._sampler is None else self._sampler.events()

    def cpu_ns(self) -> tuple[int, int]:
        """Return the CPU time of the reading thread: after its first reading, and at its end."""
        return (0, 0) if self._sampler is None else (self._sampler.start_cpu_ns, self._sampler.cpu_ns)


def _own_threads() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/task")]  # noqa: PTH208 - every tick: no Path for each
