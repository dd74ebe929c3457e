"""The servers of one cluster while a run uses them, and what trials and power cuts do to them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from plinth.model.base import SettingValue
from plinth.model.disk import DiskCredits
from plinth.model.errors import PlinthError
from plinth.model.facts import ServerFacts
from plinth.model.outage import Rejoin
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, Variant
from plinth.model.standby import StandbyFacts
from plinth.model.trial import Restored
from plinth.run.context import RunContext
from plinth.run.host import Host
from plinth.run.listener import Listener
from plinth.run.provision.restoring import loaded_copies
from plinth.server.copies.loaded_copy import LoadedCopy
from plinth.server.external.external_server import ExternalServer
from plinth.server.layout import server_step_id
from plinth.server.node import Server, Standby
from plinth.server.replication.standby import await_caught_up, settings_of_standby
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner

# What a server logs by a crash: each backend of hundreds says in three lines that it ends, then recovery begins.
_CRASH_LINES = 2_000


class Node(NamedTuple):
    """A running server of a topology, with its settings taken and read back."""

    name: str
    server: Server | ExternalServer
    facts: ServerFacts
    host: Host
    """The machine that Plinth has started it on; of an external server this one, which it may not be on."""
    postmaster_pid: int | None
    """On its host. None: it is an external server."""
    log: LogFile | None
    """None: it is an external server."""

    @property
    def is_managed(self) -> bool:
        """Whether Plinth has started it."""
        return self.postmaster_pid is not None

    def stopped_words(self) -> str | None:
        """Say which processes of a managed server are stopped, if some are."""
        if self.postmaster_pid is None:
            return None
        stopped, processes = self.host.stopped_processes(self.postmaster_pid)
        if not stopped:
            return None
        which = "all" if len(stopped) == processes else str(len(stopped))
        return (
            f"{which} processes of the server are stopped (SIGSTOP, or a debugger); the first is pid {stopped[0]}, "
            "which kill -CONT lets go on"
        )


class Topology(NamedTuple):
    """The nodes that run for a variant; the load goes to the primary."""

    nodes: tuple[Node, ...]

    @property
    def primary(self) -> Node:
        """The node that takes writes."""
        return next(node for node in self.nodes if node.name == PRIMARY)


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
    servers: dict[str, Server] = field(default_factory=dict, init=False)
    external: ExternalServer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.storages = self.context.closure(self.planned.storages)
        """Those that it is stored on, and all that they are built on, each after what it is built on."""
        self.storage_names = {storage.name for storage in self.storages}
        self.steps = server_step_id(self.planned.id, "")
        """What the ids of all steps of its servers begin with."""
        self.roles = {node.name: node.roles for node in self.planned.nodes}
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
        return dict(variant.settings) if node == PRIMARY else self.as_standby(variant, node)

    def as_standby(self, variant: Variant, node: str) -> dict[str, SettingValue]:
        """Return what a node gets while it is a standby, as a former primary is after a failover."""
        of_cluster = [one.settings for one in self.plan.variants if one.cluster == self.planned.id]
        return settings_of_standby(variant.settings, variant.standby_settings.get(node, {}), of_cluster)

    def rejoin(self, old: str, primary: str, variant: Variant, *, by_rewind: bool) -> tuple[Standby, Rejoin]:
        """Bring a node, once its server has ended, back as a standby of a promoted one, on its machine."""
        node = next(one for one in self.planned.nodes if one.name == old)
        return self.context.host_of(node).rejoin(
            self.planned,
            node,
            self.servers[old],
            self.servers[primary],
            self.as_standby(variant, PRIMARY),
            by_rewind,
            self.runner,
            self.journal,
        )

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

    def stop(self) -> None:
        """Shut down the servers that run, each before those that stream from it: it ends once they have all of its WAL."""
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
