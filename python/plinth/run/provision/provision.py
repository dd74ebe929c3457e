"""What a run uses: storages made, clusters initialised and loaded; the servers of one cluster run at a time."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from plinth.bundle import BundleWriter
from plinth.model.disk_action import DiskAction
from plinth.model.errors import MissingCapability, PlinthError, StorageBroken, UsageError
from plinth.model.facts import StorageFacts
from plinth.model.fault import FailoverAction, OfPlace, server_actions
from plinth.model.flashback import SnapshotAction
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, Variant, storage_that_holds
from plinth.model.probe_io import IoMoment
from plinth.model.standby import StandbyFacts
from plinth.model.trial import Restored
from plinth.run.checks.machine import examine_for_run, keep_examination
from plinth.run.checks.obstacles import Obstacles
from plinth.run.context import RunContext
from plinth.run.faults.emulated_disks import TrialDisks
from plinth.run.faults.failures import Failures, reason_of
from plinth.run.faults.full_storage import hint_at_full_storage
from plinth.run.faults.server_faults import ServerFaults
from plinth.run.listener import Listener
from plinth.run.power_cuts.atlas import Atlas
from plinth.run.power_cuts.power import Power
from plinth.run.power_cuts.power_cut import CutSubject
from plinth.run.provision.cluster_preparation import ClusterPreparation
from plinth.run.provision.fsync_probe import StorageProbe
from plinth.run.provision.io_probe import StorageIoProbe
from plinth.run.provision.network import RunNetwork, TrialLinks
from plinth.run.provision.node_settings import settings_as_standby, settings_of_node
from plinth.run.provision.restoring import loaded_copies
from plinth.run.provision.storages import Storages
from plinth.run.provision.topology import Node, Topology
from plinth.run.trial.snapshots import TrialSnapshots, live_snapshot
from plinth.run.write_budget import WriteBudget
from plinth.server import (
    ExternalServer,
    Server,
    Standby,
    await_caught_up,
    server_step_id,
)
from plinth.server.replication.patroni import PatroniCluster
from plinth.storage import Storage
from plinth.storage.devices.disk_control import DiskControl
from plinth.storage.kinds.emulated import Emulated
from plinth.system.drop_caches import drop_page_cache
from plinth.system.journal import Journal, NotUndone
from plinth.system.paths import work_dir
from plinth.system.runner import Runner

# What a server logs by a crash: each backend of hundreds says in three lines that it ends, then recovery begins.
_CRASH_LINES = 2_000


class Provision:
    """Everything that a run has made. `close` undoes it, whatever happened before.

    A storage that cannot be made, or that breaks, fails with the clusters on it; the rest of the run continues.
    """

    def __init__(
        self,
        plan: Plan,
        context: RunContext,
        runner: Runner,
        journal: Journal,
        listener: Listener,
        budget: WriteBudget,
        connections: Mapping[str, str],
        obstacles: Obstacles,
    ) -> None:
        self.plan = plan
        self.context = context
        self.budget = budget
        self.failures = Failures(plan.lacking)
        self._obstacles = obstacles
        self._storages = Storages(context, runner, journal, listener, self.failures)
        self.runner = runner
        self._network = RunNetwork(context.network, runner, journal) if context.network is not None else None
        self._journal = journal
        self._listener = listener
        self._managed: dict[str, dict[str, Server]] = {}
        """The servers that Plinth has made, by cluster and node."""
        self._external: dict[str, ExternalServer] = {}
        self._planned = {cluster.id: cluster for cluster in plan.clusters}
        self._preparation = ClusterPreparation(
            plan, context, runner, journal, listener, connections, self._managed, self._external
        )

    def prepare(self, writer: BundleWriter) -> dict[str, StorageFacts]:
        """Make the storages, then initialise, start and load each cluster.

        Returns the storages as they were found, by name. Raises the error of the first that failed when no cluster
        is left to measure on.
        """
        for name, error in self._obstacles.storages.items():
            self._storages.mark_failed(name, error)
        for name, error in self._obstacles.clusters.items():
            self.failures.add_cluster(name, error)
            self._listener.note(f"cluster {name} cannot be made: {reason_of(error)}")
        for name, error in self._obstacles.variants.items():
            self.failures.add_variant(name, error)
            self._listener.note(f"variant {name} cannot be measured: {reason_of(error)}")
        made: dict[str, StorageFacts] = {}
        for storage in self.context.used_storages(self.plan.clusters):
            if facts := self._storages.prepare(storage):
                for note in facts.notes:
                    self._listener.note(f"storage {storage.name}: {note}")
                writer.write_storage(facts)
                made[storage.name] = facts
                self.budget.add(facts)
        self._probe(made.values(), writer)
        self.probe_io("empty", made, writer)
        found = examine_for_run(made.values(), self.plan.storages, self.plan.is_external, self._listener)
        keep_examination(writer, found)
        if self._network is not None:
            self._network.make(self._listener)
        for cluster in self.plan.clusters:
            if self._failure_of(cluster) is None:
                self._prepare_cluster(cluster, writer)
        self.probe_io("loaded", made, writer)
        error = self.failures.error()
        if error is not None and all(self._failure_of(cluster) for cluster in self.plan.clusters):
            raise error
        return made

    def _probe(self, made: Iterable[StorageFacts], writer: BundleWriter) -> None:
        """Measure what a durable write takes on each storage; one that breaks by it is given up, like any other time."""
        probe = StorageProbe(self.plan, writer, self._listener)
        for facts in made:
            storage = self.context.storages[facts.name]
            try:
                with self._storages.looked_after([facts.name]):
                    probe.probe(storage, facts)
            except StorageBroken as broken:
                self._give_up(broken)

    def probe_io(self, moment: IoMoment, made: Iterable[str], writer: BundleWriter) -> None:
        """Measure the I/O of each storage if the experiment asks for it at this moment, while no server of ours runs."""
        probe = StorageIoProbe(self.plan, writer, self._listener)
        if not probe.is_wanted(moment):
            return
        for cluster in self._managed:
            self._stop(cluster)
        for name in made:
            if self.failures.of_storages([name]) is not None:
                continue
            try:
                with self._storages.looked_after([name]):
                    probe.probe(moment, self.context.storages[name])
            except StorageBroken as broken:
                self._give_up(broken)

    def failure(self, variant: Variant) -> PlinthError | None:
        """Why the trials of a variant cannot be run: it failed by itself, or what it is stored on did."""
        return self.failures.of_variant(variant.id) or self._failure_of(self._planned[variant.cluster])

    def looked_after(self, variant: Variant) -> AbstractContextManager[None]:
        """While it is entered, StorageBroken is raised when a storage of the variant fails."""
        return self._storages.looked_after(self._names_needed(self._planned[variant.cluster]))

    def activate(self, variant: Variant, fresh: bool) -> Topology:
        """The servers of a variant with their settings taken and read back; every other managed one is stopped.

        `fresh`: started anew, so that every trial begins with the same empty shared buffers.
        """
        external = self._external.get(variant.cluster)
        if external is not None:
            server = external.with_options(variant.connection_options)
            return Topology((Node(PRIMARY, server, server.facts(), postmaster_pid=None, log=None),))
        for cluster in self._managed:
            if fresh or cluster != variant.cluster:
                self._stop(cluster)
        servers = self._managed[variant.cluster]
        asked = {name: settings_of_node(self.plan, variant, name) for name in servers}
        for name, server in servers.items():  # each after the one that it streams from
            server.apply(asked[name])
        standbys = self.await_standbys(variant)
        nodes: list[Node] = []
        for name, server in servers.items():
            facts = server.facts(asked[name]).model_copy(update={"standby": standbys.get(name)})
            nodes.append(Node(name, server, facts, server.postmaster_pid, server.layout.log))
        return Topology(tuple(nodes))

    def await_standbys(self, variant: Variant) -> dict[str, StandbyFacts]:
        """Wait until the running standbys of a variant have replayed all that its primary has written; how each is then."""
        servers = self._managed.get(variant.cluster, {})
        standbys = [server for server in servers.values() if isinstance(server, Standby)]
        return await_caught_up(servers[PRIMARY], standbys, self._listener.progress) if standbys else {}

    def links(self, variant: Variant) -> AbstractContextManager[TrialLinks | None]:
        """While it is entered, the links of the emulated network are as the variant asks; None where there is no network, or
        no standby."""
        cluster = self._planned[variant.cluster]
        if self._network is None or not cluster.standbys:
            return nullcontext()
        return self._network.links(variant, cluster)

    def faults(self, variant: Variant) -> AbstractContextManager[ServerFaults | None]:
        """What does the faults of the experiment's actions; None without any. Left, it sets the servers right again."""
        if not server_actions(self.plan.experiment.measure.actions):
            return nullcontext()
        planned = self._planned[variant.cluster]
        roles = {node.name: node.roles for node in planned.nodes}

        def power_of(node: str) -> Power:
            storages = self.context.closure(tuple(dict.fromkeys(roles[node].values())))
            return Power(storages, "all", self.runner, self._journal)

        def root_of(action: OfPlace) -> Path:
            return self.context.storages[storage_that_holds(action.holds, roles[action.node])].mount_point

        return ServerFaults(
            self._managed[variant.cluster],
            lambda node: settings_of_node(self.plan, variant, node),
            settings_as_standby(self.plan, variant, PRIMARY),
            power_of,
            root_of,
            self.runner,
            self._journal,
            self._patroni(variant),
        )

    def _patroni(self, variant: Variant) -> PatroniCluster | None:
        """What conducts the failover of a variant; None where Plinth itself does."""
        if variant.patroni is None:
            return None
        actions = self.plan.experiment.measure.actions
        rejoin = next((action.rejoin for action in actions if isinstance(action, FailoverAction)), "none")
        return PatroniCluster(
            variant.cluster,
            work_dir() / f"{self._journal.label}-patroni-{variant.cluster}",
            self._managed[variant.cluster],
            variant.patroni,
            self.context.log,
            self.runner,
            self._journal,
            by_rewind=rejoin != "backup",
        )

    def disks(self, variant: Variant) -> AbstractContextManager[TrialDisks | None]:
        """What changes the variant's emulated disks, as actions ask for; None without any. Left, it changes them back."""
        if not any(isinstance(action, DiskAction) for action in self.plan.experiment.measure.actions):
            return nullcontext()
        roles = {node.name: node.roles for node in self._planned[variant.cluster].nodes}

        def disks_of(action: DiskAction) -> list[DiskControl]:
            of_node = roles[action.node]
            names = of_node.values() if action.holds is None else [storage_that_holds(action.holds, of_node)]
            return [disk for storage in self.context.closure(tuple(dict.fromkeys(names))) for disk in storage.disks()]

        return TrialDisks(disks_of)

    def snapshots(self, variant: Variant) -> AbstractContextManager[TrialSnapshots | None]:
        """What takes the snapshots that the experiment's actions ask for; None without any. Left, it removes them."""
        if not any(isinstance(action, SnapshotAction) for action in self.plan.experiment.measure.actions):
            return nullcontext()
        planned = self._planned[variant.cluster]
        return TrialSnapshots(
            self._managed[planned.id][PRIMARY],
            settings_of_node(self.plan, variant, PRIMARY),
            lambda number: live_snapshot(self.context, planned, number),
            self.runner,
            self._journal,
            self._listener.progress,
        )

    def restore(self, variant: Variant) -> Restored | None:
        """Put the files of a variant's servers back to what they were after loading; None where that is not planned."""
        planned = self._planned[variant.cluster]
        if not planned.restored:
            return None
        self._stop(planned.id)
        copies = loaded_copies(planned, self.plan, self.context, self.runner, self._journal)
        restored = {copy.node: copy.restore(self._listener.progress) for copy in copies}
        return Restored(
            how={
                role if node == PRIMARY else f"{role} of {node}": how
                for node, one in restored.items()
                for role, how in one.how.items()
            },
            duration_s=sum(one.duration_s for one in restored.values()),
        )

    def restart_cold(self, variant: Variant) -> Topology:
        """Stop the servers of a variant, drop the page cache of the machine, and start them as they were."""
        self._stop(variant.cluster)
        storages = self.context.storages
        drop_page_cache([storages[name].mount_point for name in self._planned[variant.cluster].storages], self.runner)
        return self.activate(variant, fresh=False)

    def server_of(self, variant: Variant) -> Server:
        """The running primary of a variant, with its settings; the servers of other clusters are stopped."""
        self.activate(variant, fresh=False)
        return self._managed[variant.cluster][PRIMARY]

    def power_of(self, variant: Variant) -> Power:
        """The power of all storages of a variant."""
        durability = self.plan.experiment.durability
        assert durability is not None, "cuts are planned"
        storages = self._needed_by(self._planned[variant.cluster])
        return Power(storages, durability.disks, self.runner, self._journal)

    def atlas_of(self, variant: Variant, subject: CutSubject) -> Atlas:
        """What records the storages of a variant, which are emulated disks, as the plan was checked for."""
        storages = [
            storage for storage in self._needed_by(self._planned[variant.cluster]) if isinstance(storage, Emulated)
        ]
        place = work_dir() / f"{self._journal.label}-recording"
        return Atlas(subject, storages, self._journal, place)

    def make_again(self, variant: Variant) -> None:
        """Make the storages of a variant anew, and every cluster that has something on them: after damage.

        What fails then is recorded as at the first time.
        """
        names = self._names_needed(self._planned[variant.cluster])
        touched = [cluster for cluster in self.plan.clusters if names & self._names_needed(cluster)]
        storages = self.context.closure({name for cluster in touched for name in self._names_needed(cluster)})
        for cluster in touched:
            for server in self._managed.pop(cluster.id, {}).values():
                server.lose_power()
            self._undo_or_raise(server_step_id(cluster.id, ""))
        self._storages.make_again(storages)
        for cluster in touched:
            if self._failure_of(cluster) is None:
                self._prepare_cluster(cluster, None)

    def _undo_or_raise(self, steps: str) -> None:
        for kept in self._journal.undo_steps(steps, self.runner):
            raise kept.error

    def after_failure(self, variant: Variant) -> str | None:
        """End the servers of a trial that failed, as a crash does, and give up those of its storages that have failed.

        Returns why one of them failed, or else with which words a server crashed, if it did. A server recovers when it is
        next started; one that is just recovering from the crash of a backend may never end when it is asked to.
        """
        with self._journal.ending_hung_daemons():  # one that hangs only now is given up when it is needed next
            broken = self._storages.examined(self._needed_by(self._planned[variant.cluster]))
            if broken is not None:
                self._give_up(broken)
            panics = self._panics(variant.cluster)
            self._end(variant.cluster)
        return broken.message if broken is not None else next(iter(panics), None)

    def figures(self) -> dict[str, float]:
        """Figures of the run for the live display: what was written of the budget."""
        return self.budget.figures()

    def close(self) -> tuple[NotUndone, ...]:
        """End the servers and undo every step; returns what could not be undone.

        Servers are not asked to shut down: their data goes with them, and one that has crashed might never do it.
        """
        self._listener.phase("undo what this run made")
        with self._journal.ending_hung_daemons() as ended:
            while broken := self._storages.broken():
                self._give_up(broken)
            for cluster in self._managed:
                self._end(cluster)
            for external in self._external.values():
                self._try(lambda external=external: external.close(self._journal))
            kept = self._journal.undo_all(self.runner, self._listener.progress, left_alone=self._storages.hung)
        for reason in ended:
            self._listener.note(reason)
        self._storages.close()
        return kept

    def _stop(self, cluster: str) -> None:
        """The primary first: it ends when its standbys have all of its WAL, and each of them when the next has."""
        for server in self._managed[cluster].values():
            if server.alive():
                server.shutdown()

    def _end(self, cluster: str) -> None:
        for server in self._managed.get(cluster, {}).values():
            if server.alive():
                self._try(server.crash)

    def _try(self, ending: Callable[[], object]) -> None:
        """End one thing; what goes wrong with it must not keep the rest from being undone."""
        try:
            ending()
        except PlinthError as error:
            self._listener.note(f"{error.message} ({error.where})")

    def _needed_by(self, cluster: PlannedCluster) -> list[Storage]:
        return self.context.closure(cluster.storages)

    def _names_needed(self, cluster: PlannedCluster) -> set[str]:
        return {storage.name for storage in self._needed_by(cluster)}

    def _failure_of(self, cluster: PlannedCluster) -> PlinthError | None:
        return self.failures.of_cluster(cluster.id, self._names_needed(cluster))

    def _give_up(self, broken: StorageBroken) -> None:
        """Undo at once a storage that has failed, and what is stored on it: other storages, servers."""
        failed = self._storages.force_detach(broken)
        on_it = [name for name in self._managed if self._failure_of(self._planned[name]) is broken]
        for name in on_it:
            for server in self._managed.pop(name).values():
                self._try(partial(server.lose_power, for_good=True))
        steps_of_servers = [server_step_id(name, "") for name in on_it]
        self._storages.mark_hung(failed, steps_of_servers)
        kept: list[NotUndone] = []
        for steps in steps_of_servers:
            if steps not in self._storages.hung:
                kept += self._journal.undo_steps(steps, self.runner)
        kept += self._storages.undo(failed)
        for item in kept:
            self._listener.note(f"{item}; tried again at the end")

    def _prepare_cluster(self, planned: PlannedCluster, writer: BundleWriter | None) -> None:
        """Initialise and load a cluster; without `writer`, once more, so that how that went is not kept."""
        own = [variant for variant in self.plan.variants if variant.cluster == planned.id]
        first = next((variant for variant in own if self.failures.of_variant(variant.id) is None), None)
        if first is None:
            self.failures.add_cluster(planned.id, MissingCapability(f"of cluster {planned.id} every variant failed"))
            return
        try:
            with self._storages.looked_after(self._names_needed(planned)):
                self._preparation.prepare(planned, first, writer)
        except UsageError:
            raise
        except PlinthError as error:
            self._lose_cluster(planned, error)

    def _lose_cluster(self, planned: PlannedCluster, error: PlinthError) -> None:
        broken = error if isinstance(error, StorageBroken) else self._storages.examined(self._needed_by(planned))
        if broken is not None:
            self._give_up(broken)
        else:
            self._add_last_words(planned, error)
            self.failures.add_cluster(planned.id, error)
            self._listener.note(f"cluster {planned.id} failed: {reason_of(error)}")
            self._end(planned.id)

    def _add_last_words(self, planned: PlannedCluster, error: PlinthError) -> None:
        """What a server that crashed has written to its log, where all that its client saw is that it went."""
        panics = self._panics(planned.id)
        error.details = (*error.details, *(line for line in panics[:1] if line not in error.details))
        hint_at_full_storage(error, panics, [storage.mount_point for storage in self._needed_by(planned)])

    def _panics(self, cluster: str) -> list[str]:
        """The PANIC lines in the logs of a cluster's servers since their last start."""
        servers = self._managed.get(cluster, {}).values()
        return [line for server in servers for line in server.log_tail(_CRASH_LINES) if "PANIC:" in line]
