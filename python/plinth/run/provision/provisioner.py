"""Makes the storages and clusters of a run, gives up those that fail, and undoes all of it at the end."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from plinth.bundle import BundleWriter
from plinth.model.errors import MissingCapability, PlinthError, StorageBroken, UsageError
from plinth.model.facts import StorageFacts
from plinth.model.plan import Plan, Variant
from plinth.model.probe_io import IoMoment
from plinth.network.namespaces import NetworkLayout
from plinth.run.context import RunContext
from plinth.run.failures import Failures, lacking_variants, reason_of
from plinth.run.host import Host, agent_step_id
from plinth.run.listener import Listener
from plinth.run.provision.cluster_preparation import ClusterPreparation
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.provision.probes import StorageProbes, examine_for_run
from plinth.run.provision.storages import Storages
from plinth.run.write_budget import WriteBudget
from plinth.system.full import hint_at_full_storage
from plinth.system.journal import Journal, NotUndone
from plinth.system.runner import Runner

NETWORK_STEPS = "network."
"""What the ids of all steps of the emulated network begin with."""


class Provisioner:
    """The storages and clusters of one run. `close` undoes all of them, also after a failure.

    A storage that cannot be made, or that breaks, fails with the clusters on it; the rest of the run continues. The servers of
    one cluster run at a time.
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
    ) -> None:
        self.plan = plan
        self.context = context
        self.runner = runner
        self.budget = budget
        self.failures = Failures(variants=lacking_variants(plan))
        self._journal = journal
        self._listener = listener
        self._storages = Storages(context, runner, journal, listener, self.failures)
        self._clusters = {
            planned.id: LiveCluster(planned, plan, context, runner, journal, listener) for planned in plan.clusters
        }
        self._preparation = ClusterPreparation(plan, connections)

    def prepare(self, writer: BundleWriter, lost: Failures) -> dict[str, StorageFacts]:
        """Make the storages, then initialise, start and load each cluster that is not `lost`.

        Returns the storages as they were found, by name. Raises the error of the first that failed when no cluster
        is left to measure on.
        """
        self._lose(lost)
        hosts = self.context.hosts
        load_averages = {name: host.load_average() for name, host in hosts.items()}
        made = self._make_storages(writer)
        self._probe(made.values(), writer)
        self.probe_io("empty", made, writer)
        specs, is_external = self.plan.storages, self.plan.is_external
        examine_for_run(hosts, made.values(), specs, is_external, self._listener, load_averages, writer)
        if self.context.network is not None:
            self._make_network(self.context.network)
        for cluster in self._clusters.values():
            if self._failure_of(cluster) is None:
                self._prepare_cluster(cluster, writer)
        self.probe_io("loaded", made, writer)
        error = self.failures.first()
        if error is not None and all(self._failure_of(cluster) for cluster in self._clusters.values()):
            raise error
        return made

    def _lose(self, lost: Failures) -> None:
        for name, error in lost.storages.items():
            self._storages.mark_failed(name, error)
        for name, error in lost.clusters.items():
            self.failures.clusters.setdefault(name, error)
            self._listener.note(f"cluster {name} cannot be made: {reason_of(error)}")
        for name, error in lost.variants.items():
            self.failures.variants.setdefault(name, error)
            self._listener.note(f"variant {name} cannot be measured: {reason_of(error)}")

    def _make_storages(self, writer: BundleWriter) -> dict[str, StorageFacts]:
        made: dict[str, StorageFacts] = {}
        for storage in self.context.used_storages(self.plan.clusters):
            if facts := self._storages.prepare(storage):
                for note in facts.notes:
                    self._listener.note(f"storage {storage.name}: {note}")
                writer.write_storage(facts)
                made[storage.name] = facts
                self.budget.add(facts)
        return made

    def _make_network(self, layout: NetworkLayout) -> None:
        """Make the emulated network of all clusters. What a run that was killed has left of it is undone before."""
        self._listener.phase(f"emulate the network between {', '.join(layout.nodes)}")
        for kept in self._journal.undo_steps(NETWORK_STEPS, self.runner):
            raise kept.error
        for action in layout.actions():
            self._journal.record(action.step)
            action.do(self.runner)

    def _probe(self, made: Iterable[StorageFacts], writer: BundleWriter) -> None:
        """Measure how long a durable write takes on each storage; one that breaks meanwhile is given up."""
        probes = StorageProbes(self.plan, self.context.hosts, writer, self._listener)
        for facts in made:
            with self._giving_up(facts.name):
                probes.probe_writes(self.context.storages[facts.name], facts)

    def probe_io(self, moment: IoMoment, made: Iterable[str], writer: BundleWriter) -> None:
        """Measure the I/O of each storage if the experiment asks for it at this moment; no managed server runs meanwhile."""
        probes = StorageProbes(self.plan, self.context.hosts, writer, self._listener)
        if not probes.wants_io(moment):
            return
        for cluster in self._clusters.values():
            cluster.stop()
        for name in made:
            if self.failures.of_storages([name]) is None:
                with self._giving_up(name):
                    probes.probe_io(moment, self.context.storages[name])

    @contextmanager
    def _giving_up(self, storage: str) -> Iterator[None]:
        """Cancel what is done in it when a storage fails, and give the storage up."""
        try:
            with self._storages.looked_after([storage]):
                yield
        except StorageBroken as broken:
            self._give_up(broken)

    def failure(self, variant: Variant) -> PlinthError | None:
        """Return why the trials of a variant cannot be run: it failed, or what it is stored on did."""
        return self.failures.variants.get(variant.id) or self._failure_of(self._clusters[variant.cluster])

    def switch_to(self, variant: Variant) -> LiveCluster:
        """Return the cluster of a variant; the managed servers of every other are stopped."""
        wanted = self._clusters[variant.cluster]
        if wanted.external is None:
            for cluster in self._clusters.values():
                if cluster is not wanted:
                    cluster.stop()
        return wanted

    @contextmanager
    def in_use(self, variant: Variant) -> Iterator[LiveCluster]:
        """Enter the cluster of a variant; StorageBroken is raised when one of its storages fails meanwhile."""
        with self._storages.looked_after(self._clusters[variant.cluster].storage_names):
            yield self.switch_to(variant)

    def make_again(self, variant: Variant) -> None:
        """Make the storages of a variant again after damage, and every cluster that has something on them.

        What fails then is recorded as at the first time.
        """
        names = self._clusters[variant.cluster].storage_names
        touched = [cluster for cluster in self._clusters.values() if names & cluster.storage_names]
        storages = self.context.closure({name for cluster in touched for name in cluster.storage_names})
        for cluster in touched:
            cluster.lose()
            for kept in self._journal.undo_steps(cluster.steps, self.runner):
                raise kept.error
        self._storages.make_again(storages)
        for cluster in touched:
            if self._failure_of(cluster) is None:
                self._prepare_cluster(cluster, None)

    def after_failure(self, variant: Variant) -> str | None:
        """End the servers of a trial that failed, as a crash does, and give up those of its storages that have failed.

        Returns why one of them failed, or else with which words a server crashed, if it did. A server recovers when it is
        next started; one that is just recovering from the crash of a backend may never end when it is asked to.
        """
        cluster = self._clusters[variant.cluster]
        with self._journal.ending_hung_daemons():  # one that hangs only now is given up when it is needed next
            broken = self._storages.examined(cluster.storages)
            if broken is not None:
                self._give_up(broken)
            panics = cluster.panics()
            cluster.end()
        return broken.message if broken is not None else next(iter(panics), None)

    def close(self) -> tuple[NotUndone, ...]:
        """End the servers and undo every step; returns what could not be undone.

        Servers are not asked to shut down: their data goes with them, and one that has crashed might never do it.
        """
        self._listener.phase("undo what this run made")
        with self._journal.ending_hung_daemons() as ended:
            while broken := self._storages.broken():
                self._give_up(broken)
            for cluster in self._clusters.values():
                cluster.end()
            for cluster in self._clusters.values():
                cluster.close()
            kept: tuple[NotUndone, ...] = ()
            for host in self.context.hosts.values():
                kept += self._undone_there(partial(self._end_host, host))
            kept += self._journal.undo_all(self.runner, self._listener.progress, left_alone=self._storages.hung)
        for name, host in self.context.hosts.items():
            if name is not None and (error := host.violation()):
                self.failures.hosts.setdefault(name, error)
        for reason in ended:
            self._listener.note(reason)
        self._storages.close()
        return kept

    def _failure_of(self, cluster: LiveCluster) -> PlinthError | None:
        return self.failures.of_cluster(cluster.planned.id, cluster.storage_names)

    def _give_up(self, broken: StorageBroken) -> None:
        """Undo at once a storage that has failed, and what is stored on it: other storages, servers."""
        failed = self._storages.force_detach(broken)
        on_it = [one for one in self._clusters.values() if one.servers and self._failure_of(one) is broken]
        for cluster in on_it:
            cluster.abandon()
        self._storages.mark_hung(failed, [cluster.steps for cluster in on_it])
        kept: list[NotUndone] = []
        for cluster in on_it:
            if cluster.steps not in self._storages.hung:
                kept += self._journal.undo_steps(cluster.steps, self.runner)
                for host in self.context.hosts.values():
                    kept += self._undone_there(partial(host.undo_steps, cluster.steps))
        kept += self._storages.undo(failed)
        for item in kept:
            self._listener.note(f"{item}; tried again at the end")

    def _end_host(self, host: Host) -> tuple[NotUndone, ...]:
        """Have an agent undo all and end: nothing is left then of which the journal here has to know."""
        kept = host.end()
        for entry in self._journal.entries:
            if host.name is not None and not kept and entry.step.id == agent_step_id(host.name):
                self._journal.mark_undone(entry)
        return kept

    def _undone_there(self, undo: Callable[[], tuple[NotUndone, ...]]) -> tuple[NotUndone, ...]:
        """Undo something on another host; of one that is lost its own agent undoes it."""
        try:
            return undo()
        except PlinthError as error:
            self._listener.note(reason_of(error))
            return ()

    def _prepare_cluster(self, cluster: LiveCluster, writer: BundleWriter | None) -> None:
        """Initialise and load a cluster; without `writer`, once more, so that how that went is not kept."""
        name = cluster.planned.id
        own = [variant for variant in self.plan.variants if variant.cluster == name]
        first = next((variant for variant in own if variant.id not in self.failures.variants), None)
        if first is None:
            self.failures.clusters[name] = MissingCapability(f"of cluster {name} every variant failed")
            return
        try:
            with self._storages.looked_after(cluster.storage_names):
                self._preparation.prepare(cluster, first, writer)
        except UsageError:
            raise
        except PlinthError as error:
            self._lose_cluster(cluster, error)

    def _lose_cluster(self, cluster: LiveCluster, error: PlinthError) -> None:
        broken = error if isinstance(error, StorageBroken) else self._storages.examined(cluster.storages)
        if broken is not None:
            self._give_up(broken)
            return
        # What a server that crashed has written to its log, where all that its client saw is that it went.
        panics = cluster.panics()
        error.details = (*error.details, *(line for line in panics[:1] if line not in error.details))
        places = [storage.mount_point for storage in cluster.storages if storage.spec.host is None]
        hint_at_full_storage(error, panics, places)
        name = cluster.planned.id
        self.failures.clusters.setdefault(name, error)
        self._listener.note(f"cluster {name} failed: {reason_of(error)}")
        cluster.end()
