"""The bottleneck of a trial, from where its clients' time went and how busy the shared resources were.

In a closed loop every client is always somewhere: its backend works, waits for something, or is idle while the client has
its turn. What most of that time goes to is what more of would help most. Idle backends are the clients' doing: the load
engine's where its threads were busy or had no CPU, else their own pace. Of a schedule that was kept, nothing held back.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from plinth.analyse.evidence import evidence_of
from plinth.analyse.replication import SOURCE as REPLICATION
from plinth.analyse.replication import step_sentence, waited_for
from plinth.analyse.wait_classes import class_of, is_pause
from plinth.analyse.window import Window, why_unread
from plinth.model.analysis import CommitCeiling
from plinth.model.base import SettingValue
from plinth.model.bottleneck import Bottleneck, BottleneckKind, Confidence, WaitShare
from plinth.model.figures import percent
from plinth.model.trial import Trial
from plinth.model.waits import ACTIVE, ALL, BACKENDS, IDLE, IDLE_IN_TRANSACTION, LOOKS, SOURCE, wait_of

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
_NO_WAIT = "without a wait event, by pg_stat_activity"
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


class ClientStates(NamedTuple):
    """The mean number of clients in each state; `looks` is the number of samples.

    Of those in "server CPU" `working` had a CPU, by the kernel's accounts (None where it could not be asked), and `queued`
    were runnable, without one. `other` are those in waits that are a sign of none of the kinds, such as for a parallel worker; `mostly` is the commonest.

    Who wants a CPU is known from the kernel too, where processes are: pg_stat_activity shows a backend as idle that was
    woken by its next statement and has not got a CPU yet, which on a busy host is most of them.
    """

    in_class: dict[BottleneckKind, float]
    working: float | None
    queued: float
    clients: float
    idle: float
    other: float
    mostly: str | None
    looks: float

    def share(self, kind: BottleneckKind) -> float:
        """The share of the clients' time that went to this kind."""
        return self.in_class.get(kind, 0.0) / self.clients if self.clients else 0.0


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
    states = client_states(seen, clients)
    if states is None:
        sentence = f"not known: no wait events: {why_unread(trial, SOURCE)}"
        return Bottleneck(kind="not known", confidence="low", sentence=sentence, evidence=())
    kind = _kind(trial, seen, states, cores, open_loop)
    evidence = evidence_of(kind, trial, seen, _spent(states), states.clients, cores, ceiling)
    starved = engine_utilisation(trial, seen)
    confidence = _confidence(kind, states, starved)
    sentence = _sentence(kind, states, trial, starved)
    if kind == "WAL flush" and ceiling is not None and ceiling.reached is not None:
        sentence += f"; {percent(ceiling.reached, 0)} of the commit ceiling was reached"
    if kind == "replication" and (waited := waited_for(seen, settings)):
        sentence += step_sentence(waited)
    return Bottleneck(kind=kind, confidence=confidence, sentence=sentence, evidence=evidence)


def _spent(states: ClientStates) -> dict[str, float]:
    """The number of clients in each activity, in parts that add up to all of them."""
    spent: dict[str, float] = {kind: n for kind, n in states.in_class.items() if kind != "server CPU"}
    in_server = states.in_class.get("server CPU", 0.0)
    if states.working is None:
        spent[_NO_WAIT] = in_server
    else:
        spent["on a CPU"] = states.working
        spent["in the run queue, without a CPU"] = states.queued
        spent[_NO_WAIT] = in_server - states.working - states.queued
    return {**spent, "idle": states.idle, "other waits": states.other}


def client_states(seen: Window, clients: int) -> ClientStates | None:
    """The wait profile by class; None where there is none. A client without a session, or between two, is idle."""
    states = {state: seen.mean(SOURCE, ALL, state) for state in (ACTIVE, IDLE, IDLE_IN_TRANSACTION)}
    active = states[ACTIVE]
    if active is None:
        return None
    in_class: dict[BottleneckKind, float] = {}
    unclassed: dict[str, float] = {}
    for name in seen.objects(SOURCE):
        if name == ALL or not wait_of(name).of_clients:
            continue
        processes, event = seen.mean(SOURCE, name, BACKENDS) or 0.0, wait_of(name).event
        kind = class_of(event)
        if kind is not None:
            in_class[kind] = in_class.get(kind, 0.0) + processes
        elif not is_pause(event):
            unclassed[event] = unclassed.get(event, 0.0) + processes
    other = sum(unclassed.values())
    working = seen.rates("process_cpu", ["backends"], "user_s", "system_s")
    queued = 0.0
    if working is not None:
        delay = seen.rates("process_delay", ["backends"], "run_delay_s") or 0.0
        others = sum(n for kind, n in in_class.items() if kind != "server CPU")
        most = max(0.0, max(float(clients), active) - others - other)
        in_class["server CPU"] = max(in_class.get("server CPU", 0.0), min(working + delay, most))
        working = min(working, in_class["server CPU"])
        queued = min(delay, in_class["server CPU"] - working)
    looks = seen.sum(SOURCE, ALL, LOOKS)
    everyone = max(float(clients), active)
    mostly = max(unclassed, key=lambda event: unclassed[event], default=None)
    return ClientStates(
        in_class, working, queued, everyone, max(0.0, everyone - sum(in_class.values()) - other), other, mostly, looks
    )


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


