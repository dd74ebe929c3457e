"""The facts about this machine that planning needs: free space, steps, sizes and times."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from plinth.model.dataset import DatasetSpec
from plinth.model.experiment import MeasureSpec
from plinth.model.facts import Installation
from plinth.model.fleet import FleetSpec
from plinth.plan import PlanInputs, StoragePlace, memory_of
from plinth.run.checks.destroy import destructive_targets
from plinth.run.context import RunContext
from plinth.run.host import Host
from plinth.run.planning.steps import PlanSteps
from plinth.run.provision.restoring import Restoring
from plinth.storage import Storage
from plinth.system.runner import Runner
from plinth.workload import Dataset


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
    steps = PlanSteps(context, dataset_of, measure, restoring, fleet)
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
        provision_steps=steps.provision,
        trial_steps=steps.trial,
        teardown_steps=steps.teardown,
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


def _place(storage: Storage, host: Host, restoring: Restoring) -> StoragePlace:
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
            available_bytes = storage.context.host.memory_available_bytes
            memory = memory_of(host.name)
            return replace(place, key=memory, where=memory, available_bytes=available_bytes)
        case Path():
            key, available_bytes = host.free_space(source)
            where = str(source) if host.name is None else f"{host.name}:{source}"
            return replace(place, key=key, where=where, available_bytes=available_bytes)
        case base:
            return replace(place, on=base.name)
