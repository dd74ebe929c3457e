"""Faults of a trial's servers as its actions ask for them, and the failover to a standby; all is set right when the trial ends."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Self

from plinth.model.connection import Connection, Host
from plinth.model.errors import PlinthError, RunError
from plinth.model.fault import (
    ContinueAction,
    FailoverAction,
    FillAction,
    FreeAction,
    KillAction,
    OfPlace,
    PauseAction,
    PowerAction,
    PromoteAction,
    ServerAction,
    StartAction,
    StopAction,
    server_actions,
)
from plinth.model.outage import Rejoin, has_fsync
from plinth.model.patroni import etcd_machines
from plinth.model.plan import Variant, storage_that_holds
from plinth.model.recovery import Recovery
from plinth.model.standby import PRIMARY
from plinth.run.context import addresses_of
from plinth.run.faults.power import Power
from plinth.run.faults.recovery_check import inserted_lsn
from plinth.run.provision.live_cluster import LiveCluster
from plinth.server.node import Standby
from plinth.server.replication.patroni import PatroniCluster
from plinth.server.replication.patroni_machine import PatroniMachine
from plinth.server.replication.promotion import (
    await_promoted,
    follow,
    has_strayed,
    promote,
    received_bytes,
    switch_lsn,
    takes_writes,
)
from plinth.storage import Storage
from plinth.system import cancel
from plinth.system.database import connect, database_errors

RETRY_CONNECT_S = 0.1
"""The pause of a client between attempts to connect: at most ten a second, for each client."""
_PROBE_TIMEOUT_S = 2
_ASK_AGAIN_S = 0.02
_CANCEL_WAITS = (
    b"select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'IPC' and wait_event = 'SyncRep'"
)


@dataclass
class Marks:
    """When what took place in a trial, by CLOCK_MONOTONIC in ns, and what was found then."""

    faults: list[str] = field(default_factory=list)
    fault_ns: int | None = None
    """The first fault."""
    primary_lsn: str | None = None
    """The primary's WAL insert position just before it."""
    resumed_ns: int | None = None
    """From then on commits that clients send can only be answered by the primary that takes writes in the end."""
    detected_ns: int | None = None
    promoted_ns: int | None = None
    promoted: str | None = None
    candidates: tuple[str, ...] = ()
    unpowered: set[str] = field(default_factory=set)
    unsynced: set[str] = field(default_factory=set)
    """Those of them that have fsync = off."""
    switch_lsn: str | None = None
    restarted: bool = False
    """The primary crashed, and Patroni started it again."""
    rejoin: Rejoin | None = None
    recovery: Recovery | None = None
    """Of the primary, when it was started again."""


