"""`FleetLoad`: one load that the agents of a fleet drive together, as a `plinth.load.LoadDriver`."""

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from plinth.fleet.asking import ClockOffset, ask_all, ask_each, greet, measure_clocks, named
from plinth.fleet.check import check_drivers, check_versions
from plinth.fleet.executors.executor import Executor, Started
from plinth.fleet.ledger import collect_ledgers
from plinth.fleet.merge import SecondHistograms, add_histograms, merged_result, merged_second
from plinth.fleet.protocol import Collected, Done, Hello, Measuring, Polled, Request
from plinth.fleet.recording import send_recording
from plinth.fleet.split import clients_of, parts_of
from plinth.fleet.task import POLL_S, FleetTask
from plinth.model.errors import RunError
from plinth.model.histogram import Buckets
from plinth.model.load import (
    MAX_DRIFT,
    MAX_SKEW_NS,
    FleetTrial,
    LoadEvent,
    LoadProgress,
    LoadResult,
    MachineTrial,
    Second,
)
from plinth.model.load_config import LoadConfig
from plinth.model.workload import Driver
from plinth.system import cancel
from plinth.system.framed_tls import ProtocolError

Phase = Literal["connect", "warmup", "measure", "done"]

LEAD_NS = 2_000_000_000
"""From the last agreement on clocks to T0."""
_PHASES: tuple[Phase, ...] = ("connect", "warmup", "measure", "done")
_BEGIN_LEAD_S = 2
_MOST_WARMUP_BEHIND_NS = 60_000_000_000
_MOST_AHEAD_NS = 60_000_000_000
"""By how much longer than by our clock a load may have lasted by an agent's: a clock that jumped only excludes the trial."""
_LAST_EXCHANGES = 5
"""To see after the load whether a clock has jumped; the first ones have to be exact."""


@dataclass
class _Machine:
    """One agent as the coordinator sees it."""

    started: Started
    part: LoadConfig
    hello: Hello = field(default_factory=Hello)
    clock: ClockOffset = field(default_factory=lambda: ClockOffset(0, 0))
    polled: Polled = field(default_factory=Polled)
    rows: dict[int, Second] = field(default_factory=dict)
    collected: Collected | None = None
    last_clock: ClockOffset | None = None

    @property
    def has_ended(self) -> bool:
        return self.polled.state == "ended"


