"""The bottleneck of a trial, from where its clients' time went and how busy the shared resources were.

In a closed loop every client is always somewhere: its backend works, waits for something, or is idle while the client has
its turn. What most of that time goes to is what more of would help most. Idle backends are the clients' doing: the load
engine's where its threads were busy or had no CPU, else their own pace. Who waits for a CPU waits for those that have it: programs
of others, too. Of a schedule that was kept, nothing held back.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from plinth.analyse.machine_cpu import ENGINE, SERVER, TIMES, MachineCpu, client_work, machine_cpu
from plinth.analyse.replication import SOURCE as REPLICATION
from plinth.analyse.replication import lag_evidence, step_sentence, waited_for
from plinth.analyse.wait_events import class_of, is_pause, is_turn_of_client
from plinth.analyse.window import Window, why_unread
from plinth.model.base import SettingValue
from plinth.model.bottleneck import Bottleneck, BottleneckKind, Confidence, Evidence, WaitShare
from plinth.model.commit_model import CommitCeiling
from plinth.model.figures import percent
from plinth.model.trial import Trial
from plinth.model.waits import ACTIVE, ALL, BACKENDS, IDLE, IDLE_IN_TRANSACTION, LOOKS, SOURCE, wait_of

_NO_WAIT = "without a wait event, by pg_stat_activity"


class ClientStates(NamedTuple):
    """The mean number of clients in each state; `looks` is the number of samples.

    Of those in "server CPU" `working` had a CPU, by the kernel's accounts (None where it could not be asked), and `queued`
    were runnable, without one; those in "other processes" were, too, but for CPUs that programs of others had. `paused` slept in
    the server because a statement asked for it, mostly in `pause`. `other` are those in waits that are a sign of none of the
    kinds, such as for a parallel worker; `mostly` is the commonest.

    Who wants a CPU is known from the kernel too, where processes are: pg_stat_activity shows a backend as idle that was
    woken by its next statement and has not got a CPU yet, which on a busy host is most of them.
    """

    in_class: dict[BottleneckKind, float]
    working: float | None
    queued: float
    clients: float
    idle: float
    paused: float
    pause: str | None
    other: float
    mostly: str | None
    looks: float

    def share(self, kind: BottleneckKind) -> float:
        """Return the share of the clients' time that went to this kind."""
        return self.in_class.get(kind, 0.0) / self.clients if self.clients else 0.0

    @property
    def waits(self) -> dict[BottleneckKind, float]:
        """The numbers of clients by kind, of those that wait for something else than a CPU."""
        return {kind: n for kind, n in self.in_class.items() if kind not in ("server CPU", "other processes")}

    def parts(self) -> dict[str, float]:
        """Return the number of clients by what they are at, in parts that add up to all of them."""
        spent: dict[str, float] = {**self.waits}
        in_server = self.in_class.get("server CPU", 0.0)
        if self.working is None:
            spent[_NO_WAIT] = in_server
        else:
            spent["on a CPU"] = self.working
            spent["in the run queue, without a CPU"] = self.queued
            spent["in the run queue, behind other processes"] = self.in_class.get("other processes", 0.0)
            spent[_NO_WAIT] = in_server - self.working - self.queued
        return {**spent, "idle": self.idle, "asleep in the server": self.paused, "other waits": self.other}


def client_states(seen: Window, clients: int, machine: MachineCpu | None = None) -> ClientStates | None:
    """Return the wait profile by class; None where there is none. A client without a session, or between two, is idle.

    `machine` says how much of the run queue is the neighbours' doing: a process waits for those that run meanwhile.
    """
    active = seen.mean(SOURCE, ALL, ACTIVE)
    if active is None or any(seen.mean(SOURCE, ALL, state) is None for state in (IDLE, IDLE_IN_TRANSACTION)):
        return None
    in_class, pauses, unclassed = _by_class(seen)
    everyone = max(float(clients), active)
    paused, other = sum(pauses.values()), sum(unclassed.values())
    working, queued = client_work(seen), 0.0
    if working is not None:
        delay = seen.rates("process_delay", ["backends"], "run_delay_s") or 0.0
        elsewhere = sum(n for kind, n in in_class.items() if kind != "server CPU") + paused + other
        on_cpu = max(in_class.get("server CPU", 0.0), min(working + delay, max(0.0, everyone - elsewhere)))
        working = min(working, on_cpu)
        queued = min(delay, on_cpu - working)
        behind = queued * (machine.share if machine else 0.0)
        queued -= behind
        in_class["server CPU"] = on_cpu - behind
        if behind:
            in_class["other processes"] = behind
    idle = max(0.0, everyone - sum(in_class.values()) - paused - other)
    looks = seen.sum(SOURCE, ALL, LOOKS)
    pause, mostly = _most(pauses), _most(unclassed)
    return ClientStates(in_class, working, queued, everyone, idle, paused, pause, other, mostly, looks)