@dataclass(eq=False)
class ServerFaults:
    """What the actions of one trial do to its servers. Leaving it ends all of them, restores their power, frees what was filled, and
    makes the servers of the cluster what they were.

    Their files are then as the faults have left them: they are restored before the next trial.
    """

    _cluster: LiveCluster
    _variant: Variant
    marks: Marks = field(default_factory=Marks, init=False)
    primary: str = field(default=PRIMARY, init=False)
    """The node that takes writes, or did last."""
    _off: dict[str, Power] = field(default_factory=dict, init=False)
    _paused: set[str] = field(default_factory=set, init=False)
    _full: dict[str, Storage] = field(default_factory=dict, init=False)
    """The storages that are full, by name."""

    def __post_init__(self) -> None:
        self._servers = self._cluster.servers
        self._patroni = patroni_of(self._cluster, self._variant)
        """None: the failover is Plinth's own sequence."""
        self._as_before = dict(self._servers)
        self._upstreams = {name: one.upstream for name, one in self._servers.items() if isinstance(one, Standby)}

    def begin(self) -> None:
        """Start what conducts the failover, on the servers as they run. Raises PlinthError when it does not come up."""
        if self._patroni is not None:
            self._patroni.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with cancel.masked():
            try:
                if self._patroni is not None:
                    self._patroni.end()
            finally:
                self._set_right()

    def _set_right(self) -> None:
        """End the servers, and undo what else was done to them."""
        for name, server in self._servers.items():
            if name not in self._off:
                server.crash()
        for name in tuple(self._off):
            self._off.pop(name).restore()
        for storage in tuple(self._full.values()):
            self._free(storage)
        self._servers.update(self._as_before)
        for name, upstream in self._upstreams.items():
            standby = self._servers[name]
            assert isinstance(standby, Standby), "it was one before"
            standby.stream_from(upstream)

    @property
    def failover_by(self) -> str:
        """Who conducts the failover: "plinth", or Patroni with its version and settings."""
        return "plinth" if self._patroni is None else self._patroni.words

    @property
    def standbys(self) -> tuple[str, ...]:
        """The standbys that the primary began with."""
        return tuple(self._upstreams)

    @property
    def connection(self) -> Connection:
        """Where the load goes: to whichever node takes writes."""
        first, *others = (server.connection for server in self._servers.values())
        further = tuple(Host(host=one.host, port=one.port, password=one.password) for one in others)
        return replace(first, further_hosts=further, target_session_attrs="read-write")

    def writable(self) -> list[str]:
        """Return the nodes that take writes now."""
        return [name for name, server in self._servers.items() if takes_writes(server)]

    def check_one_primary(self) -> None:
        """Raise RunError unless exactly one node takes writes."""
        match self.writable():
            case [only]:
                self.primary = only
            case []:
                raise RunError("no node takes writes any more")
            case several:
                raise RunError(f"split brain: {' and '.join(several)} both take writes")

    def strayed(self) -> tuple[str, ...]:
        """Return the standbys that had more WAL than the one that was promoted, and cannot follow it."""
        at, primary = self.marks.switch_lsn, self._servers[self.primary]
        others = {name: one for name, one in self._servers.items() if name != self.primary and one.alive()}
        return () if at is None else tuple(name for name, one in others.items() if has_strayed(one, primary, at))

    def control(self) -> Connection:
        """Return the control connection of the node that takes writes."""
        return self._servers[self.primary].control

    def cancel_waits(self) -> None:
        """Cancel commits that wait for a standby: their clients get the warning that they are only local."""
        import psycopg

        for name in self.writable():
            with suppress(psycopg.Error), connect(self._servers[name].control, timeout_s=_PROBE_TIMEOUT_S) as control:
                control.execute(_CANCEL_WAITS)

    def do(self, action: ServerAction, ended: Event) -> None:
        """Do one action. `ended`: the load has, so that what has not begun should not."""
        match action:
            case KillAction(node=node):
                with self._position([node]) as note:
                    at_ns = self._crash(action, note)
                self._paused.discard(node)
                self._note_fault(action, at_ns)
            case StopAction(node=node, mode=mode):
                with self._position([node]) as note:
                    note()
                self._note_fault(action, time.monotonic_ns())
                self._proceed(node)
                self._servers[node].shutdown(mode)
            case PauseAction(node=node):
                self._pause(action, node)
            case ContinueAction(node=node):
                self._proceed(node)
            case FillAction():
                self._fill(action)
            case FreeAction():
                self._free(self._storage_of(action))
            case PowerAction(node=nodes):
                self._cut_power(action, nodes)
            case StartAction(node=node):
                self._start(node)
            case PromoteAction(node=node):
                self._promote(node, (node,))
            case FailoverAction():
                self._fail_over(action, ended)
            case _:
                raise AssertionError(f"{action} is no fault")

    def is_in_force(self, action: PauseAction | FillAction) -> bool:
        """Return whether the effect of an action has not ended."""
        if isinstance(action, PauseAction):
            return action.node in self._paused
        return self._storage_of(action).name in self._full

    def end(self, action: PauseAction | FillAction) -> None:
        """End the effect of an action."""
        if isinstance(action, PauseAction):
            self._proceed(action.node)
        else:
            self._free(self._storage_of(action))

    @contextmanager
    def _position(self, nodes: Sequence[str]) -> Iterator[Callable[[], None]]:
        """Check that the nodes run; what is yielded notes where the primary is, if it runs and has had no fault yet."""
        for node in nodes:
            if not self._servers[node].alive():
                raise RunError(f"{node} does not run", hint="start it first, or leave this action out")
        if self.marks.fault_ns is not None or not self._servers[self.primary].alive():
            yield lambda: None
            return
        doing = "read how far WAL has been inserted"
        with database_errors(doing, self.primary), closing(connect(self.control())) as control:

            def note() -> None:
                self.marks.primary_lsn = inserted_lsn(control)

            yield note

    def _note_fault(self, action: ServerAction, at_ns: int) -> None:
        self.marks.faults.append(action.what())
        if self.marks.fault_ns is None:
            self.marks.fault_ns = self.marks.resumed_ns = at_ns

    def _crash(self, action: KillAction, note: Callable[[], None]) -> int:
        server = self._servers[action.node]
        if self._patroni is None:
            return server.crash(note)
        if action.machine:
            self._patroni.kill_member(action.node)
        return server.crash(note, restarted_by_other=True)

    def _pause(self, action: PauseAction, node: str) -> None:
        with self._position([node]) as note:
            note()
        self._paused.add(node)
        self._note_fault(action, self._servers[node].suspend())

    def _proceed(self, node: str) -> None:
        if node in self._paused:
            self._servers[node].proceed()
            self._paused.discard(node)

    def _fill(self, action: FillAction) -> None:
        storage = self._storage_of(action)
        with self._position([action.node]) as note:
            note()
        self._note_fault(action, time.monotonic_ns())
        self._full[storage.name] = storage
        storage.fill_up()

    def _free(self, storage: Storage) -> None:
        if storage.name in self._full:
            storage.end_faults()
            del self._full[storage.name]

    def _cut_power(self, action: PowerAction, nodes: Sequence[str]) -> None:
        powers = {node: self._power_of(node) for node in nodes}
        with self._position(nodes) as note:
            note()
        self._note_fault(action, time.monotonic_ns())
        for number, (node, power) in enumerate(powers.items()):
            self._off[node] = power
            power.cut(action.mode, number)
        for node in nodes:
            self._servers[node].lose_power()
            self._paused.discard(node)
        self.marks.unpowered |= set(nodes)
        self.marks.unsynced |= {node for node in nodes if not has_fsync(self._cluster.settings_of(self._variant, node))}

    def _start(self, node: str) -> None:
        self._proceed(node)
        self._restore_power(node)
        began = time.monotonic_ns()
        self._servers[node].start(self._cluster.settings_of(self._variant, node))
        if node == self.primary:
            self.marks.resumed_ns = began
            self.marks.recovery = self._servers[node].recovery()

    def _power_of(self, node: str) -> Power:
        cluster = self._cluster
        storages = cluster.context.closure(tuple(dict.fromkeys(cluster.roles[node].values())))
        return Power(storages, "all", cluster.runner, cluster.journal)

    def _storage_of(self, action: OfPlace) -> Storage:
        return self._cluster.context.storages[storage_that_holds(action.holds, self._cluster.roles[action.node])]

    def _restore_power(self, node: str) -> None:
        if node in self._off:
            self._off[node].restore()
            del self._off[node]

    def _promote(self, node: str, candidates: tuple[str, ...]) -> None:
        standby = self._servers[node]
        if received_bytes(standby) is None:
            raise RunError(f"{node} is no standby that answers")
        promote(standby)
        marks = self.marks
        marks.promoted_ns, marks.promoted, marks.candidates = time.monotonic_ns(), node, candidates
        self.check_one_primary()
        marks.switch_lsn = switch_lsn(standby)

    def _fail_over(self, action: FailoverAction, ended: Event) -> None:
        if self._patroni is not None:
            self._let_patroni(self._patroni, action, ended)
            return
        self._await_failure(action, ended)
        self.marks.detected_ns = time.monotonic_ns()
        old = self.primary
        self._servers[old].crash()  # fenced: it may only hang, and answer again later
        self._paused.discard(old)
        self.marks.resumed_ns = time.monotonic_ns()
        received = {name: at for name in self.standbys if (at := received_bytes(self._servers[name])) is not None}
        if not received:
            raise RunError("there is no standby that answers, to be promoted")
        chosen = action.to or max(received, key=lambda name: received[name])
        self._promote(chosen, (action.to,) if action.to else tuple(received))
        self._let_follow(old, chosen, received)
        if action.rejoin == "none":
            return
        self._restore_power(old)
        self._servers[old], self.marks.rejoin = self._cluster.rejoin(
            old, chosen, self._variant, by_rewind=action.rejoin == "rewind"
        )

    def _let_patroni(self, patroni: PatroniCluster, action: FailoverAction, ended: Event) -> None:
        """Wait until Patroni has promoted a standby, or started the old primary again, and until the old primary is back."""
        old = self.primary
        asked_ns = time.monotonic_ns()
        while (chosen := patroni.leader()) in (None, old):
            if self.marks.fault_ns is not None and takes_writes(self._servers[old]):
                self.marks.restarted = not self._servers[old].alive()  # not the one that we started
                return
            if ended.is_set():
                raise RunError(
                    f"Patroni had neither promoted a standby nor started {old} again when the load had ended; "
                    f"its leader: {chosen or 'none'}",
                    hint="a longer measure.duration, or a shorter ttl and loop_wait in [server.patroni]",
                )
            cancel.sleep(_ASK_AGAIN_S)
            asked_ns = time.monotonic_ns()
        assert chosen is not None, "it is another node"
        marks, standby = self.marks, self._servers[chosen]
        marks.detected_ns, marks.resumed_ns = time.monotonic_ns(), asked_ns
        await_promoted(standby)
        marks.promoted_ns, marks.promoted, marks.candidates = time.monotonic_ns(), chosen, self.standbys
        self.check_one_primary()
        marks.switch_lsn = switch_lsn(standby)
        if action.rejoin == "none":
            return
        began = time.monotonic()
        if not patroni.has_member(old):
            patroni.start_member(old)
        patroni.await_rejoined(old, chosen)
        marks.rejoin = Rejoin(how=patroni.how_rejoined(old), duration_s=time.monotonic() - began)

    def _await_failure(self, action: FailoverAction, ended: Event) -> None:
        """Probe the primary until as many probes as asked for have failed in a row."""
        failed = 0
        due = time.monotonic()
        while failed < action.probes:
            if ended.is_set() and failed == 0:
                raise RunError("the primary answered every probe until the load had ended")
            failed = 0 if self._answers() else failed + 1
            due = max(due + action.probe_interval_s, time.monotonic())
            if failed < action.probes:
                cancel.sleep(due - time.monotonic())

    def _answers(self) -> bool:
        import psycopg

        server = self._servers[self.primary]
        try:
            with connect(server.control, timeout_s=_PROBE_TIMEOUT_S) as control:
                control.execute("select 1")
        except psycopg.Error:
            return False
        return True

    def _let_follow(self, old: str, new: str, received: Mapping[str, float]) -> None:
        """Have the other standbys of the old primary stream from the new one."""
        for name in received:
            standby = self._servers[name]
            if name != new and isinstance(standby, Standby) and standby.upstream is self._as_before[old]:
                follow(standby, self._servers[new], self._cluster.settings_of(self._variant, name))


