"""Plans further trials for a run whose planned trials have all been measured."""

from plinth.model.errors import UsageError
from plinth.model.experiment import MOST_REPEATS
from plinth.model.plan import Extension, Plan
from plinth.plan.build import PlanInputs, plan_of_trials, warnings_of
from plinth.plan.order import more_trials
from plinth.plan.variants import ClusterKey, Expanded


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
