"""Builds the plan from the experiment and from facts that the conductor collected; and that of further trials for a run whose planned
trials have all been measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from plinth.model.dataset import DatasetSpec, DumpDataset, SqlDataset, TpccDataset
from plinth.model.errors import UsageError
from plinth.model.experiment import FIRST_LOOK, MOST_REPEATS, Experiment, MeasureSpec
from plinth.model.facts import HostFacts, Installation
from plinth.model.fault import KillAction
from plinth.model.io_error import Holds, PlannedIoError, order_io_errors
from plinth.model.plan import (
    PRIMARY,
    DatasetSize,
    DestructiveTarget,
    Extension,
    Plan,
    PlannedCluster,
    PlannedNode,
    PlannedShell,
    PlannedTrial,
    Variant,
    storage_that_holds,
)
from plinth.model.published import Reference
from plinth.model.server_spec import NEWEST_VERSION, ServerSpec
from plinth.model.standby import StandbySpec
from plinth.model.step import Step
from plinth.model.storage import StorageSpec
from plinth.model.tpcc_notice import TERMINALS_PER_WAREHOUSE
from plinth.model.units import format_count, format_duration, format_size
from plinth.plan.needs import StoragePlace, needs_of
from plinth.plan.order import cut_steps, io_error_steps, more_trials, order_cuts, order_trials
from plinth.plan.preparation import is_restored, restored_bytes
from plinth.plan.sizes import estimated_written_bytes, node_bytes
from plinth.plan.times import estimated_s
from plinth.plan.variants import ClusterKey, Expanded

FEWEST_TRIALS_FOR_INTERVAL = 3
_NOTEWORTHY_VARIANTS = 100


@dataclass(frozen=True)
class PlanInputs:
    """Facts that the planner needs and that the conductor collects for it."""

    run_id: str
    facts: Mapping[str | None, HostFacts]
    """Of each host; None is the machine that the run is on."""
    places: Callable[[Sequence[PlannedCluster]], Mapping[str, StoragePlace]]
    installations: Mapping[str, Installation]
    dataset_size: Callable[[DatasetSpec], DatasetSize]
    populate_s: Callable[[DatasetSpec], float]
    provision_steps: Callable[[Sequence[PlannedCluster]], list[Step]]
    trial_steps: Callable[[PlannedTrial, Variant, PlannedCluster], list[Step]]
    teardown_steps: Callable[[Sequence[PlannedCluster]], list[Step]]
    destructive_targets: Callable[[Sequence[PlannedCluster]], list[DestructiveTarget]] = field(
        default=lambda clusters: []
    )
    node_installations: Mapping[tuple[str, str], Installation] = field(default_factory=dict)
    """Of nodes on other hosts than their primary's, by cluster and node."""
    addresses: Mapping[str | None, str] = field(default_factory=dict)
    """Where servers of each host listen, of clusters that are not on the machine of the run alone."""
    dataset_files: Mapping[str, str] = field(default_factory=dict)
    shell_commands: Sequence[PlannedShell] = ()
    full: bool = False
    lacking: Mapping[str, str] = field(default_factory=dict)
    reference: Reference | None = None
    removed_factors: Sequence[str] = ()
    warnings: Sequence[str] = ()
    """About the machines of the run."""


def build_plan(
    experiment: Experiment,
    expanded: Expanded,
    overrides: tuple[str, ...],
    inputs: PlanInputs,
) -> Plan:
    """Build the whole plan. The same experiment, seed and inputs give the same plan."""
    trials = order_trials(expanded.variants, experiment.measure)
    return plan_of_trials(experiment, expanded, trials, overrides, inputs)