def ended_well(faults: ServerFaults | None) -> str | None:
    """Return why a trial with faults failed: no node, or more than one, takes writes in the end."""
    if faults is None:
        return None
    try:
        faults.check_one_primary()
    except PlinthError as error:
        return error.message
    return None


def faults_of(cluster: LiveCluster, variant: Variant) -> AbstractContextManager[ServerFaults | None]:
    """Return what does the faults of the experiment's actions; None without any. On exit it repairs the servers."""
    has_faults = server_actions(cluster.plan.experiment.measure.actions)
    return ServerFaults(cluster, variant) if has_faults else nullcontext()


def patroni_of(cluster: LiveCluster, variant: Variant) -> PatroniCluster | None:
    """Return what conducts the failover of a variant; None where Plinth does."""
    if variant.patroni is None:
        return None
    actions = cluster.plan.experiment.measure.actions
    rejoin = next((action.rejoin for action in actions if isinstance(action, FailoverAction)), "none")
    context, servers = cluster.context, cluster.servers
    places = {node.name: context.host_of(node).name for node in cluster.planned.nodes}
    machines: dict[str | None, tuple[PatroniMachine, str]] = {}
    for name in etcd_machines(places.values()):
        here = {node: server for node, server in servers.items() if places[node] == name}
        # Its programs are reached as its servers, or, without one, as this machine by the hosts.
        address = next((str(one.connection.host) for one in here.values()), addresses_of(context.hosts).get(name))
        assert address is not None, "the plan was checked for it"
        machine = context.hosts[name].patroni(
            cluster.planned, here, context.owners[name], context.log, cluster.runner, cluster.journal
        )
        machines[name] = machine, address
    return PatroniCluster(servers, places, machines, variant.patroni, by_rewind=rejoin != "backup")