def _by_class(seen: Window) -> tuple[dict[BottleneckKind, float], dict[str, float], dict[str, float]]:
    """Return clients by the kind that their wait is a sign of; of the others, by event, those that pause and the rest."""
    in_class: dict[BottleneckKind, float] = {}
    pauses: dict[str, float] = {}
    unclassed: dict[str, float] = {}
    for name in seen.objects(SOURCE):
        if name == ALL or not wait_of(name).of_clients:
            continue
        processes, event = seen.mean(SOURCE, name, BACKENDS) or 0.0, wait_of(name).event
        kind = class_of(event)
        if kind is not None:
            in_class[kind] = in_class.get(kind, 0.0) + processes
        elif not is_turn_of_client(event):
            of = pauses if is_pause(event) else unclassed
            of[event] = of.get(event, 0.0) + processes
    return in_class, pauses, unclassed


def _most(of: Mapping[str, float]) -> str | None:
    return max(of, key=lambda event: of[event], default=None)


_PROBE = "fsync probe"


def evidence_of(
    kind: BottleneckKind,
    trial: Trial,
    seen: Window,
    spent: Mapping[str, float],
    clients: float,
    cores: int,
    ceiling: CommitCeiling | None,
) -> tuple[Evidence, ...]:
    """Return the shares of the clients' time, largest first, then what belongs to this kind of bottleneck.

    `spent` is what `clients` were at, in numbers of clients.
    """
    of_time = [
        Evidence(what=f"clients' time: {name}", value=n / clients, unit="fraction", source=SOURCE)
        for name, n in sorted(spent.items(), key=lambda item: -item[1])
        if n / clients >= 0.005
    ]
    if kind in ("device reads", "device writes"):
        of_time += _devices(trial, seen)
    elif kind == "WAL flush":
        of_time += [*_ceiling(ceiling), *_wal(trial, seen), *_devices(trial, seen)]
    elif kind == "replication":
        of_time += lag_evidence(seen)
    return (*of_time, *_cpu(trial, seen, cores))


def _cpu(trial: Trial, seen: Window, cores: int) -> Iterator[Evidence]:
    of_parts = {
        "server": SERVER,
        "load engine": ENGINE,
        "rest of run": ["rest of run"],
        "rest of host": ["rest of host"],
    }
    for what, groups in of_parts.items():
        used = seen.rates("process_cpu", groups, *TIMES)
        if used is not None and (what != "load engine" or trial.fleet is None) and (what != "rest of run" or used > 0):
            yield Evidence(what=f"CPU of {what}, of {cores} cores", value=used, unit="cores", source="process_cpu")
    for machine in trial.fleet.machines if trial.fleet else ():
        for what, share in (("load engine", machine.engine_busy), ("all cores", machine.host_busy)):
            if share is not None:
                yield Evidence(
                    what=f"machine {machine.name}: {what} busy", value=share, unit="fraction", source="agent"
                )
    for group, threads in (("backends", None), ("load engine", trial.engine.threads if trial.engine else None)):
        delay = seen.rates("process_delay", [group], "run_delay_s")
        if delay is not None:
            what = f"{group} runnable, without a CPU" + (f", of {threads} threads" if threads else "")
            yield Evidence(what=what, value=delay, unit="count", source="process_delay")


def _ceiling(of: CommitCeiling | None) -> Iterator[Evidence]:
    """Return how near its commits came to what the storage lets through, by the fsync probe."""
    if of is None or of.unavailable is not None:
        return
    if of.reached is not None:
        yield Evidence(what="transactions, of the commit ceiling", value=of.reached, unit="fraction", source=_PROBE)
    if of.flush_median_ns is not None:
        what = f"flush of the probe, median, by {of.method} on {of.storage}"
        yield Evidence(what=what, value=of.flush_median_ns, unit="ns", source=_PROBE)


def _wal(trial: Trial, seen: Window) -> Iterator[Evidence]:
    syncs = seen.rate("pg_wal", "all", "wal_sync")
    if syncs:  # none are counted where the WAL is written with O_SYNC or O_DSYNC (wal_sync_method open_*)
        yield Evidence(what="WAL flushes", value=syncs, unit="per_s", source="pg_wal")
        if trial.tps is not None:
            yield Evidence(what="transactions a WAL flush", value=trial.tps / syncs, unit="count", source="pg_wal")
    took_s = seen.rate("pg_wal", "all", "wal_sync_time_s")
    if took_s is not None and syncs:
        yield Evidence(what="mean WAL flush", value=took_s / syncs * 1e9, unit="ns", source="pg_wal")