def _kind(trial: Trial, seen: Window, states: ClientStates, cores: int, open_loop: bool) -> BottleneckKind:
    busy = 1 - states.idle / states.clients
    if open_loop and busy < PRESSED and _schedule_was_kept(trial):
        return "none found"
    waits: dict[BottleneckKind, float] = {kind: n for kind, n in states.in_class.items() if kind != "server CPU"}
    top = max(waits, key=lambda kind: waits[kind], default=None)
    on_cpu = states.in_class.get("server CPU", 0.0)
    if states.other > max(on_cpu, states.idle, *waits.values(), 0.0):
        return "not known"
    if top is not None and waits[top] >= max(on_cpu, states.idle):
        return top
    if _crowded(seen, on_cpu, cores) or on_cpu >= max(states.idle, *waits.values(), 0.0):
        return "server CPU"
    if (engine_utilisation(trial, seen) or 0.0) >= STARVED:
        return "load engine"
    return "client limit"


def _crowded(seen: Window, on_cpu: float, cores: int) -> bool:
    """Whether backends use about all cores; not known for a server on another machine, since the figures are of the
    clients' host."""
    is_here = seen.rates("process_cpu", ["backends"], "user_s", "system_s") is not None
    return is_here and on_cpu >= CROWDED * cores


def _schedule_was_kept(trial: Trial) -> bool:
    totals = trial.measured
    return totals is not None and totals.done >= KEPT * totals.scheduled


def engine_utilisation(trial: Trial, seen: Window) -> float | None:
    """The share of their time that the load engine's threads worked or waited for a CPU; None where it is not known. Of a fleet,
    those of the busiest machine: with it a part of the load falls behind."""
    if trial.fleet is not None:
        busiest = trial.fleet.busiest
        return None if busiest is None else busiest.engine_busy
    spent = seen.rates("process_cpu", ["load engine"], "user_s", "system_s")
    if trial.engine is None or trial.engine.threads == 0 or spent is None:
        return None
    waited = seen.rates("process_delay", ["load engine"], "run_delay_s") or 0.0
    return min(
        1.0, (spent + waited) / trial.engine.threads
    )  # a driver's coordinator works and waits beside its clients


def _confidence(kind: BottleneckKind, states: ClientStates, starved: float | None) -> Confidence:
    """The confidence, by the winner's lead over the next kind, the number of samples, and whether the load engine's
    time is known."""
    if states.looks < MIN_LOOKS or kind == "not known" or (kind == "client limit" and starved is None):
        return "low"
    if kind == "none found":
        return "high" if states.idle >= 0.8 * states.clients else "medium"
    idle_is_it = kind in ("load engine", "client limit")
    winner = states.idle if idle_is_it else states.in_class.get(kind, 0.0)
    others = [n for other, n in states.in_class.items() if other != kind] + ([] if idle_is_it else [states.idle])
    others.append(states.other)
    second = max(others, default=0.0)
    if winner >= 2 * second:
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


def _sentence(kind: BottleneckKind, states: ClientStates, trial: Trial, starved: float | None) -> str:
    idle = states.idle / states.clients
    if kind == "none found":
        done = (
            "" if trial.measured is None else f"{trial.measured.done:,} of {trial.measured.scheduled:,} due were done; "
        )
        return f"none found: {done}clients had nothing to do for {percent(idle, 0)} of their time"
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
    if kind == "client limit":
        engine = "was not busy" if starved is not None else "could not be looked at"
        return f"client limit: backends were idle {percent(idle, 0)} of the time, and the load engine {engine}"
    sentence = f"{kind}: {percent(states.share(kind), 0)} of the clients' time went to {_WORDS[kind]}"
    if kind == "server CPU" and states.working is not None:
        on_cpu, queued = (n / states.clients for n in (states.working, states.queued))
        sentence += f": {percent(on_cpu, 0)} on a CPU, {percent(queued, 0)} in the run queue, without one"
    others: dict[BottleneckKind, float] = {other: n for other, n in states.in_class.items() if other != kind}
    if kind == "locks" and sum(others.values()) > 0:
        most, _ = max(others.items(), key=lambda item: item[1])
        sentence += f"; beside that, clients were mostly {_WORDS[most]}"
    return sentence
