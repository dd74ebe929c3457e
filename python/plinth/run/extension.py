"""The plan of a run to which trials are added, on the machine as it is now."""

import time
from functools import partial
from pathlib import Path

from plinth.model.plan import Plan
from plinth.observe import host_facts
from plinth.plan import extended, plan_more
from plinth.run.context import RunContext
from plinth.run.plan_inputs import plan_inputs
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.workload import dataset_of


def extended_plan(plan: Plan, repeats: int, bundle: Path) -> Plan:
    """`plan` with `repeats` further trials of each variant; nothing is changed by making it.

    Variants, clusters and scripts stay as planned. Space, memory and disks are looked at anew. Raises UsageError for a
    number that cannot be added.
    """
    context = RunContext.of(plan.storages, plan.run_id, host_facts(), server_owner(), bundle)
    installations = {cluster.id: cluster.installation for cluster in plan.clusters if cluster.installation is not None}
    datasets = partial(dataset_of, files=plan.dataset_files)
    more = plan_more(plan, repeats, plan_inputs(context, Runner(), datasets, installations))
    return extended(plan, more, time.time_ns())
