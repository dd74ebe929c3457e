"""The plan, put together from the experiment and what the conductor found out for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from plinth.model.experiment import DatasetSpec, Experiment
from plinth.model.facts import HostFacts, Installation
from plinth.model.plan import Plan, PlannedCluster, PlannedTrial, Variant
from plinth.model.step import Step
from plinth.plan.needs import Place, cluster_bytes, estimated_s, needs_of
from plinth.plan.order import order_trials
from plinth.plan.variants import ClusterKey

FEWEST_TRIALS_FOR_INTERVAL = 3
_NOTEWORTHY_VARIANTS = 100


@dataclass(frozen=True)
class Surroundings:
    """What the planner must know and cannot find out itself."""

    run_id: str
    host: HostFacts
    places: Mapping[str, Place]
    installations: Mapping[str, Installation]
    dataset_bytes: Callable[[DatasetSpec], int]
    dataset_load_s: Callable[[DatasetSpec], float]
    provision_steps: Callable[[Sequence[PlannedCluster]], list[Step]]
    trial_steps: Callable[[PlannedTrial, Variant, PlannedCluster], list[Step]]
    teardown_steps: Callable[[Sequence[PlannedCluster]], list[Step]]


def build_plan(
    experiment: Experiment,
    variants: Sequence[Variant],
    keys: Sequence[ClusterKey],
    overrides: tuple[str, ...],
    surroundings: Surroundings,
) -> Plan:
    """The whole plan. Deterministic: the same experiment, seed and surroundings give the same plan."""
    clusters = [_cluster(experiment, key, variants, surroundings) for key in keys]
    by_id = {cluster.id: cluster for cluster in clusters}
    variant_of = {variant.id: variant for variant in variants}
    trials = order_trials(list(variants), experiment.measure)
    trial_steps = [
        step
        for trial in trials
        for variant in [variant_of[trial.variant]]
        for step in surroundings.trial_steps(trial, variant, by_id[variant.cluster])
    ]
    return Plan(
        run_id=surroundings.run_id,
        experiment=experiment,
        overrides=overrides,
        host=surroundings.host,
        clusters=tuple(clusters),
        variants=tuple(variants),
        trials=tuple(trials),
        steps=(*surroundings.provision_steps(clusters), *trial_steps, *surroundings.teardown_steps(clusters)),
        needs=tuple(needs_of(experiment, surroundings.host, clusters, variants, surroundings.places)),
        estimated_s=estimated_s(experiment, [surroundings.dataset_load_s(key.dataset) for key in keys], trials),
        warnings=tuple(_warnings(experiment, variants)),
    )


def _cluster(
    experiment: Experiment, key: ClusterKey, variants: Sequence[Variant], surroundings: Surroundings
) -> PlannedCluster:
    own = [variant for variant in variants if variant.cluster == key.id]
    trial_s = experiment.measure.warmup_s + experiment.measure.duration_s
    return PlannedCluster(
        id=key.id,
        storage=key.server.storage,
        server=key.server,
        dataset=key.dataset,
        installation=surroundings.installations.get(key.id),
        data_bytes=cluster_bytes(surroundings.dataset_bytes(key.dataset), own, trial_s),
    )


def _warnings(experiment: Experiment, variants: Sequence[Variant]) -> list[str]:
    measure = experiment.measure
    found = []
    if measure.repeats < FEWEST_TRIALS_FOR_INTERVAL:
        found.append(
            f"measure.repeats = {measure.repeats}: fewer than {FEWEST_TRIALS_FOR_INTERVAL} trials allow no interval and no verdict"
        )
    if not measure.aa:
        found.append("measure.aa = false: without the A/A pair nothing shows what this machine can tell apart")
    if measure.order == "sequential" and len(variants) > 1:
        found.append("measure.order = sequential: a drift of the machine falls on the variants unequally")
    if measure.warmup_s == 0:
        found.append("measure.warmup = 0: cold caches are measured together with the rest")
    if len(variants) > _NOTEWORTHY_VARIANTS:
        found.append(f"{len(variants)} variants: with so many comparisons small differences will stay undecided")
    return found