class FleetLoad(FleetTask[_Machine]):
    """Splits a load over the agents that `executor` starts. `config.threads` are for each machine; clients and rate are totals.

    Of a driver other than the load engine each client is a process.
    """

    def __init__(self, config: LoadConfig, executor: Executor, driver: Driver = "plinth") -> None:
        super().__init__(executor)
        self._config = config if driver == "plinth" else config.model_copy(update={"threads": config.clients})
        self._driver: Driver = driver
        self._t0_ns: int | None = None
        self._t0_unix_ns = 0
        self._histograms: dict[int, SecondHistograms] = {}
        self._series: list[Second] = []
        self._given = 0
        self._events: list[LoadEvent] = []
        self._events_dropped = 0
        self._result: LoadResult | None = None

    @property
    def processes(self) -> tuple[int, ...]:
        """Empty: the agents' CPU is in their results."""
        return ()

    def start(self) -> None:
        """Start the agents, connect all clients, agree on T0 and return when it has come.

        Raises RunError if an agent is lost or connects no client, MissingCapability if versions differ.
        """
        self._guarded(self._start)

    def _start(self) -> None:
        started = self._open()
        parts = parts_of(self._config, len(started))
        self._machines = [_Machine(one, part) for one, part in zip(started, parts, strict=True)]
        self._greet()
        if self._config.replay is not None:
            send_recording(started, Path(self._config.replay.file))
        self._connect()
        self._measure_clocks()
        self._go()

    def progress(self) -> LoadProgress:
        """Return the progress of all agents together, and the seconds and events since the last call."""
        known = [one.polled.progress for one in self._machines if one.polled.progress is not None]
        elapsed_ns = 0 if self._t0_ns is None else max(0, time.monotonic_ns() - self._t0_ns)
        seconds, self._given = self._series[self._given :], len(self._series)
        events, self._events = self._events, []
        dropped, self._events_dropped = self._events_dropped, 0
        return LoadProgress(
            elapsed_ns=elapsed_ns,
            phase=_phase({progress.phase for progress in known}),
            done=sum(progress.done for progress in known),
            failed=sum(progress.failed for progress in known),
            retried=sum(progress.retried for progress in known),
            clients_open=sum(progress.clients_open for progress in known),
            seconds=tuple(seconds),
            events=tuple(events),
            events_dropped=dropped,
        )

    def begin_measuring(self) -> int:
        """End the warm-up of all agents with the same second, two seconds ahead. Returns how long it lasts then, in ns."""
        assert self._t0_ns is not None, "the load runs"
        elapsed_s = (time.monotonic_ns() - self._t0_ns) / 1e9
        request = Request(kind="measure", at_ns=(math.ceil(elapsed_s) + _BEGIN_LEAD_S) * 1_000_000_000)
        ends = set(self._guarded(lambda: self._warmups_ns(request)))
        if len(ends) > 1:
            self.close()
            raise RunError("the machines of the fleet would end their warm-up at different times: one of them is late")
        return ends.pop()

    def _warmups_ns(self, request: Request) -> list[int]:
        replies = ask_all(self._agents, request, Measuring)
        latest_ns = request.at_ns + _MOST_WARMUP_BEHIND_NS
        for agent, reply in zip(self._agents, replies, strict=True):
            with named(agent):
                if reply.warmup_ns > latest_ns:
                    raise ProtocolError(f"its warm-up would end {reply.warmup_ns / 1e9:,.0f} s after the start")
        return [reply.warmup_ns for reply in replies]

    def stop(self) -> None:
        """Stop all agents and return at once."""
        if self._is_open and self._t0_ns is not None:
            self._guarded(lambda: ask_all(self._agents, Request(kind="stop"), Done))

    def result(self) -> LoadResult:
        """Return the merged result. Raises RunError while the load runs."""
        if self._result is None:
            raise RunError("the load has not ended")
        return self._result

    @property
    def _agents(self) -> list[Started]:
        return [one.started for one in self._machines]

    def _greet(self) -> None:
        for machine, hello in zip(self._machines, greet(self._agents), strict=True):
            machine.hello = hello
        check_versions({one.started.name: one.hello for one in self._machines})

    def _connect(self) -> None:
        requests = [Request(kind="prepare", load=one.part, driver=self._driver) for one in self._machines]
        ask_each(self._agents, requests, Done)
        self._wait_for_connections(lambda one: one.polled.state != "connected")
        check_drivers({one.started.name: one.polled.driver for one in self._machines})

    def _measure_clocks(self) -> None:
        for machine, clock in zip(self._machines, measure_clocks(self._agents), strict=True):
            machine.clock = clock

    def _go(self) -> None:
        self._t0_ns = time.monotonic_ns() + LEAD_NS
        self._t0_unix_ns = time.time_ns() + LEAD_NS
        ask_each(
            self._agents, [Request(kind="go", at_ns=self._t0_ns + one.clock.offset_ns) for one in self._machines], Done
        )
        left_s = (self._t0_ns - time.monotonic_ns()) / 1e9
        if left_s <= 0:
            raise RunError(f"the agents took longer than {LEAD_NS / 1e9:g} s to take the time of the start")
        cancel.sleep(left_s)
        self._next_poll_at = time.monotonic() + POLL_S  # nothing but the start is to be done at T0

    def _look(self) -> None:
        # Those that have ended as well: without a request for the time of their lease they would be gone.
        replies = ask_each(self._agents, [Request(kind="poll")] * len(self._machines), Polled)
        for machine, (machine.polled, histograms) in zip(self._machines, replies, strict=True):
            self._check_state(machine)
            if machine.polled.progress is not None:
                machine.rows |= {row.second: row for row in machine.polled.progress.seconds}
                self._events += machine.polled.progress.events
                self._events_dropped += machine.polled.progress.events_dropped
            with named(machine.started):
                add_histograms(self._histograms, histograms)
        self._close_rows()
        if self._config.exit_on_abort and not self._is_stopping and any(one.kind == "aborted" for one in self._events):
            self._ask_to_stop()  # the agent has stopped its own clients

    def _check_state(self, machine: _Machine) -> None:
        if machine.polled.state == "failed":
            raise RunError(f"{machine.polled.failure}", where=f"machine {machine.started.name}")
        if machine.polled.state not in ("connecting", "connected") and machine.polled.progress is None:
            raise RunError(f"the agent on {machine.started.name} has lost its load")

    def _close_rows(self) -> None:
        """Merge the seconds that all agents have finished, or ended before."""
        while True:
            row = len(self._series)
            parts = [one.rows[row] for one in self._machines if row in one.rows]
            if not parts or any(row not in one.rows and not one.has_ended for one in self._machines):
                return
            self._series.append(merged_second(parts, self._histograms.pop(row, SecondHistograms())))
            for one in self._machines:
                one.rows.pop(row, None)

    def _finish(self) -> None:
        for machine, clock in zip(self._machines, measure_clocks(self._agents, _LAST_EXCHANGES), strict=True):
            machine.last_clock = clock
        replies = ask_all(self._agents, Request(kind="collect"), Collected)
        elapsed_ns = time.monotonic_ns() - (self._t0_ns or 0)
        for machine, collected in zip(self._machines, replies, strict=True):
            with named(machine.started):
                _check_result(collected.result, elapsed_ns, self._config)
            machine.collected = collected
        if self._config.ledger is not None:
            offsets_ns = [one.clock.offset_ns for one in self._machines]
            parts = [one.part for one in self._machines]
            collect_ledgers(self._agents, parts, offsets_ns, Path(self._config.ledger.folder))
        results = [one.result for one in replies if one.result is not None]
        if len({tuple(script.name for script in result.scripts) for result in results}) > 1:
            raise ProtocolError("the agents of the fleet have results of different scripts")
        fleet = self._fleet_trial()
        merged = merged_result(results, self._series, self._t0_unix_ns)
        self._result = merged.model_copy(update={"fleet": fleet})

    def _fleet_trial(self) -> FleetTrial:
        machines = tuple(map(self._machine_trial, self._machines))
        starts = [one.first_start_ns for one in machines]
        known = [start for start in starts if start is not None]
        elapsed_ns = time.monotonic_ns() - (self._t0_ns or 0) + LEAD_NS
        links = [one.started.link for one in self._machines]
        return FleetTrial(
            machines=machines,
            skew_ns=max(known) - min(known) if len(known) == len(starts) else None,
            clock_moved_limit_ns=MAX_SKEW_NS + round(elapsed_ns * MAX_DRIFT),
            messages=sum(link.messages for link in links),
            sent_bytes=sum(link.sent_bytes for link in links),
            received_bytes=sum(link.received_bytes for link in links),
        )

    def _machine_trial(self, machine: _Machine) -> MachineTrial:
        assert machine.collected is not None and machine.collected.result is not None, "all were collected"
        result, usage = machine.collected.result, machine.collected.usage
        clients, threads = clients_of(machine.part)
        transactions = Buckets.transactions(result.histograms)
        return MachineTrial(
            name=machine.started.name,
            host=machine.hello.host,
            cores=machine.hello.cores,
            clients=clients,
            threads=threads,
            clock_offset_ns=machine.clock.offset_ns,
            clock_error_ns=machine.clock.error_ns,
            clock_moved_ns=None if machine.last_clock is None else machine.clock.least_move_ns(machine.last_clock),
            first_start_ns=result.first_start_ns,
            measured=result.measured,
            latency_p50_ns=transactions.percentile_ns(0.50) if transactions else None,
            latency_p99_ns=transactions.percentile_ns(0.99) if transactions else None,
            user_cpu_ns=result.engine.user_cpu_ns,
            system_cpu_ns=result.engine.system_cpu_ns,
            loop_lag_p99_ns=result.engine.loop_lag_p99_ns,
            engine_busy=usage.engine_busy,
            host_busy=usage.host_busy,
        )


def _check_result(result: LoadResult | None, elapsed_ns: int, config: LoadConfig) -> None:
    if result is None:
        raise ProtocolError("it has no result")
    lasted_ns = result.warmup_ns + result.measured_ns
    if lasted_ns > elapsed_ns + _MOST_AHEAD_NS:
        raise ProtocolError(f"its load lasted for {lasted_ns / 1e9:,.1f} s, and began {elapsed_ns / 1e9:,.1f} s ago")
    most = len(config.scripts) if config.replay is None else config.replay.classes + 1  # that of all other statements
    least = most if config.replay is None else 1
    if not least <= len(result.scripts) <= most:
        raise ProtocolError(f"its result is of {len(result.scripts)} scripts, and the load has {most}")
    if (result.replay is None) != (config.replay is None):
        raise ProtocolError("its result is that of a replay, or the load is one, and not both")


def _phase(phases: set[Phase]) -> Phase:
    """Return the phase of the agent that is least far."""
    for phase in _PHASES:
        if phase in phases:
            return phase
    return "connect"