def plan_of_trials(
    experiment: Experiment,
    expanded: Expanded,
    trials: Sequence[PlannedTrial],
    overrides: tuple[str, ...],
    inputs: PlanInputs,
) -> Plan:
    """Build a plan that runs only these trials of an experiment."""
    variants, keys = expanded.variants, expanded.clusters
    clusters = [_cluster(experiment, key, expanded, inputs) for key in keys]
    by_id = {cluster.id: cluster for cluster in clusters}
    variant_of = {variant.id: variant for variant in variants}
    trial_steps = [
        step
        for trial in trials
        for variant in [variant_of[trial.variant]]
        for step in inputs.trial_steps(trial, variant, by_id[variant.cluster])
    ]
    places = inputs.places(clusters)
    written = _written_bytes(experiment, clusters, trials, variant_of, places)
    populate_s = [inputs.populate_s(key.dataset) for key in keys]
    return Plan(
        run_id=inputs.run_id,
        experiment=experiment,
        overrides=overrides,
        full=inputs.full,
        lacking=dict(inputs.lacking),
        reference=inputs.reference,
        host=inputs.facts[None],
        hosts={name: facts for name, facts in inputs.facts.items() if name is not None},
        storages=expanded.storages,
        clusters=tuple(clusters),
        variants=tuple(variants),
        trials=tuple(trials),
        cuts=tuple(order_cuts(variants, experiment.durability, experiment.measure.seed)),
        io_errors=_io_errors(experiment, variants, by_id, expanded.storages),
        dataset_files=dict(inputs.dataset_files),
        shell_commands=tuple(inputs.shell_commands),
        steps=(
            *inputs.provision_steps(clusters),
            *trial_steps,
            *cut_steps(experiment, variants),
            *io_error_steps(experiment, variants),
            *inputs.teardown_steps(clusters),
        ),
        needs=tuple(needs_of(inputs.facts, clusters, _servers_on(clusters, expanded.storages), variants, places)),
        destructive_targets=tuple(inputs.destructive_targets(clusters)),
        estimated_written_bytes=written,
        estimated_s=estimated_s(
            experiment, clusters, populate_s, variant_of, trials, places, inputs.facts[None].memory_available_bytes
        ),
        warnings=(
            *_of_removed(inputs.removed_factors),
            *inputs.warnings,
            *_of_versions(clusters),
            *warnings_of(experiment, variants, written),
        ),
    )


def _written_bytes(
    experiment: Experiment,
    clusters: Sequence[PlannedCluster],
    trials: Sequence[PlannedTrial],
    variants: Mapping[str, Variant],
    places: Mapping[str, StoragePlace],
) -> int:
    ballast_bytes = sum(place.ballast_bytes for place in places.values())
    loads = [variants[trial.variant].workload for trial in trials]
    restored = restored_bytes(clusters, trials, variants, places)
    return estimated_written_bytes(experiment, clusters, loads, ballast_bytes) + restored


def _io_errors(
    experiment: Experiment,
    variants: Sequence[Variant],
    clusters: Mapping[str, PlannedCluster],
    storages: Mapping[str, StorageSpec],
) -> tuple[PlannedIoError, ...]:
    filesystems = {
        variant.id: _filesystems(clusters[variant.cluster].primary, storages)
        for variant in variants
        if not variant.is_aa_twin
    }
    return tuple(order_io_errors(filesystems, experiment.io_errors, experiment.measure.seed))


def _filesystems(node: PlannedNode, storages: Mapping[str, StorageSpec]) -> dict[Holds, str]:
    """Return the file systems of the data directory, and of WAL and a tablespace that have a storage of their own; empty ones where
    they are not known."""
    if not (roles := node.roles):
        return {}
    places: dict[Holds, str] = {holds: storage_that_holds(holds, roles) for holds in get_args(Holds)}
    return {
        holds: str(getattr(storages[name], "filesystem", ""))
        for holds, name in places.items()
        if holds == "data" or name != places["data"]
    }


def _of_removed(factors: Sequence[str]) -> list[str]:
    return [
        f"matrix.{factor} is left out: --set replaced the table that it writes to by one of a kind without that key"
        for factor in factors
    ]


def _servers_on(
    clusters: Sequence[PlannedCluster], storages: Mapping[str, StorageSpec]
) -> dict[str | None, dict[str, int]]:
    """Return how many servers each managed cluster has on each host."""
    found: dict[str | None, dict[str, int]] = {}
    for cluster in clusters:
        for node in cluster.nodes:
            if node.server.storage is not None:
                on_host = found.setdefault(storages[node.server.storage].host, {})
                on_host[cluster.id] = on_host.get(cluster.id, 0) + 1
    return found