def _devices(trial: Trial, seen: Window) -> Iterator[Evidence]:
    for device in trial.devices:
        name, roles = device.device, f"{', '.join(device.roles)}: {device.device}"
        for verb, counter, time in (
            ("read", "reads", "read_time_s"),
            ("write", "writes", "write_time_s"),
            ("flush", "flushes", "flush_time_s"),
        ):
            rate, took_s = seen.rate("device", name, counter), seen.rate("device", name, time)
            if not rate:
                continue
            yield Evidence(what=f"{roles}: {counter}", value=rate, unit="per_s", source="device")
            if took_s is not None:
                yield Evidence(what=f"{roles}: mean {verb}", value=took_s / rate * 1e9, unit="ns", source="device")
        busy = seen.rate("device", name, "io_time_s")
        if busy:
            yield Evidence(what=f"{roles}: utilisation", value=busy, unit="fraction", source="device")
        queue = seen.rate("device", name, "weighted_io_time_s")
        if queue:
            yield Evidence(what=f"{roles}: requests under way", value=queue, unit="count", source="device")


KEPT = 0.98
"""Share of a schedule's transactions that have to be done for it to be kept."""
PRESSED = 0.5
"""Share of the clients' time in the server from which on even a schedule that is kept is at a limit."""
STARVED = 0.5
"""Share of its threads' time that the load engine works, or waits for a CPU, for it to be what limits."""
CROWDED = 0.75
"""Backends that want a CPU, to a core of the host, from which on the cores are too few."""
MIN_LOOKS = 20
"""Samples of wait events below which the confidence is low."""
SOURCES = frozenset(
    {
        SOURCE,
        "process_cpu",
        "process_delay",
        "host_cpu",
        "device",
        "pg_wal",
        "pg_io",
        "pg_database",
        "process_io",
        REPLICATION,
    }
)
"""The sources of the samples that attribution, server work and I/O by process use."""


class _Finding(NamedTuple):
    """The kind of a bottleneck, and which part of the clients' time speaks for it."""

    kind: BottleneckKind
    part: str


def attribute(
    trial: Trial,
    seen: Window,
    cores: int,
    clients: int,
    open_loop: bool,
    ceiling: CommitCeiling | None = None,
    settings: Mapping[str, SettingValue] = MappingProxyType({}),
) -> Bottleneck:
    """Return the bottleneck of the trial. `cores` are the host's; `clients` those of the workload; `settings` the server's; pure.

    `ceiling` is that of its storage's commits: it decides nothing, but shows whether waits for the WAL are caused by
    the storage.
    """
    machine = machine_cpu(seen, cores)
    states = client_states(seen, clients, machine)
    if states is None:
        sentence = f"not known: no wait events: {why_unread(trial, SOURCE)}"
        return Bottleneck(kind="not known", confidence="low", sentence=sentence, evidence=())
    found = _find(trial, seen, states, machine, cores, open_loop)
    kind = found.kind
    evidence = evidence_of(kind, trial, seen, states.parts(), states.clients, cores, ceiling)
    starved = engine_utilisation(trial, seen)
    confidence = _confidence(found, states, starved, machine is not None and machine.disturbed)
    sentence = _sentence(found, states, trial, seen, starved, machine)
    if kind == "WAL flush" and ceiling is not None and ceiling.reached is not None:
        sentence += f"; {percent(ceiling.reached, 0)} of the commit ceiling was reached"
    if kind == "replication" and (waited := waited_for(seen, settings)):
        sentence += step_sentence(waited)
    return Bottleneck(kind=kind, confidence=confidence, sentence=sentence, evidence=evidence)


def wait_shares(windows: Iterable[Window]) -> tuple[WaitShare, ...]:
    """Return the wait profile over several trials, commonest first; of idle clients it has nothing."""
    sums: dict[str, float] = {}
    counted = 0
    for seen in windows:
        if seen.mean(SOURCE, ALL, ACTIVE) is None:
            continue
        counted += 1
        for name in seen.objects(SOURCE):
            if name != ALL:
                sums[name] = sums.get(name, 0.0) + (seen.mean(SOURCE, name, BACKENDS) or 0.0)
    shares = [
        WaitShare(kind=wait_of(name).kind, event=wait_of(name).event, processes=total / counted)
        for name, total in sums.items()
        if total > 0
    ]
    return tuple(sorted(shares, key=lambda share: (-share.processes, share.kind, share.event)))


