"""The plan of a run to which trials are added, on the machine as it is now."""

import time
from functools import partial
from pathlib import Path

from plinth.model.errors import UsageError
from plinth.model.manifest import TrialsEnd
from plinth.model.plan import Plan
from plinth.plan import extended, plan_more
from plinth.run.context import RunContext, network_layout
from plinth.run.host import Hosts
from plinth.run.planning.inputs import plan_inputs
from plinth.run.provision.restoring import restoring_of
from plinth.system.runner import Runner
from plinth.workload import dataset_of


def extended_plan(plan: Plan, repeats: int, bundle: Path, hosts: Hosts) -> Plan:
    """Return `plan` with `repeats` further trials of each variant; nothing is changed by making it.

    Variants, clusters and scripts stay as planned. Space, memory and disks are checked again. Raises UsageError for a
    number that cannot be added.
    """
    context = RunContext.of(
        plan.storages,
        plan.run_id,
        {name: host.facts() for name, host in hosts.items()},
        bundle,
        network=network_layout(plan.run_id, plan.networked, plan.experiment.measure.seed),
        hosts=hosts,
    )
    installations = {cluster.id: cluster.installation for cluster in plan.clusters if cluster.installation is not None}
    datasets = partial(dataset_of, files=plan.dataset_files)
    inputs = plan_inputs(
        context,
        Runner(),
        datasets,
        installations,
        plan.experiment.measure,
        restoring_of(plan, context),
        plan.experiment.fleet,
    )
    more = plan_more(plan, repeats, inputs)
    return extended(plan, more, time.time_ns())


def last_block_with_more(plan: Plan, end: TrialsEnd | None, more: int) -> int:
    """Return the block after which a run with measure.target ends, whose budget was spent, when `more` of its planned blocks
    are run.

    Raises UsageError for a number that cannot be added: the share of false alarms is that of the most trials that were planned.
    """
    if end is None:
        raise UsageError(
            f"all {plan.experiment.measure.repeats} trials of each variant that measure.repeats allows were run",
            where="--more",
            hint="with measure.target, the share of false alarms holds for that many; begin a new run with a larger --repeats",
        )
    if end.reason == "decided":
        raise UsageError(
            f"every comparison was decided after block {end.block}",
            where="--more",
            hint="what was decided remains so in spite of later trials; for a narrower interval, begin a new run with a "
            "smaller measure.target or a fixed number of trials",
        )
    left = max(planned.block for planned in plan.trials) - end.block
    if not 1 <= more <= left:
        raise UsageError(
            f"cannot add {more} trials of each variant: allowed: 1 to {left}",
            where="--more",
            hint=f"measure.repeats = {plan.experiment.measure.repeats} is the most that was planned",
        )
    return end.block + more
