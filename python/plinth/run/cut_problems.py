"""Why the power of what an experiment measures cannot be cut, or why nothing would be learned from it."""

from collections.abc import Callable

from plinth.model.builtin import BUILTINS
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Problem
from plinth.model.experiment import WorkloadSpec
from plinth.plan import Expanded
from plinth.run.context import RunContext
from plinth.workload import Dataset
from plinth.workload.survival import KnowsCommits

_TELLS_COMMITS = ("tpcb-like", "simple-update")


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
        if problem := _of_workload(variant.workload, dataset_of(cluster.dataset)):
            found["workload"] = problem
    return list(found.values())


def _of_workload(workload: WorkloadSpec, dataset: Dataset) -> Problem | None:
    if isinstance(dataset, KnowsCommits) and workload.builtin in _TELLS_COMMITS:
        return None
    allowed = [name for name in _TELLS_COMMITS if name in BUILTINS]
    return Problem(
        f"after a power cut nobody could tell which commits of {workload.builtin or 'a script'} are there",
        path=["workload", "builtin" if workload.builtin else "script"],
        hint=f"with [durability], builtin is one of {', '.join(allowed)}",
    )