def _find(
    trial: Trial, seen: Window, states: ClientStates, machine: MachineCpu | None, cores: int, is_open: bool
) -> _Finding:
    busy = 1 - states.idle / states.clients
    if is_open and busy < PRESSED and _schedule_was_kept(trial):
        return _Finding("none found", "idle")
    waits = states.waits
    on_cpu, behind = states.in_class.get("server CPU", 0.0), states.in_class.get("other processes", 0.0)
    away = max(states.idle, states.paused)
    if states.other > max(on_cpu, behind, away, *waits.values(), 0.0):
        return _Finding("not known", "other waits")
    top = max(waits, key=lambda kind: waits[kind], default=None)
    if top is not None and waits[top] >= max(on_cpu, behind, away):
        return _Finding(top, top)
    if _crowded(seen, on_cpu + behind, cores) or max(on_cpu, behind) >= max(away, *waits.values(), 0.0):
        of_cpu: BottleneckKind = "other processes" if behind > on_cpu else "server CPU"
        return _Finding(of_cpu, of_cpu)
    if states.paused > states.idle:
        return _Finding("client limit", "paused")
    return _Finding(_of_idle(trial, seen, machine), "idle")


def _of_idle(trial: Trial, seen: Window, machine: MachineCpu | None) -> BottleneckKind:
    """Return what kept most backends idle: the load engine, who kept it from working, or the clients' own pace."""
    if (engine_utilisation(trial, seen) or 0.0) >= STARVED:
        shares = _engine_shares(trial, seen, machine)
        return max(shares, key=lambda kind: shares[kind])
    return "not known" if machine is not None and machine.disturbed else "client limit"


def _engine_shares(trial: Trial, seen: Window, machine: MachineCpu | None) -> dict[BottleneckKind, float]:
    """Return, of the time that the load engine worked or waited for a CPU, the shares by who had the CPU: those that it waited for,
    or itself. Of a fleet all is the engines' own: who else worked on their machines is not known."""
    if machine is None or trial.fleet is not None:
        return {"load engine": 1.0}
    spent, waited = _engine_cores(seen)
    waited_share = waited / (spent + waited)
    behind: dict[BottleneckKind, float] = {
        "other processes": waited_share * machine.share,
        "server CPU": waited_share * machine.server / machine.used,
    }
    return {"load engine": 1 - sum(behind.values()), **behind}


def _crowded(seen: Window, wanted: float, cores: int) -> bool:
    """Return whether backends use or want about all cores; not known for a server on another machine, since the figures are of the
    clients' host."""
    return client_work(seen) is not None and wanted >= CROWDED * cores


def _schedule_was_kept(trial: Trial) -> bool:
    totals = trial.measured
    return totals is not None and totals.done >= KEPT * totals.scheduled


def engine_utilisation(trial: Trial, seen: Window) -> float | None:
    """Return the share of their time that the load engine's threads worked or waited for a CPU; None where it is not known. Of a fleet,
    those of the busiest machine: with it a part of the load falls behind."""
    if trial.fleet is not None:
        busiest = trial.fleet.busiest
        return None if busiest is None else busiest.engine_busy
    if trial.engine is None or trial.engine.threads == 0 or seen.rates("process_cpu", ENGINE, *TIMES) is None:
        return None
    # A driver's coordinator works and waits as well as its clients, so that it may be more than all of their time.
    return min(1.0, sum(_engine_cores(seen)) / trial.engine.threads)


def _engine_cores(seen: Window) -> tuple[float, float]:
    """Return cores that the load engine's threads used, and threads that waited for one."""
    spent = seen.rates("process_cpu", ENGINE, *TIMES) or 0.0
    return spent, seen.rates("process_delay", ENGINE, "run_delay_s") or 0.0


def _confidence(found: _Finding, states: ClientStates, starved: float | None, disturbed: bool) -> Confidence:
    """Return the confidence, by the winner's lead over the next kind, the number of samples, whether the load engine's
    time is known, and whether neighbours slowed all that was measured."""
    kind = found.kind
    unseen = kind == "client limit" and found.part == "idle" and starved is None
    if states.looks < MIN_LOOKS or kind == "not known" or unseen:
        return "low"
    if kind == "none found":
        return "high" if states.idle >= 0.8 * states.clients else "medium"
    shares: dict[str, float] = {**states.in_class, "idle": states.idle, "paused": states.paused, "other": states.other}
    winner = shares.pop(found.part, 0.0)
    second = max(shares.values(), default=0.0)
    if winner >= 2 * second and (not disturbed or kind == "other processes"):
        return "high"
    return "medium" if winner >= 1.25 * second else "low"


