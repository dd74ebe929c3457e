"""The observer: threads that sample the host and the server once a second while a load runs."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from plinth.model.base import Gap
from plinth.model.connection import Connection
from plinth.model.facts import StorageFacts
from plinth.model.trial import Event, Sample
from plinth.observe.arrays import pools_of
from plinth.observe.checkpoints import ObservedEvent, ServerLog, counted_checkpoints
from plinth.observe.host_sampler import HostRequest, host_sampler
from plinth.observe.latest import latest_figures
from plinth.observe.processes import Processes, RunProcesses
from plinth.observe.sampler import LocalSampler, Sampler, stop_all, to_samples
from plinth.observe.source import Source, Unreadable
from plinth.system.log_file import LogFile

if TYPE_CHECKING:
    from plinth.observe.read_your_writes import ReadYourWrites
    from plinth.observe.session import Session
    from plinth.observe.wait_events import WaitProfile

_FIRST_READING_TIMEOUT_S = 5.0
_LAST_READING_TIMEOUT_S = 2.0
_SAMPLES_PER_INTERVAL = 10
_INTERVALS_BETWEEN_SIZES = 10


@dataclass(frozen=True)
class OtherMachine:
    """A machine of the run that the primary is not on: one of a standby, or the one that the run was started on."""

    name: str
    """As `model.trial.source_on` has it."""
    devices: Sequence[str]
    storages: Sequence[StorageFacts]
    processes: RunProcesses
    sampler: "Callable[[HostRequest], Sampler] | None"
    """What reads it; None: it is this one."""


@dataclass(frozen=True)
class Observation:
    """The results of an observation. Times count from the start of the load.

    `cost_cpu_ns` is the CPU time of the observer's threads and of its backends in the server over `duration_ns`, without
    what connecting and the first readings took before that, and without what reading other machines costs. When the backends' is not
    known, a gap says so.
    `shares_database`: the observer had to connect to the load's own database, whose counts of transactions then include its
    queries.
    """

    samples: list[Sample]
    gaps: list[Gap]
    events: list[Event]
    cost_cpu_ns: int
    duration_ns: int
    shares_database: bool


class Observer:
    """Reads every source once every `interval_s`, from start() to stop(): waits ten times as often, sizes ten times as seldom.

    `devices` are kernel names as in /proc/diskstats; none given means all real ones. With `log`, the file that the server
    writes its log to, checkpoints are read from there. `storages` are what the server uses, as they were described.
    `sampler_of_host` reads the host that the server is on, where that is another machine; `others` are the further machines of the run.

    A separate thread reads the host, so that a server that hangs delays nothing else. A source that fails is a gap, and is
    read again at the next tick.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        devices: Sequence[str],
        processes: RunProcesses,
        interval_s: float = 1.0,
        log: LogFile | None = None,
        storages: Sequence[StorageFacts] = (),
        sampler_of_host: "Callable[[HostRequest], Sampler] | None" = None,
        others: Sequence[OtherMachine] = (),
    ) -> None:
        # psycopg takes long to import, and planning needs host_facts alone.
        from plinth.observe.postgres import view_sources
        from plinth.observe.session import Session
        from plinth.observe.views import SLOW_VIEWS, VIEWS
        from plinth.observe.wait_events import WaitProfile

        ours = processes.postmaster_pid is not None
        local = ours and sampler_of_host is None
        self._interval_s = interval_s
        self._new_session = partial(Session, connection, local=local, ours=ours)
        self._session, self._wait_session = self._new_session(), self._new_session()
        self._slow_session = Session(connection, local=local, ours=ours, within=True)
        self._sessions = [self._session, self._wait_session, self._slow_session]
        self._standbys: ReadYourWrites | None = None
        self._log = None if log is None else ServerLog(log)
        self._server_sources = view_sources(self._session, VIEWS)
        if self._log is not None:
            self._server_sources.append(self._log)
        self._slow_sources = view_sources(self._slow_session, SLOW_VIEWS)
        self._wait_profile = WaitProfile(self._wait_session)
        self._devices, self._storages, self._processes = devices, storages, processes
        if sampler_of_host is None:
            listed = Processes(processes, own_backends=self._own_backends, own_threads=self._thread_ids)
            self._sampler_of_host = partial(host_sampler, listed=listed)
        else:
            self._sampler_of_host = sampler_of_host
        self._others = others
        self._further: list[Source] = []
        self._of_others: list[tuple[str, Sampler]] = []
        self._samplers: list[Sampler] = []
        self._frequent: list[Sampler] = []
        self._started_ns = 0
        self._start_cpu_ns = 0
        self._t0_ns = 0

    def add(self, source: Source) -> None:
        """Read a further source, by a thread of the further ones; to be called before `start`."""
        self._further.append(source)

    def wait_on(self, standbys: Mapping[str, Connection]) -> None:
        """Wait on each of these, by name, for what was committed before; to be called before `start`."""
        from plinth.observe.read_your_writes import ReadYourWrites

        self._sessions.append(self._new_session())
        self._standbys = ReadYourWrites(self._sessions[-1], standbys)

    def start(self, t0_monotonic_ns: int) -> None:
        """Begin to observe, with ticks at whole intervals from `t0_monotonic_ns`, the load's start (time.monotonic_ns).

        Comes back when everything was read once, so that what the load does is between the first reading and the last.
        """
        self._t0_ns = t0_monotonic_ns
        # The server first: its backends of ours are known before processes are classified.
        seldom_s = self._interval_s * _INTERVALS_BETWEEN_SIZES
        # And before it the session within the load's database, so that its start is not counted with the load.
        self._begin(self._of_server("the sizes", self._slow_session, self._slow_sources, seldom_s))
        self._frequent = [
            self._of_server("the server", self._session, self._server_sources, self._interval_s),
            self._of_server("the waits", self._wait_session, [], self._interval_s, [self._wait_profile]),
        ]
        self._begin(*self._frequent)
        if self._further:
            further = LocalSampler("the volumes", self._further, t0_ns=self._t0_ns, interval_s=self._interval_s)
            self._frequent.append(further)
            self._begin(further)
        if (waits := self._standbys) is not None:
            of_standbys = LocalSampler(
                "the standbys",
                [waits],
                t0_ns=self._t0_ns,
                interval_s=self._interval_s,
                interrupt=waits.interrupt,
                close=waits.close,
            )
            self._frequent.append(of_standbys)
            self._begin(of_standbys)
        of_host = self._sampler_of_host(self._host_request())
        self._of_others = [(other.name, self._of_other(other)) for other in self._others]
        self._frequent += [of_host, *(sampler for _, sampler in self._of_others)]
        self._begin(of_host)
        for _, sampler in self._of_others:
            sampler.start()
        for _, sampler in self._of_others:
            sampler.wait_for_first(_FIRST_READING_TIMEOUT_S)
        # Many readings trigger full garbage collections, in any thread, of 30 ms each. Freeze the present objects so that
        # they are not scanned until the end.
        gc.freeze()
        self._started_ns = time.monotonic_ns()
        for session in self._sessions:
            session.note_cost()
        self._start_cpu_ns = sum(sampler.start_cpu_ns for sampler in self._samplers) + self._cost_of_sessions()[0]

    def _host_request(self) -> HostRequest:
        return HostRequest(
            t0_ns=self._t0_ns,
            interval_s=self._interval_s,
            devices=tuple(self._devices),
            pools=tuple(pools_of(self._storages)),
            postmaster_pid=self._processes.postmaster_pid,
            other_servers=tuple(self._processes.other_servers),
            own_backends=tuple(self._own_backends()),
        )

    def _of_other(self, other: OtherMachine) -> Sampler:
        request = HostRequest(
            t0_ns=self._t0_ns,
            interval_s=self._interval_s,
            devices=tuple(other.devices),
            pools=tuple(pools_of(other.storages)),
            postmaster_pid=other.processes.postmaster_pid,
            other_servers=tuple(other.processes.other_servers),
        )
        if other.sampler is not None:
            return other.sampler(request)
        return host_sampler(request, Processes(other.processes, own_threads=self._thread_ids))

    def _of_server(
        self,
        name: str,
        session: "Session",
        sources: Sequence[Source],
        interval_s: float,
        repeatedly_sampled: Sequence["WaitProfile"] = (),
    ) -> Sampler:
        return LocalSampler(
            name,
            sources,
            t0_ns=self._t0_ns,
            interval_s=interval_s,
            repeatedly_sampled=repeatedly_sampled,
            samples_per_interval=_SAMPLES_PER_INTERVAL if repeatedly_sampled else 1,
            interrupt=session.interrupt,
            close=session.close,
        )

    def _begin(self, *samplers: Sampler) -> None:
        self._samplers += samplers
        for sampler in samplers:
            sampler.start()
        for sampler in samplers:
            sampler.wait_for_first(_FIRST_READING_TIMEOUT_S)

    def measure(self, begin_monotonic_ns: int, end_monotonic_ns: int) -> None:
        """Read at both ends of the load's measured phase (time.monotonic_ns), so that the growth of counters is that of the phase.

        May be called again as these instants become better known. Sizes, which take long to read, keep their schedule.
        """
        for sampler in self._frequent:
            sampler.measure(begin_monotonic_ns, end_monotonic_ns)

    def latest(self) -> dict[str, float]:
        """Return figures of the last interval for display; see `latest.FIGURES`. Unknown figures are omitted."""
        series = {name: series for sampler in self._samplers for name, series in sampler.series.items()}
        return latest_figures(series, time.monotonic_ns(), self._interval_s)

    def stop(self, *, t0_monotonic_ns: int | None = None) -> Observation:
        """Take the last readings and stop, once. `t0_monotonic_ns` sets the load's start if it was not known before."""
        t0_ns = self._t0_ns if t0_monotonic_ns is None else t0_monotonic_ns
        gaps: list[Gap] = []
        *of_server, of_host = self._samplers
        # The server last: its backends of ours have to be known while processes are classified.
        of_others = [sampler for _, sampler in self._of_others]
        waiting = stop_all([of_host, *of_others], _LAST_READING_TIMEOUT_S)
        for sampler in waiting + stop_all(of_server, _LAST_READING_TIMEOUT_S):
            reason = "the reading under way did not end; the cost of its thread is not known"
            gaps.append(Gap(what=f"the last reading of {sampler.name}", reason=reason))
        for sampler in (*self._samplers, *of_others):
            gaps += sampler.gaps(t0_ns)
        duration_ns = time.monotonic_ns() - self._started_ns
        of_sessions_ns, unknown = self._cost_of_sessions()
        cost_cpu_ns = sum(sampler.cpu_ns for sampler in self._samplers) + of_sessions_ns - self._start_cpu_ns
        if unknown is not None:
            gaps.append(Gap(what="cost of the observer's queries in the server", reason=unknown))
        events = sorted(self._observed_events(gaps), key=lambda event: event.seen_ns)
        samples = [sample for sampler in self._samplers for sample in to_samples(sampler, t0_ns)]
        samples += [sample for name, sampler in self._of_others for sample in to_samples(sampler, t0_ns, name)]
        gc.unfreeze()
        # Close their files now, not at the next garbage collection.
        self._samplers, self._frequent, self._of_others = [], [], []
        del self._sampler_of_host
        return Observation(
            samples=samples,
            gaps=gaps,
            events=[Event(t_ns=seen_ns - t0_ns, kind=kind, text=text) for seen_ns, kind, text in events],
            cost_cpu_ns=max(0, cost_cpu_ns),
            duration_ns=duration_ns,
            shares_database=self._session.shares_database,
        )

    def _observed_events(self, gaps: list[Gap]) -> list[ObservedEvent]:
        samplers = [*self._samplers, *(sampler for _, sampler in self._of_others)]
        events = [event for sampler in samplers for event in sampler.events()]
        if self._log is not None:
            events += self._log.events
            if self._log.followed and self._session.setting("log_checkpoints") == "on":
                return events
            reason = "unreadable, or log_checkpoints is not on; those shown are counted"
            gaps.append(Gap(what="checkpoints in the server's log", reason=reason))
        for sampler in self._samplers:
            events += counted_checkpoints(sampler.series.get("pg_checkpointer", []))
        return events

    def _cost_of_sessions(self) -> tuple[int, str | None]:
        """Return the CPU time of our backends so far, and why a part of it is unknown."""
        known_ns, unknown = 0, None
        for session in self._sessions:
            try:
                known_ns += session.cpu_ns()
            except Unreadable as reason:
                unknown = str(reason)
        return known_ns, unknown

    def _own_backends(self) -> set[int]:
        return {pid for session in self._sessions if (pid := session.backend_pid) is not None}

    def _thread_ids(self) -> list[int]:
        samplers = [*self._samplers, *(sampler for _, sampler in self._of_others)]
        return [thread_id for sampler in samplers if (thread_id := sampler.thread_id) is not None]
