"""The observer: beside the load, two threads that read the host and the server once a second."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plinth.model.base import Gap
from plinth.model.load import Connection
from plinth.model.trial import Event, Sample
from plinth.observe.checkpoints import Happening, ServerLog, counted_checkpoints
from plinth.observe.devices import Devices
from plinth.observe.host import HostActivity, HostCpu, HostMemory
from plinth.observe.latest import latest_figures
from plinth.observe.process_sources import ProcessCpu, ProcessDelay, ProcessIo
from plinth.observe.processes import Processes
from plinth.observe.sampler import Sampler
from plinth.observe.samples import to_samples
from plinth.observe.source import Source, Unreadable

_FIRST_READING_TIMEOUT_S = 5.0
_LAST_READING_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Observation:
    """What was seen. Times count from the start of the load.

    `cost_cpu_ns` is the CPU time of the observer's threads and of its backends in the server, over `duration_ns`;
    when the backends' is not known, a gap says so. `shares_database`: the observer had to connect to the load's own
    database, whose counts of transactions hold its queries too.
    """

    samples: list[Sample]
    gaps: list[Gap]
    events: list[Event]
    cost_cpu_ns: int
    duration_ns: int
    shares_database: bool


class Observer:
    """Reads every source once every `interval_s`, from start() to stop().

    `devices` are kernel names as in /proc/diskstats; none given means all real ones. `postmaster_pid` is None when
    the server is not on this host; `engine_pid` is the process of the load engine, which may be this one. With
    `log_path`, the file that the server writes its log to, checkpoints are told from there.

    The host is read by a thread of its own, so that a server that hangs takes nothing else with it. A source that
    fails is a gap, and is tried again at the next tick.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        devices: Sequence[str],
        postmaster_pid: int | None,
        engine_pid: int,
        interval_s: float = 1.0,
        log_path: Path | None = None,
    ) -> None:
        # psycopg takes long to import, and planning needs host_facts alone.
        from plinth.observe.postgres import postgres_sources
        from plinth.observe.session import Session

        self._session = Session(connection, local=postmaster_pid is not None)
        self._interval_s = interval_s
        processes = Processes(
            postmaster_pid=postmaster_pid,
            engine_pid=engine_pid,
            own_backend=lambda: self._session.backend_pid,
            own_threads=self._thread_ids,
        )
        self._host_sources: list[Source] = [
            HostCpu(),
            HostMemory(),
            HostActivity(),
            Devices(devices),
            ProcessCpu(processes),
            ProcessDelay(processes),
            ProcessIo(processes),
        ]
        self._log = None if log_path is None else ServerLog(log_path)
        self._server_sources = postgres_sources(self._session)
        if self._log is not None:
            self._server_sources.append(self._log)
        self._samplers: list[Sampler] = []
        self._started_ns = 0
        self._t0_ns = 0

    def start(self, t0_monotonic_ns: int) -> None:
        """Begin to observe, with ticks at whole intervals from `t0_monotonic_ns`, the load's start (time.monotonic_ns).

        Comes back when everything was read once, so that what the load does is between the first reading and the last.
        """
        self._started_ns = time.monotonic_ns()
        self._t0_ns = t0_monotonic_ns
        session = self._session
        # The server first: by the time that processes are told apart, our own backend is known.
        self._begin("the server", self._server_sources, interrupt=session.interrupt, close=session.close)
        self._begin("the host", self._host_sources)

    def _begin(self, name: str, sources: Sequence[Source], **ends: Callable[[], None]) -> None:
        sampler = Sampler(name, sources, t0_ns=self._t0_ns, interval_s=self._interval_s, **ends)
        self._samplers.append(sampler)
        sampler.start()
        sampler.wait_for_first(_FIRST_READING_TIMEOUT_S)

    def latest(self) -> dict[str, float]:
        """Figures of the last interval for people who watch; see `latest.FIGURES`. What is not known is left out."""
        series = {name: series for sampler in self._samplers for name, series in sampler.series.items()}
        return latest_figures(series, time.monotonic_ns(), self._interval_s)

    def stop(self, *, t0_monotonic_ns: int | None = None) -> Observation:
        """Take the last readings and end. `t0_monotonic_ns` corrects the load's start where it was not known before."""
        t0_ns = self._t0_ns if t0_monotonic_ns is None else t0_monotonic_ns
        gaps: list[Gap] = []
        # The server last: as long as processes are told apart, our own backend is to be known.
        for sampler in reversed(self._samplers):
            if not sampler.stop(_LAST_READING_TIMEOUT_S):
                reason = "the reading under way did not end; the cost of its thread is not known"
                gaps.append(Gap(what=f"the last reading of {sampler.name}", reason=reason))
            gaps += sampler.gaps(t0_ns)
        duration_ns = time.monotonic_ns() - self._started_ns
        cost_cpu_ns = sum(sampler.cpu_ns for sampler in self._samplers)
        try:
            cost_cpu_ns += self._session.cpu_ns()
        except Unreadable as unknown:
            gaps.append(Gap(what="cost of the observer's queries in the server", reason=str(unknown)))
        happenings = sorted(self._happenings(gaps), key=lambda happening: happening.seen_ns)
        return Observation(
            samples=[sample for sampler in self._samplers for sample in to_samples(sampler, t0_ns)],
            gaps=gaps,
            events=[Event(t_ns=seen_ns - t0_ns, kind=kind, text=text) for seen_ns, kind, text in happenings],
            cost_cpu_ns=cost_cpu_ns,
            duration_ns=duration_ns,
            shares_database=self._session.shares_database,
        )

    def _happenings(self, gaps: list[Gap]) -> list[Happening]:
        happenings = [happening for sampler in self._samplers for happening in sampler.outages.happenings()]
        if self._log is not None:
            happenings += self._log.happenings
            if self._log.followed and self._session.settings.get("log_checkpoints") == "on":
                return happenings
            reason = "unreadable, or log_checkpoints is not on; those shown are counted"
            gaps.append(Gap(what="checkpoints in the server's log", reason=reason))
        for sampler in self._samplers:
            happenings += counted_checkpoints(sampler.series.get("pg_checkpointer", []))
        return happenings

    def _thread_ids(self) -> list[int]:
        return [thread_id for sampler in self._samplers if (thread_id := sampler.thread_id) is not None]
