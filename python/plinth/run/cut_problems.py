"""Why the power of what an experiment measures cannot be cut, or why nothing would be learned from it."""

from collections.abc import Callable

from plinth.model.builtin import BUILTINS
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Problem
from plinth.model.experiment import WorkloadSpec
from plinth.plan import Expanded
from plinth.run.context import RunContext
from plinth.workload import Dataset
from plinth.workload.survival import knows_commits


def cut_problems(
    context: RunContext, expanded: Expanded, dataset_of: Callable[[DatasetSpec], Dataset]
) -> list[Problem]:
    """Each at the key that asks for it; none when every variant can be tested by power cuts."""
    found: dict[str, Problem] = {}
    clusters = {cluster.id: cluster for cluster in expanded.clusters}
    for variant in expanded.variants:
        cluster = clusters[variant.cluster]
        if cluster.server.connection is not None:
            found["connection"] = Problem(
                "the power of an external server cannot be cut by a command", path=["durability"]
            )
            continue
        names = {cluster.server.storage, cluster.server.wal_storage, *cluster.server.tablespaces.values()} - {None}
        for storage in context.closure(name for name in names if name is not None):
            if (refusal := storage.power_cut_refusal()) and storage.name in names:
                found[storage.name] = Problem(
                    f"the power cannot be cut: {refusal}",
                    path=["storage", storage.name],
                    hint='use kind = "emulated", or leave [durability] out',
                )
        if not knows_commits(variant.workload, dataset_of(cluster.dataset)):
            found["workload"] = _unknown_commits(variant.workload)
    return list(found.values())


def _unknown_commits(workload: WorkloadSpec) -> Problem:
    counted = [name for name, traits in BUILTINS.items() if traits.leaves_history]
    return Problem(
        f"after a power cut nobody could tell which commits of {workload.builtin or 'a script'} are there",
        path=["workload", "builtin" if workload.builtin else "script"],
        hint=f"with [durability], set workload.ledger = true, or builtin to one of {', '.join([*counted, 'ledger'])}",
    )