def _cluster(experiment: Experiment, key: ClusterKey, expanded: Expanded, inputs: PlanInputs) -> PlannedCluster:
    storages = expanded.storages
    own = [variant for variant in expanded.variants if variant.cluster == key.id]
    trial_s = experiment.measure.longest_trial_s
    size = inputs.dataset_size(key.dataset)
    restored = key.server.connection is None and is_restored(experiment.measure, own)

    def node(name: str, server: ServerSpec, upstream: str | None = None) -> PlannedNode:
        taken = node_bytes(server, key.dataset, size, own, trial_s)
        with_copy = {storage: size_bytes * (2 if restored else 1) for storage, size_bytes in taken.items()}
        return PlannedNode(
            name=name,
            server=server,
            upstream=upstream,
            bytes_by_storage=with_copy,
            installation=inputs.node_installations.get((key.id, name)),
        )

    def of_standby(one: StandbySpec) -> ServerSpec:
        server = _of_standby(alone, one)
        address = inputs.addresses.get(storages[one.storage].host)
        is_spread = alone.storage is not None and storages[alone.storage].host != storages[one.storage].host
        return server.model_copy(update={"listen_address": address}) if is_spread else server

    alone = key.server.model_copy(update={"standby": {}})
    primary = node(PRIMARY, alone)
    return PlannedCluster(
        id=key.id,
        nodes=(
            primary,
            *(node(name, of_standby(one), one.upstream) for name, one in key.server.standby.items()),
        ),
        restored=restored,
        dataset=key.dataset,
        installation=inputs.installations.get(key.id),
        data_bytes=sum(primary.bytes_by_storage.values()) // (2 if restored else 1) or size.total_bytes,
    )


def _of_standby(primary: ServerSpec, standby: StandbySpec) -> ServerSpec:
    """Return the server of a standby: the primary's copy on storages of its own, tablespaces next to its data directory."""
    return primary.model_copy(
        update={
            "storage": standby.storage,
            "wal_storage": standby.wal_storage,
            "tablespaces": dict.fromkeys(primary.tablespaces, standby.storage),
            "port": None,
        }
    )


def warnings_of(experiment: Experiment, variants: Sequence[Variant], written_bytes: int) -> list[str]:
    """Return warnings about an experiment of these variants, which writes an estimated `written_bytes`."""
    measure = experiment.measure
    found = []
    if measure.max_written_bytes is not None and written_bytes > measure.max_written_bytes:
        found.append(
            f"measure.max_written = {format_size(measure.max_written_bytes)}: by estimate {format_size(written_bytes)} "
            "will be written, so that the run ends before its last trial"
        )
    found += _of_target(experiment, variants)
    found += _of_terminals(experiment, variants)
    found += _of_patroni(measure, variants)
    if measure.repeats < FEWEST_TRIALS_FOR_INTERVAL:
        found.append(
            f"measure.repeats = {measure.repeats}: fewer than {FEWEST_TRIALS_FOR_INTERVAL} trials allow no interval and no verdict"
        )
    if not measure.aa:
        found.append("measure.aa = false: without the A/A pair nothing shows what this machine can tell apart")
    if measure.order == "sequential" and len(variants) > 1:
        found.append("measure.order = sequential: a drift of the machine falls on the variants unequally")
    if measure.cache == "cold" and measure.longest_warmup_s > 0:
        found.append(
            f'measure.cache = "cold": the warm-up of {format_duration(measure.longest_warmup_s)} already reads what is cold; with '
            "warmup = 0 all of it is measured"
        )
    if measure.cache == "as-is" and measure.longest_warmup_s == 0:
        found.append("measure.warmup = 0: cold caches are measured together with the rest")
    if isinstance(experiment.dataset, DumpDataset) and experiment.dataset.size_bytes is None:
        found.append(
            "dataset.size is not given: the plan reckons with the size of the dump, which is less than its tables and indexes take"
        )
    if isinstance(experiment.dataset, SqlDataset) and experiment.dataset.size_bytes is None:
        found.append("dataset.size is not given: what the dataset takes is missing from the needs, and from the time")
    if len(variants) > _NOTEWORTHY_VARIANTS:
        found.append(f"{len(variants)} variants: with so many comparisons small differences will stay undecided")
    return found


def _of_versions(clusters: Sequence[PlannedCluster]) -> list[str]:
    """Yield a notice for each server that is newer than the versions that Plinth knows."""
    found = {one.installation.major: one.installation for one in clusters if one.installation is not None}
    return [
        f"server.version = {major}: PostgreSQL {installation.version} is newer than {NEWEST_VERSION}, the newest that this Plinth "
        "knows: what it has added or renamed since, such as columns of views, is not measured, and shown as not available"
        for major, installation in found.items()
        if major > NEWEST_VERSION
    ]