_WORDS: dict[BottleneckKind, str] = {
    "device reads": "waiting for reads of data files",
    "device writes": "waiting for writes of data files",
    "WAL flush": "waiting for WAL to be written and flushed",
    "server CPU": "working, or waiting for a CPU, in the server",
    "locks": "waiting for locks that others held",
    "replication": "waiting for a standby",
    "network": "waiting for the client to take what was sent",
}


def _sentence(
    found: _Finding, states: ClientStates, trial: Trial, seen: Window, starved: float | None, machine: MachineCpu | None
) -> str:
    kind = found.kind
    idle = states.idle / states.clients
    if kind == "none found":
        done = (
            "" if trial.measured is None else f"{trial.measured.done:,} of {trial.measured.scheduled:,} due were done; "
        )
        return f"none found: {done}clients had nothing to do for {percent(idle, 0)} of their time"
    if machine is not None and (kind == "other processes" or (kind, found.part) == ("server CPU", "idle")):
        return _cpu_sentence(found, states, trial, seen, machine)
    if kind == "not known" and found.part == "idle" and machine is not None:
        return (
            f"not known: backends were idle {percent(idle, 0)} of the time while other processes of this machine used "
            f"{machine.clause()}: whether those or the clients' own pace set the limit cannot be told; measure on an idle machine"
        )
    noted = ""
    if machine is not None and machine.disturbed:
        noted = f"; other processes of this machine used {machine.clause()} meanwhile"
    return _own_sentence(found, states, trial, starved) + noted


def _cpu_sentence(found: _Finding, states: ClientStates, trial: Trial, seen: Window, machine: MachineCpu) -> str:
    """Return who had the CPU that backends or the load engine waited for: neighbours, or of what the engine waited for, the server."""
    by_neighbours = found.kind == "other processes"
    name, had = ("other processes of this machine", "these") if by_neighbours else ("server CPU", "the server")
    used = f"other processes used {machine.clause()}, the server {machine.server:.2f}"
    if found.part == "idle":
        share = _engine_shares(trial, seen, machine)[found.kind]
        return (
            f"{name}: backends waited for the load engine, which spent {percent(share, 0)} of its time without a CPU that "
            f"{had} had; {used}"
        )
    share = states.share(found.kind)
    return f"{name}: {percent(share, 0)} of the clients' time went to waiting for a CPU that {had} had; {used}"


def _own_sentence(found: _Finding, states: ClientStates, trial: Trial, starved: float | None) -> str:
    kind, idle = found.kind, states.idle / states.clients
    if kind == "not known":
        share = states.other / states.clients
        return f"not known: {percent(share, 0)} of the clients' time went to waits that indicate no limit, mostly {states.mostly}"
    if kind == "load engine":
        is_driver = trial.engine is not None and trial.engine.driver is not None
        who, its = ("client driver", "processes") if is_driver else ("load engine", "threads")
        if trial.fleet is not None and (busiest := trial.fleet.busiest) is not None:
            who += f" on machine {busiest.name}"
        return (
            f"{who}: backends waited for the next statement {percent(idle, 0)} of the time, and its {its} worked or waited for "
            f"a CPU {percent(starved or 0.0, 0)} of theirs"
        )
    if found.part == "paused":
        slept = percent(states.paused / states.clients, 0)
        return f"client limit: statements slept in the server {slept} of the clients' time, mostly {states.pause}"
    if kind == "client limit":
        engine = "was not busy" if starved is not None else "could not be looked at"
        return f"client limit: backends were idle {percent(idle, 0)} of the time, and the load engine {engine}"
    sentence = f"{kind}: {percent(states.share(kind), 0)} of the clients' time went to {_WORDS[kind]}"
    if kind == "server CPU" and states.working is not None:
        on_cpu, queued = (n / states.clients for n in (states.working, states.queued))
        sentence += f": {percent(on_cpu, 0)} on a CPU, {percent(queued, 0)} in the run queue, without one"
    others: dict[BottleneckKind, float] = {
        other: n for other, n in states.in_class.items() if other in _WORDS and other != kind
    }
    if kind == "locks" and sum(others.values()) > 0:
        most, _ = max(others.items(), key=lambda item: item[1])
        sentence += f"; otherwise, clients were mostly {_WORDS[most]}"
    return sentence
