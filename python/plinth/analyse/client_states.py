"""Where the clients' time of a trial went: the wait profile, with what the kernel knows of the run queue."""

from collections.abc import Mapping
from typing import NamedTuple

from plinth.analyse.machine_cpu import MachineCpu, client_work
from plinth.analyse.wait_events import class_of, is_pause, is_turn_of_client
from plinth.analyse.window import Window
from plinth.model.bottleneck import BottleneckKind
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
        """The share of the clients' time that went to this kind."""
        return self.in_class.get(kind, 0.0) / self.clients if self.clients else 0.0

    @property
    def waits(self) -> dict[BottleneckKind, float]:
        """The numbers of clients by kind, of those that wait for something else than a CPU."""
        return {kind: n for kind, n in self.in_class.items() if kind not in ("server CPU", "other processes")}

    def parts(self) -> dict[str, float]:
        """The number of clients by what they are at, in parts that add up to all of them."""
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
    """The wait profile by class; None where there is none. A client without a session, or between two, is idle.

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
    """Clients by the kind that their wait is a sign of; of the others, by event, those that pause and the rest."""
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
