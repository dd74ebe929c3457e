"""The steps of a plan: what a run makes, what each trial does so that it begins in the state that was asked for, and how all is undone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plinth.model.dataset import DatasetSpec
from plinth.model.experiment import MeasureSpec
from plinth.model.flashback import SnapshotAction
from plinth.model.fleet import FleetSpec
from plinth.model.network import link_sentences
from plinth.model.patroni import etcd_machines
from plinth.model.plan import PlannedCluster, PlannedNode, PlannedTrial, Variant
from plinth.model.replay import recording_words
from plinth.model.step import Step
from plinth.model.units import format_count
from plinth.run.context import RunContext
from plinth.run.fleet import copying_words, machines_words
from plinth.run.host import Host
from plinth.run.provision.restoring import Restoring
from plinth.run.trial.snapshots import live_snapshot
from plinth.run.undo import undo_step
from plinth.server.copies.loaded_copy import CopySteps
from plinth.system.drop_caches import DROP_COMMAND, write_back_command
from plinth.workload import Dataset
from plinth.workload.loading import COPY_STEP


@dataclass(frozen=True)
class PlanSteps:
    """Lists the steps of a plan, in order."""

    context: RunContext
    dataset_of: Callable[[DatasetSpec], Dataset]
    measure: MeasureSpec
    restoring: Restoring
    fleet: FleetSpec | None

    def provision(self, clusters: Sequence[PlannedCluster]) -> list[Step]:
        """Return what makes storages, network, servers and data."""
        context = self.context
        steps: list[Step] = []
        for storage in context.used_storages(clusters):
            steps += context.host_of(storage).shown(storage.steps())
        steps += [action.step for action in context.network.actions()] if context.network is not None else []
        for cluster in clusters:
            host = context.host_of(cluster.primary)
            if cluster.is_external:
                from plinth.server.external.external_server import external_step

                steps.append(external_step(context.run_id, cluster.id_of(cluster.primary)))
            else:
                steps += host.shown(context.layout(cluster, cluster.primary).steps())
            for step in self.dataset_of(cluster.dataset).steps():
                title = f"{cluster.id}: {step.title}{copying_words(self.fleet) if step.id == COPY_STEP else ''}"
                steps.append(step.model_copy(update={"id": f"{cluster.id}.{step.id}", "title": title}))
            for node in cluster.standbys:
                steps += context.host_of(node).shown(context.layout(cluster, node).steps())
            for copy, host in self._copies(cluster):
                steps += host.shown(copy.keeping())
        return steps

    def teardown(self, clusters: Sequence[PlannedCluster]) -> list[Step]:
        """Return the steps that the journal undoes at the end, the last first."""
        undone = map(undo_step, reversed(self.provision(clusters)))
        there = [host.end_step() for host in self.context.hosts.values()]
        return [step for step in (*undone, *there) if step is not None]

    def trial(self, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster) -> list[Step]:
        """Return the steps of a trial, up to its load and to the snapshots that are gone back to after it."""
        steps = [*self._cache(cluster), self._load(trial, variant)]
        if not cluster.is_external:
            standbys = ", ".join(node.name for node in cluster.standbys)
            caught_up = [Step(id="standbys", title=f"wait until {standbys} have all WAL")] if standbys else []
            *cache, load = steps
            steps = [
                *(step for copy, host in self._copies(cluster) for step in host.shown(copy.restoring())),
                *(self._start(variant, cluster, node) for node in cluster.nodes),
                *cache,
                *caught_up,
                *_links(variant, cluster),
                *self._patroni(variant, cluster),
                load,
                *self._snapshots(cluster),
            ]
        about = {"id": f"trial.{trial.number}.", "title": f"trial {trial.number}, {variant.label}: "}
        return [
            step.model_copy(update={key: f"{begin}{getattr(step, key)}" for key, begin in about.items()})
            for step in steps
        ]

    def _copies(self, cluster: PlannedCluster) -> list[tuple[CopySteps, Host]]:
        """Return the copies of a cluster's files as they are after loading, which `measure.restore` keeps and puts back."""
        if not cluster.restored:
            return []
        context = self.context
        return [
            (CopySteps(context.layout(cluster, node), self.restoring.ways(cluster, node)), context.host_of(node))
            for node in cluster.nodes
        ]

    def _cache(self, cluster: PlannedCluster) -> list[Step]:
        """Return the steps of `measure.cache`, after the server was started and the dataset prepared."""
        match self.measure.cache:
            case "as-is":
                return []
            case "warm":
                what = "read all tables and indexes into memory until another pass reads no less from the devices"
                return [Step(id="warm", title=f"CHECKPOINT, then {what}")]
            case "cold":
                mounts = [self.context.storages[storage].mount_point for storage in cluster.storages]
                write_back = "CHECKPOINT, stop the server, write back its storages"
                drop = "drop the page cache of the whole machine, and start the server again"
                return [
                    Step(id="write_back", title=write_back, argv=write_back_command(mounts)),
                    Step(id="drop_caches", title=drop, argv=DROP_COMMAND),
                ]

    def _load(self, trial: PlannedTrial, variant: Variant) -> Step:
        workload = variant.workload
        if variant.recording is not None:
            what = recording_words(variant.recording, workload)
        else:
            names = ", ".join(script.name for script in variant.scripts)
            clients = f"{format_count(variant.clients, 'client')}{machines_words(self.fleet)}"
            driver = "" if workload.driver == "plinth" else f", driver {workload.driver}"
            what = f"{names} by {clients}, {workload.protocol} protocol{driver}"
        checkpoint = "CHECKPOINT, then " if self.measure.cache == "as-is" else ""
        ledger = "commit ledger, " if workload.keeps_ledger else ""
        options = ", ".join(f"{name} = {value}" for name, value in variant.connection_options.items())
        in_sessions = f", with {options} in its sessions" if options else ""
        return Step(id="load", title=f"{checkpoint}{what}, {ledger}seed {trial.seed}{in_sessions}")

    def _start(self, variant: Variant, cluster: PlannedCluster, node: PlannedNode) -> Step:
        settings = variant.settings
        if node.upstream is not None:
            from plinth.server.replication.standby import settings_of_standby

            own = variant.standby_settings.get(node.name, {})
            settings = settings_of_standby(variant.settings, own, [variant.settings])
        shown = ", ".join(f"{name} = {value}" for name, value in settings.items()) or "defaults"
        name = "start" if node.upstream is None else f"{node.name}.start"
        title = f"start {cluster.id_of(node)} again with {shown}"
        return self.context.layout(cluster, node).start_step().model_copy(update={"id": name, "title": title})

    def _patroni(self, variant: Variant, cluster: PlannedCluster) -> list[Step]:
        if variant.patroni is None:
            return []
        nodes = ", ".join(node.name for node in cluster.nodes)
        etcds = etcd_machines(self.context.host_of(node).name for node in cluster.nodes)
        where = ", ".join("this machine" if name is None else f"host {name}" for name in etcds)
        etcd = "etcd" if len(etcds) == 1 else f"an etcd on each of {where}"
        title = f"start {etcd}, and {variant.patroni.words()} for each of {nodes}, which takes it over as it runs"
        return [Step(id="patroni", title=title)]

    def _snapshots(self, cluster: PlannedCluster) -> list[Step]:
        """Return the steps of snapshots: taking them during the load, and going back to each when it has ended, the last first."""
        count = sum(isinstance(action, SnapshotAction) for action in self.measure.actions)
        snapshots = [live_snapshot(self.context, cluster, number) for number in range(1, count + 1)]
        steps = [one.taking() for one in snapshots]
        for one in reversed(snapshots):
            check = Step(
                id=f"{one.taking().id}.check",
                title=f"start {cluster.id}, which recovers; compare the commit ledger with snapshot {one.number}, and check all files",
            )
            steps += [*one.going_back(), check, one.removing()]
        return self.context.host_of(cluster.primary).shown(steps)


def _links(variant: Variant, cluster: PlannedCluster) -> list[Step]:
    if variant.network is None or not cluster.standbys:
        return []
    links = "; ".join(link_sentences(variant.network.settings([node.name for node in cluster.nodes])))
    return [Step(id="network", title=f"set {links}; measure round trips")]