def _of_terminals(experiment: Experiment, variants: Sequence[Variant]) -> list[str]:
    """Yield a notice for paced tpcc without ten terminals per warehouse: the clients limit its NOPM and efficiency."""
    if not isinstance(experiment.dataset, TpccDataset):
        return []
    paced = [variant for variant in variants if variant.workload.pacing == "spec"]
    of_dataset = experiment.dataset.warehouses
    sizes = [(v.workload.clients, int(str(v.levels.get("dataset.warehouses", of_dataset)))) for v in paced]
    return [
        f'pacing = "spec" with {format_count(clients, "client")} for {format_count(warehouses, "warehouse")}: the specification has '
        f"{TERMINALS_PER_WAREHOUSE} terminals for each; with another number NOPM and efficiency are what the clients allow"
        for clients, warehouses in dict.fromkeys(sizes)
        if clients != TERMINALS_PER_WAREHOUSE * warehouses
    ]


def _of_patroni(measure: MeasureSpec, variants: Sequence[Variant]) -> list[str]:
    """Yield a notice for each load that ends before Patroni has to be done."""
    kills = [action for action in measure.actions if isinstance(action, KillAction)]
    if not kills:
        return []
    left_s = measure.duration_s - min(action.at_s for action in kills)
    of_machine = any(action.machine for action in kills)
    managers = dict.fromkeys(variant.patroni for variant in variants if variant.patroni is not None)
    return [
        f"measure.duration = {format_duration(measure.duration_s)}: {format_duration(left_s)} of it are left after the fault; Patroni with "
        f"ttl {one.ttl_s:g} s and loop_wait {one.loop_wait_s:g} s may need {format_duration(most_s)} until writes go on, and a trial fails where "
        "they do not"
        for one in managers
        if (most_s := one.longest_s(of_machine=of_machine)) > left_s
    ]


def _of_target(experiment: Experiment, variants: Sequence[Variant]) -> list[str]:
    measure = experiment.measure
    if measure.target is None:
        return []
    if sum(not variant.is_aa_twin for variant in variants) < 2:
        return [
            f"measure.target: there is nothing to compare, so the run does not end before measure.repeats = {measure.repeats}"
        ]
    looked_at_s = FIRST_LOOK * len(variants) * (measure.shortest_warmup_s + measure.duration_s)
    if measure.budget_s is not None and measure.budget_s < looked_at_s:
        return [
            f"measure.budget = {format_duration(measure.budget_s)}: the {FIRST_LOOK} trials of each variant before which nothing is "
            f"decided take {format_duration(looked_at_s)} or more"
        ]
    return []


def plan_more(plan: Plan, repeats: int, inputs: PlanInputs) -> Plan:
    """Return a plan of only `repeats` further trials of each variant of `plan`; its storages and clusters are made again.

    Raises UsageError for a number that cannot be added.
    """
    measure = plan.experiment.measure
    if not 1 <= repeats <= MOST_REPEATS - measure.repeats:
        allowed = f"1 to {MOST_REPEATS - measure.repeats}" if measure.repeats < MOST_REPEATS else "none"
        raise UsageError(
            f"cannot add {repeats} trials of each variant: allowed: {allowed}",
            where="--more",
            hint=f"a run has at most {MOST_REPEATS:,} trials of each variant, and this one has {measure.repeats:,}",
        )
    measure = measure.model_copy(update={"repeats": measure.repeats + repeats})
    keys = [ClusterKey(cluster.id, cluster.primary.server, cluster.dataset) for cluster in plan.clusters]
    return plan_of_trials(
        plan.experiment.model_copy(update={"measure": measure}),
        Expanded(list(plan.variants), keys, plan.storages),
        more_trials(plan.variants, measure, plan.trials, repeats),
        plan.overrides,
        inputs,
    )


def extended(plan: Plan, more: Plan, now_unix_ns: int) -> Plan:
    """Return one plan of all trials of `plan` and `more`, a result of `plan_more`; its needs are those of `more`."""
    written_bytes = plan.estimated_written_bytes + more.estimated_written_bytes
    outdated = warnings_of(plan.experiment, plan.variants, plan.estimated_written_bytes)
    warnings = [warning for warning in plan.warnings if warning not in outdated]
    extension = Extension(
        repeats=more.experiment.measure.repeats - plan.experiment.measure.repeats,
        first_trial=more.trials[0].number,
        added_unix_ns=now_unix_ns,
    )
    return plan.model_copy(
        update={
            "experiment": more.experiment,
            "trials": (*plan.trials, *more.trials),
            "extensions": (*plan.extensions, extension),
            "steps": (*plan.steps, *more.steps),
            "needs": more.needs,
            "destructive_targets": more.destructive_targets,
            "estimated_written_bytes": written_bytes,
            "estimated_s": plan.estimated_s + more.estimated_s,
            "warnings": (*warnings, *warnings_of(more.experiment, plan.variants, written_bytes)),
        }
    )
