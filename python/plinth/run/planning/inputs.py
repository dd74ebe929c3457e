"""The facts about this machine that planning needs: free space, steps, sizes and times."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from plinth.model.dataset import DatasetSpec
from plinth.model.experiment import MeasureSpec
from plinth.model.facts import Installation
from plinth.model.fleet import FleetSpec
from plinth.model.network import link_sentences
from plinth.model.patroni import etcd_machines
from plinth.model.plan import PlannedCluster, PlannedNode, PlannedTrial, Variant
from plinth.model.replay import recording_words
from plinth.model.step import Step
from plinth.model.units import format_count
from plinth.plan import PlanInputs, StoragePlace, memory_of
from plinth.run.checks.destroy import destructive_targets
from plinth.run.context import RunContext
from plinth.run.fleet import copying_words, machines_words
from plinth.run.host import ServerHost
from plinth.run.planning.state_steps import cache_steps, keeping_steps, restoring_steps, snapshot_steps
from plinth.run.provision.restoring import Restoring
from plinth.run.undo import undo_step
from plinth.storage import Storage
from plinth.system.runner import Runner
from plinth.workload import Dataset
from plinth.workload.loading import COPY_STEP


def plan_inputs(
    context: RunContext,
    runner: Runner,
    dataset_of: Callable[[DatasetSpec], Dataset],
    installations: Mapping[str, Installation],
    measure: MeasureSpec,
    restoring: Restoring,
    fleet: FleetSpec | None = None,
) -> PlanInputs:
    """Return what is known of the machine, for storages as `context` has them; `installations` are by cluster."""

    def provision_steps(clusters: Sequence[PlannedCluster]) -> list[Step]:
        return _provision_steps(context, clusters, dataset_of, restoring, fleet)

    def teardown_steps(clusters: Sequence[PlannedCluster]) -> list[Step]:
        """Return the steps that the journal undoes at the end, the last first."""
        undone = map(undo_step, reversed(provision_steps(clusters)))
        there = [host.end_step() for host in context.hosts.values()]
        return [step for step in (*undone, *there) if step is not None]

    return PlanInputs(
        run_id=context.run_id,
        facts=context.facts,
        places=lambda clusters: {
            storage.name: _place(storage, context.host_of(storage), restoring)
            for storage in context.used_storages(clusters)
        },
        installations=installations,
        dataset_size=lambda spec: dataset_of(spec).size(),
        populate_s=lambda spec: dataset_of(spec).populate_s(),
        provision_steps=provision_steps,
        trial_steps=lambda trial, variant, cluster: _trial_steps(
            context, trial, variant, cluster, measure, restoring, fleet
        ),
        teardown_steps=teardown_steps,
        destructive_targets=lambda clusters: destructive_targets(context.used_storages(clusters), runner),
    )


def without_steps(inputs: PlanInputs) -> PlanInputs:
    """Return the inputs of a plan that only says what it needs, since it cannot be carried out."""
    return replace(
        inputs,
        provision_steps=lambda clusters: [],
        trial_steps=lambda trial, variant, cluster: [],
        teardown_steps=lambda clusters: [],
    )


def _provision_steps(
    context: RunContext,
    clusters: Sequence[PlannedCluster],
    dataset_of: Callable[[DatasetSpec], Dataset],
    restoring: Restoring,
    fleet: FleetSpec | None,
) -> list[Step]:
    steps = [
        step for storage in context.used_storages(clusters) for step in context.host_of(storage).shown(storage.steps())
    ]
    steps += [action.step for action in context.network.actions()] if context.network is not None else []
    for cluster in clusters:
        host = context.host_of(cluster.primary)
        if cluster.is_external:
            from plinth.server.external.external_server import external_step

            steps.append(external_step(context.run_id, cluster.id_of(cluster.primary)))
        else:
            steps += host.shown(context.layout(cluster, cluster.primary).steps())
        for step in dataset_of(cluster.dataset).steps():
            title = f"{cluster.id}: {step.title}{copying_words(fleet) if step.id == COPY_STEP else ''}"
            steps.append(step.model_copy(update={"id": f"{cluster.id}.{step.id}", "title": title}))
        for node in cluster.standbys:
            steps += context.host_of(node).shown(context.layout(cluster, node).steps())
        steps += keeping_steps(context, cluster, restoring)
    return steps


def _place(storage: Storage, host: ServerHost, restoring: Restoring) -> StoragePlace:
    """Return how fast a storage is, where its space comes from, and how much of it there is for the server's user."""
    source = storage.needs_from()
    place = StoragePlace(
        takes_bytes=storage.needs_bytes(),
        usable_bytes=storage.usable_bytes(),
        ballast_bytes=storage.ballast_bytes(),
        pace=storage.pace(),
        shares_blocks=restoring.shares_blocks(storage),
    )
    match source:
        case None:
            return place
        case str():
            available_bytes = storage.host.memory_available_bytes
            memory = memory_of(host.name)
            return replace(place, key=memory, where=memory, available_bytes=available_bytes)
        case Path():
            key, available_bytes = host.free_space(source)
            where = str(source) if host.name is None else f"{host.name}:{source}"
            return replace(place, key=key, where=where, available_bytes=available_bytes)
        case base:
            return replace(place, on=base.name)


