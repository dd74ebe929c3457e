"""Whether this machine has the space and memory that a plan needs."""

from collections.abc import Sequence

from plinth.model.errors import MissingCapability
from plinth.model.plan import Need, Plan


def check_needs(plan: Plan) -> None:
    """Raise MissingCapability, naming each need that is not met, when nothing can be measured: see `lacking_storages`."""
    _, for_all = lacking_storages(plan)
    for error in for_all:
        raise error


def lacking_storages(plan: Plan) -> tuple[dict[str, MissingCapability], list[MissingCapability]]:
    """Return the storages that lack what they need, each with what it lacks; and what keeps everything from being measured.

    That is so when no cluster has what it needs, and of the published size, which takes hours, when any lacks something.
    """
    unmet = [need for need in plan.needs if need.met is False]
    lacking = {name: _lacking([need]) for need in unmet for name in need.storages}
    hopeless = plan.clusters and all(lacking.keys() & set(cluster.bytes_by_storage) for cluster in plan.clusters)
    if hopeless or any(not need.storages for need in unmet) or (plan.full and unmet):
        return {}, [_lacking(unmet)]
    return lacking, []


def _lacking(needs: Sequence[Need]) -> MissingCapability:
    return MissingCapability(
        "this machine lacks what the plan needs",
        details=[need.sentence for need in needs],
        hint="--scale-to-fit cuts the dataset; --set dataset.scale=N (or rows) sets its size; the sizes of storages are set separately",
    )
