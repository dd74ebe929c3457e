"""The servers of one cluster while a run uses them, and what trials and power cuts do to them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from plinth.model.action import DiskAction
from plinth.model.base import SettingValue
from plinth.model.disk import DiskCredits
from plinth.model.errors import PlinthError
from plinth.model.fault import FailoverAction, OfPlace, server_actions
from plinth.model.flashback import SnapshotAction
from plinth.model.patroni import etcd_machines
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, Variant, storage_that_holds
from plinth.model.standby import StandbyFacts
from plinth.model.trial import Restored
from plinth.run.checks.hosts import addresses_of
from plinth.run.context import RunContext
from plinth.run.faults.emulated_disks import TrialDisks
from plinth.run.faults.server_faults import ServerFaults
from plinth.run.listener import Listener
from plinth.run.power_cuts.atlas import Atlas
from plinth.run.power_cuts.power import Power
from plinth.run.power_cuts.power_cut import CutSubject
from plinth.run.provision.network import RunNetwork, TrialLinks
from plinth.run.provision.restoring import loaded_copies
from plinth.run.provision.topology import Node, Topology
from plinth.run.trial.snapshots import TrialSnapshots, live_snapshot
from plinth.server.copies.loaded_copy import LoadedCopy
from plinth.server.external.external_server import ExternalServer
from plinth.server.layout import server_step_id
from plinth.server.replication.patroni import PatroniCluster
from plinth.server.replication.patroni_machine import PatroniMachine
from plinth.server.replication.standby import Standby, await_caught_up, settings_of_standby
from plinth.server.server import Server
from plinth.storage import Storage
from plinth.storage.devices.disk_control import DiskControl
from plinth.storage.kinds.emulated import Emulated
from plinth.system.journal import Journal
from plinth.system.paths import work_dir
from plinth.system.runner import Runner

# What a server logs by a crash: each backend of hundreds says in three lines that it ends, then recovery begins.
_CRASH_LINES = 2_000


@dataclass(eq=False)
class LiveCluster:
    """The servers of one cluster of a plan.

    Each is in `servers`, by its node, before it is started, so that it can be ended when its preparation fails. A server that
    Plinth has not made is `external`.
    """

    planned: PlannedCluster
    plan: Plan
    context: RunContext
    runner: Runner
    journal: Journal
    listener: Listener
    _network: RunNetwork | None
    servers: dict[str, Server] = field(default_factory=dict, init=False)
    external: ExternalServer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.storages = self.context.closure(self.planned.storages)
        """Those that it is stored on, and all that they are built on, each after what it is built on."""
        self.storage_names = {storage.name for storage in self.storages}
        self.steps = server_step_id(self.planned.id, "")
        """What the ids of all steps of its servers begin with."""
        self._roles = {node.name: node.roles for node in self.planned.nodes}
        self.host = self.context.host_of(self.planned.primary)
        """The machine of its primary."""
        self.stays_after_kill = all(self.context.host_of(node).stays_after_kill for node in self.planned.nodes)
        """Whether all of it is still there when the run is killed, for one that is resumed."""

    @property
    def primary(self) -> Server:
        """The server that clients write to."""
        return self.servers[PRIMARY]

    def settings_of(self, variant: Variant, node: str) -> dict[str, SettingValue]:
        """Return what a variant asks for on a node: the primary's settings, or those of a standby, which include them."""
        return dict(variant.settings) if node == PRIMARY else self._as_standby(variant, node)

    def _as_standby(self, variant: Variant, node: str) -> dict[str, SettingValue]:
        """Return what a node gets while it is a standby, as a former primary is after a failover."""
        of_cluster = [one.settings for one in self.plan.variants if one.cluster == self.planned.id]
        return settings_of_standby(variant.settings, variant.standby_settings.get(node, {}), of_cluster)

    def activate(self, variant: Variant, *, fresh: bool = False) -> Topology:
        """Have the servers run with the settings of a variant, which are read back.

        `fresh`: stop them first, so that every trial begins with the same empty shared buffers.
        """
        if self.external is not None:
            server = self.external.with_options(variant.connection_options)
            return Topology((Node(PRIMARY, server, server.facts(), self.host, postmaster_pid=None, log=None),))
        if fresh:
            self.stop()
        asked = {name: self.settings_of(variant, name) for name in self.servers}
        for name, server in self.servers.items():  # each after the one that it streams from
            server.apply(asked[name])
        standbys = self.await_standbys()
        nodes: list[Node] = []
        for name, server in self.servers.items():
            facts = server.facts(asked[name]).model_copy(update={"standby": standbys.get(name)})
            planned = next(node for node in self.planned.nodes if node.name == name)
            host = self.context.host_of(planned)
            nodes.append(Node(name, server, facts, host, server.postmaster_pid, server.layout.log))
        return Topology(tuple(nodes))

    def await_standbys(self) -> dict[str, StandbyFacts]:
        """Wait until the running standbys have replayed all that the primary has written; return the facts of each."""
        standbys = [server for server in self.servers.values() if isinstance(server, Standby)]
        facts = await_caught_up(self.primary, standbys, self.listener.progress) if standbys else {}
        for standby in standbys:
            if standby.is_apart:
                reached = standby.upstream.connection
                node = next(one for one in self.planned.nodes if one.name == standby.name)
                round_trip_ns = self.context.host_of(node).round_trip_ns(str(reached.host), reached.port)
                facts[standby.name] = facts[standby.name].model_copy(update={"round_trip_ns": round_trip_ns})
        return facts

    def restart_cold(self, variant: Variant) -> Topology:
        """Stop the servers, drop the page cache of their machine, and start them as they were."""
        self.stop()
        self._drop_page_cache()
        return self.activate(variant)

    def forget_page_cache(self) -> None:
        """Drop the page cache where servers have a memory limit: what Plinth read or wrote for them is not counted as theirs."""
        if self.planned.primary.server.memory_bytes is not None:
            self._drop_page_cache()

    def _drop_page_cache(self) -> None:
        storages = [self.context.storages[name] for name in self.planned.storages]
        for name, host in self.context.hosts.items():
            mounts = [storage.mount_point for storage in storages if storage.spec.host == name]
            if mounts:
                host.drop_page_cache(mounts, self.runner)

    def copies(self) -> list[LoadedCopy]:
        """Return the copies of the files as loaded, one for each node; none where trials do not restore them."""
        if not self.planned.restored:
            return []
        return loaded_copies(self.planned, self.plan, self.context, self.runner, self.journal)

    def restore(self) -> Restored | None:
        """Put the files back to what they were after loading; None where that is not planned."""
        copies = self.copies()
        if not copies:
            return None
        self.stop()
        restored = {copy.node: copy.restore(self.listener.progress) for copy in copies}
        self.forget_page_cache()
        return Restored(
            how={
                role if node == PRIMARY else f"{role} of {node}": how
                for node, one in restored.items()
                for role, how in one.how.items()
            },
            duration_s=sum(one.duration_s for one in restored.values()),
        )

    def links(self, variant: Variant) -> AbstractContextManager[TrialLinks | None]:
        """While it is entered, the links of the emulated network are as the variant asks; None where there is no network,
        or no standby."""
        if self._network is None or not self.planned.standbys:
            return nullcontext()
        return self._network.links(variant, self.planned)

    def faults(self, variant: Variant) -> AbstractContextManager[ServerFaults | None]:
        """Return what does the faults of the experiment's actions; None without any. On exit it repairs the servers."""
        if not server_actions(self.plan.experiment.measure.actions):
            return nullcontext()
        return ServerFaults(
            self.servers,
            lambda node: self.settings_of(variant, node),
            self._as_standby(variant, PRIMARY),
            self._power_of,
            self._storage_of,
            self.runner,
            self.journal,
            self._patroni(variant),
        )

    def _power_of(self, node: str) -> Power:
        storages = self.context.closure(tuple(dict.fromkeys(self._roles[node].values())))
        return Power(storages, "all", self.runner, self.journal)

    def _storage_of(self, action: OfPlace) -> Storage:
        return self.context.storages[storage_that_holds(action.holds, self._roles[action.node])]

    def _patroni(self, variant: Variant) -> PatroniCluster | None:
        """Return what conducts the failover of a variant; None where Plinth does."""
        if variant.patroni is None:
            return None
        actions = self.plan.experiment.measure.actions
        rejoin = next((action.rejoin for action in actions if isinstance(action, FailoverAction)), "none")
        places = {node.name: self.context.host_of(node).name for node in self.planned.nodes}
        machines = {
            name: (self._patroni_machine(name, places), self._patroni_address(name, places))
            for name in etcd_machines(places.values())
        }
        return PatroniCluster(self.servers, places, machines, variant.patroni, by_rewind=rejoin != "backup")

    def _patroni_machine(self, machine: str | None, places: Mapping[str, str | None]) -> PatroniMachine:
        here = {name: server for name, server in self.servers.items() if places[name] == machine}
        owner = self.context.owners[machine]
        host = self.context.hosts[machine]
        return host.patroni(self.planned, here, owner, self.context.log, self.runner, self.journal)

    def _patroni_address(self, machine: str | None, places: Mapping[str, str | None]) -> str:
        """Return where the programs of a machine are reached: as its servers, or, without one, as this machine by the hosts."""
        for name, server in self.servers.items():
            if places[name] == machine:
                return str(server.connection.host)
        address = addresses_of(self.context.hosts).get(machine)
        assert address is not None, "the plan was checked for it"
        return address

    def credits(self) -> dict[str, Callable[[], DiskCredits]]:
        """Make the credits of its volumes what they are when a trial begins; return how each is asked what is left, by name."""
        found: dict[str, Callable[[], DiskCredits]] = {}
        for storage in self.storages:
            if storage.credits() is None:
                continue
            storage.reset_credits()
            disks = storage.disks()
            for number, disk in enumerate(disks, 1):
                name = storage.name if len(disks) == 1 else f"{storage.name} {number}"
                found[name] = lambda disk=disk: disk.status().credits
        return found

    def refill_credits(self) -> None:
        """Give its volumes all their credits: what comes after a load is not measured, and would take minutes at a small baseline."""
        for storage in self.storages:
            storage.refill_credits()

    def disks(self) -> AbstractContextManager[TrialDisks | None]:
        """Return what changes emulated disks as actions ask for; None without any. On exit it changes them back."""
        if not any(isinstance(action, DiskAction) for action in self.plan.experiment.measure.actions):
            return nullcontext()
        return TrialDisks(self._disks_of)

    def _disks_of(self, action: DiskAction) -> list[DiskControl]:
        of_node = self._roles[action.node]
        names = of_node.values() if action.holds is None else [storage_that_holds(action.holds, of_node)]
        return [disk for storage in self.context.closure(tuple(dict.fromkeys(names))) for disk in storage.disks()]

    def snapshots(self, variant: Variant) -> AbstractContextManager[TrialSnapshots | None]:
        """Return what takes the snapshots that actions ask for; None without any. On exit it removes them."""
        if not any(isinstance(action, SnapshotAction) for action in self.plan.experiment.measure.actions):
            return nullcontext()
        return TrialSnapshots(
            self.primary,
            self.settings_of(variant, PRIMARY),
            lambda number: live_snapshot(self.context, self.planned, number),
            self.runner,
            self.journal,
            self.listener.progress,
        )

    def power(self) -> Power:
        """Return the power of all its storages."""
        durability = self.plan.experiment.durability
        assert durability is not None, "cuts are planned"
        return Power(self.storages, durability.disks, self.runner, self.journal)

    def atlas_of(self, subject: CutSubject) -> Atlas:
        """Return what records its storages, which are emulated disks, as the plan was checked for."""
        storages = [storage for storage in self.storages if isinstance(storage, Emulated)]
        return Atlas(subject, storages, self.journal, work_dir() / f"{self.journal.label}-recording")

    def stop(self) -> None:
        """Shut down the servers that run, the primary first: it ends when its standbys have all of its WAL, and each of them when
        the next has."""
        for server in self.servers.values():
            if server.alive():
                server.shutdown()

    def end(self) -> None:
        """Kill the servers that run; what goes wrong is noted. A server recovers when it is next started."""
        for server in self.servers.values():
            self._attempt(partial(_end, server))

    def abandon(self) -> None:
        """Give up the servers of a storage that has failed."""
        servers, self.servers = self.servers, {}
        for server in servers.values():
            self._attempt(partial(server.lose_power, for_good=True))

    def lose(self) -> None:
        """End the servers as a power cut does, and forget them: they are made again."""
        servers, self.servers = self.servers, {}
        for server in servers.values():
            server.lose_power()

    def close(self) -> None:
        """Undo what was made on an external server; what goes wrong is noted."""
        if (external := self.external) is not None:
            self._attempt(lambda: external.close(self.journal))

    def _attempt(self, ending: Callable[[], object]) -> None:
        """End one thing; what goes wrong with it must not keep the rest from being undone."""
        try:
            ending()
        except PlinthError as error:
            self.listener.note(f"{error.message} ({error.where})")

    def panics(self) -> list[str]:
        """Return the PANIC lines in the logs of the servers since their last start."""
        return [line for server in self.servers.values() for line in server.log_tail(_CRASH_LINES) if "PANIC:" in line]


def _end(server: Server) -> None:
    if server.alive():
        server.crash()
    server.fetch_log()  # also of one that has died