def _options(variant: Variant) -> str:
    options = (f"{name} = {value}" for name, value in variant.connection_options.items())
    return f", with {', '.join(options)} in its sessions" if variant.connection_options else ""


def _load_words(variant: Variant, fleet: FleetSpec | None) -> str:
    workload = variant.workload
    if variant.recording is not None:
        return f"{recording_words(variant.recording, workload)}, "
    names = ", ".join(script.name for script in variant.scripts)
    driver = "" if workload.driver == "plinth" else f"driver {workload.driver}, "
    clients = format_count(variant.clients, "client")
    return f"{names} by {clients}{machines_words(fleet)}, {workload.protocol} protocol, {driver}"


def _trial_steps(
    context: RunContext,
    trial: PlannedTrial,
    variant: Variant,
    cluster: PlannedCluster,
    measure: MeasureSpec,
    restoring: Restoring,
    fleet: FleetSpec | None,
) -> list[Step]:
    workload = variant.workload
    ledger = "commit ledger, " if workload.keeps_ledger else ""
    checkpoint = "CHECKPOINT, then " if measure.cache == "as-is" else ""
    load = (
        f"trial {trial.number}, {variant.label}: {checkpoint}{_load_words(variant, fleet)}{ledger}seed {trial.seed}"
        f"{_options(variant)}"
    )
    steps = [
        *cache_steps(context, trial, variant, cluster, measure),
        Step(id=f"trial.{trial.number}.load", title=load),
    ]
    if cluster.is_external:
        return steps
    starts = [_start_step(context, trial, variant, cluster, node) for node in cluster.nodes]
    caught_up = Step(
        id=f"trial.{trial.number}.standbys",
        title=f"trial {trial.number}, {variant.label}: wait until {', '.join(node.name for node in cluster.standbys)} have all WAL",
    )
    links = [_links_step(trial, variant, cluster)] if variant.network is not None and cluster.standbys else []
    *cache, load_step = steps
    return [
        *restoring_steps(context, trial, variant, cluster, restoring),
        *starts,
        *cache,
        *([caught_up] if cluster.standbys else []),
        *links,
        *_patroni_step(context, trial, variant, cluster),
        load_step,
        *snapshot_steps(context, trial, variant, cluster, measure),
    ]


def _links_step(trial: PlannedTrial, variant: Variant, cluster: PlannedCluster) -> Step:
    assert variant.network is not None, "it has a network"
    links = "; ".join(link_sentences(variant.network.settings([node.name for node in cluster.nodes])))
    return Step(
        id=f"trial.{trial.number}.network",
        title=f"trial {trial.number}, {variant.label}: set {links}; measure round trips",
    )


def _patroni_step(context: RunContext, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster) -> list[Step]:
    if variant.patroni is None:
        return []
    nodes = ", ".join(node.name for node in cluster.nodes)
    etcds = etcd_machines(context.host_of(node).name for node in cluster.nodes)
    where = ", ".join("this machine" if name is None else f"host {name}" for name in etcds)
    etcd = "etcd" if len(etcds) == 1 else f"an etcd on each of {where}"
    title = f"trial {trial.number}, {variant.label}: start {etcd}, and {variant.patroni.words()} for each of {nodes}, which takes it over as it runs"
    return [Step(id=f"trial.{trial.number}.patroni", title=title)]


def _start_step(
    context: RunContext, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster, node: PlannedNode
) -> Step:
    settings = variant.settings
    if node.upstream is not None:
        from plinth.server.replication.standby import settings_of_standby

        settings = settings_of_standby(
            variant.settings, variant.standby_settings.get(node.name, {}), [variant.settings]
        )
    shown = ", ".join(f"{name} = {value}" for name, value in settings.items()) or "defaults"
    name = f"trial.{trial.number}.start" if node.upstream is None else f"trial.{trial.number}.{node.name}.start"
    title = f"trial {trial.number}, {variant.label}: start {cluster.id_of(node)} again with {shown}"
    return context.layout(cluster, node).start_step().model_copy(update={"id": name, "title": title})
