"""What a trial does before its load so that it begins in the state that was asked for: steps of the plan."""

from pathlib import Path

from plinth.model.experiment import MeasureSpec
from plinth.model.flashback import SnapshotAction
from plinth.model.plan import PlannedCluster, PlannedTrial, Variant
from plinth.model.step import Step
from plinth.run.context import RunContext
from plinth.run.host import ServerHost
from plinth.run.provision.restoring import Restoring
from plinth.run.trial.snapshots import live_snapshot
from plinth.server.copies.loaded_copy import CopySteps
from plinth.system.drop_caches import DROP_COMMAND, write_back_command


def keeping_steps(context: RunContext, cluster: PlannedCluster, restoring: Restoring) -> list[Step]:
    """Return the steps of `measure.restore` that keep a copy of a cluster's files as they are after loading."""
    if not cluster.restored:
        return []
    return [step for copy, host in _copies(context, cluster, restoring) for step in host.shown(copy.keeping())]


def restoring_steps(
    context: RunContext, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster, restoring: Restoring
) -> list[Step]:
    """Return the steps of `measure.restore` that put the files of a cluster back, while its server is stopped."""
    if not cluster.restored:
        return []
    return [
        _of_trial(step, trial, variant)
        for copy, host in _copies(context, cluster, restoring)
        for step in host.shown(copy.restoring())
    ]


def _copies(context: RunContext, cluster: PlannedCluster, restoring: Restoring) -> list[tuple[CopySteps, ServerHost]]:
    return [
        (CopySteps(context.layout(cluster, node), restoring.ways(cluster, node)), context.host_of(node))
        for node in cluster.nodes
    ]


def snapshot_steps(
    context: RunContext, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster, measure: MeasureSpec
) -> list[Step]:
    """Return the steps of snapshots: taking them during the load, and going back to each when it has ended, the last first."""
    count = sum(isinstance(action, SnapshotAction) for action in measure.actions)
    snapshots = [live_snapshot(context, cluster, number) for number in range(1, count + 1)]
    steps = [one.taking() for one in snapshots]
    for one in reversed(snapshots):
        check = Step(
            id=f"{one.taking().id}.check",
            title=f"start {cluster.id}, which recovers; compare the commit ledger with snapshot {one.number}, and check all files",
        )
        steps += [*one.going_back(), check, one.removing()]
    shown = context.host_of(cluster.primary).shown(steps)
    return [_of_trial(step, trial, variant) for step in shown]


def _of_trial(step: Step, trial: PlannedTrial, variant: Variant) -> Step:
    return step.model_copy(
        update={
            "id": f"trial.{trial.number}.{step.id}",
            "title": f"trial {trial.number}, {variant.label}: {step.title}",
        }
    )


def cache_steps(
    context: RunContext, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster, measure: MeasureSpec
) -> list[Step]:
    """Return the steps of `measure.cache`, after the server was started and the dataset prepared, before the load."""
    name, what = f"trial.{trial.number}", f"trial {trial.number}, {variant.label}"
    match measure.cache:
        case "as-is":
            return []
        case "warm":
            return [
                Step(
                    id=f"{name}.warm",
                    title=f"{what}: CHECKPOINT, then read all tables and indexes into memory until another pass reads no less "
                    "from the devices",
                )
            ]
        case "cold":
            mounts: list[Path] = [context.storages[storage].mount_point for storage in cluster.storages]
            return [
                Step(
                    id=f"{name}.write_back",
                    title=f"{what}: CHECKPOINT, stop the server, write back its storages",
                    argv=write_back_command(mounts),
                ),
                Step(
                    id=f"{name}.drop_caches",
                    title=f"{what}: drop the page cache of the whole machine, and start the server again",
                    argv=DROP_COMMAND,
                ),
            ]
