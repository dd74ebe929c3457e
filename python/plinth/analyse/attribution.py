"""The bottleneck of a trial, from where its clients' time went and how busy the shared resources were.

In a closed loop every client is always somewhere: its backend works, waits for something, or is idle while the client has
its turn. What most of that time goes to is what more of would help most. Idle backends are the clients' doing: the load
engine's where its threads were busy or had no CPU, else their own pace. Who waits for a CPU waits for those that have it: programs
of others, too. Of a schedule that was kept, nothing held back.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from plinth.analyse.client_states import ClientStates, client_states
from plinth.analyse.evidence import evidence_of
from plinth.analyse.machine_cpu import ENGINE, TIMES, MachineCpu, client_work, machine_cpu
from plinth.analyse.replication import SOURCE as REPLICATION
from plinth.analyse.replication import step_sentence, waited_for
from plinth.analyse.window import Window, why_unread
from plinth.model.analysis import CommitCeiling
from plinth.model.base import SettingValue
from plinth.model.bottleneck import Bottleneck, BottleneckKind, Confidence, WaitShare
from plinth.model.figures import percent
from plinth.model.trial import Trial
from plinth.model.waits import ACTIVE, ALL, BACKENDS, SOURCE, wait_of

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
    """The bottleneck of the trial. `cores` are the host's; `clients` those of the workload; `settings` the server's; pure.

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
    """The wait profile over several trials, commonest first; of idle clients it has nothing."""
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
    """What kept most backends idle: the load engine, who kept it from working, or the clients' own pace."""
    if (engine_utilisation(trial, seen) or 0.0) >= STARVED:
        shares = _engine_shares(trial, seen, machine)
        return max(shares, key=lambda kind: shares[kind])
    return "not known" if machine is not None and machine.disturbed else "client limit"


def _engine_shares(trial: Trial, seen: Window, machine: MachineCpu | None) -> dict[BottleneckKind, float]:
    """Of the time that the load engine worked or waited for a CPU, the shares by who had the CPU: those that it waited for,
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
    """Whether backends use or want about all cores; not known for a server on another machine, since the figures are of the
    clients' host."""
    return client_work(seen) is not None and wanted >= CROWDED * cores


def _schedule_was_kept(trial: Trial) -> bool:
    totals = trial.measured
    return totals is not None and totals.done >= KEPT * totals.scheduled


def engine_utilisation(trial: Trial, seen: Window) -> float | None:
    """The share of their time that the load engine's threads worked or waited for a CPU; None where it is not known. Of a fleet,
    those of the busiest machine: with it a part of the load falls behind."""
    if trial.fleet is not None:
        busiest = trial.fleet.busiest
        return None if busiest is None else busiest.engine_busy
    if trial.engine is None or trial.engine.threads == 0 or seen.rates("process_cpu", ENGINE, *TIMES) is None:
        return None
    # A driver's coordinator works and waits as well as its clients, so that it may be more than all of their time.
    return min(1.0, sum(_engine_cores(seen)) / trial.engine.threads)


def _engine_cores(seen: Window) -> tuple[float, float]:
    """Cores that the load engine's threads used, and threads that waited for one."""
    spent = seen.rates("process_cpu", ENGINE, *TIMES) or 0.0
    return spent, seen.rates("process_delay", ENGINE, "run_delay_s") or 0.0


def _confidence(found: _Finding, states: ClientStates, starved: float | None, disturbed: bool) -> Confidence:
    """The confidence, by the winner's lead over the next kind, the number of samples, whether the load engine's
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
    """Who had the CPU that backends or the load engine waited for: neighbours, or of what the engine waited for, the server."""
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
        sentence += f"; beside that, clients were mostly {_WORDS[most]}"
    return sentence
