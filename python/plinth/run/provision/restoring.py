"""How the files of each cluster are restored (`measure.restore`), by what its storages can do."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from plinth.model.errors import Problem
from plinth.model.experiment import MeasureSpec, RestoreAsked
from plinth.model.flashback import SnapshotAction
from plinth.model.plan import Plan, PlannedCluster, PlannedNode
from plinth.run.context import RunContext
from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
from plinth.storage import Storage
from plinth.storage.capacity import copies_share_blocks
from plinth.system.journal import Journal
from plinth.system.runner import Runner

_STANDBYS = "snapshots are taken of servers without standbys only"


@dataclass(frozen=True)
class Restoring:
    """What was asked for, how many clusters are stored on each storage, and which storages have clusters with standbys.

    `takes_snapshots`: of servers that run, for which a data directory on btrfs has to be a subvolume.
    """

    context: RunContext
    asked: RestoreAsked
    takes_snapshots: bool
    clusters_on: Mapping[str, int]
    with_standbys: frozenset[str]

    @classmethod
    def of(
        cls, context: RunContext, clusters: Iterable[tuple[Collection[str], bool]], measure: MeasureSpec
    ) -> "Restoring":
        """Describe an experiment; each of its `clusters` is given by its storages, and whether it has standbys."""
        known = list(clusters)
        return cls(
            context,
            measure.restore,
            any(isinstance(action, SnapshotAction) for action in measure.actions),
            Counter(name for storages, _ in known for name in storages),
            frozenset(name for storages, has_standbys in known if has_standbys for name in storages),
        )

    def ways(self, cluster: PlannedCluster, node: PlannedNode) -> dict[str, RestoreWay]:
        """Return the way for each directory of a node, by what is stored there; empty where its cluster is not restored."""
        if not cluster.restored:
            return {}
        ways: dict[str, RestoreWay] = {}
        for role, name in node.roles.items():
            way = self._way(self.context.storages[name])
            assert way != "none", "it is restored"
            ways[role] = way
        return ways

    def shares_blocks(self, storage: Storage) -> bool:
        """Return whether the copies on a storage are known to share the blocks of the files."""
        match self._way(storage):
            case "none" | "copy":
                return False
            case "auto":
                return copies_share_blocks(storage.spec)
            case _:
                return True

    def problems(self) -> Iterator[Problem]:
        """Yield why snapshots that were asked for cannot be taken: because of standbys, and for each other storage."""
        if self.asked != "snapshot":
            return
        if self.with_standbys:
            yield Problem(
                f'restore: got "snapshot"; {_STANDBYS}',
                path=["measure", "restore"],
                hint='take "auto", "reflink" or "copy", or leave [server.standby] out',
            )
        for name in (name for name in self.clusters_on if name not in self.with_standbys):
            storage = self.context.storages[name]
            reason = None if storage.has_subvolumes() else self.no_snapshot(storage)
            if reason is not None:
                yield Problem(
                    f'restore: got "snapshot"; {reason}',
                    path=["measure", "restore"],
                    hint='take "auto", "reflink" or "copy"',
                )

    def _way(self, storage: Storage) -> RestoreWay | Literal["none"]:
        if self.asked in ("snapshot", "auto") and (snapshot := storage.snapshot()) and not self.no_snapshot(storage):
            return snapshot
        as_subvolume = self.asked == "auto" and self.takes_snapshots and storage.has_subvolumes()
        return "subvolume" if as_subvolume or self.asked == "snapshot" else self.asked

    def no_snapshot(self, storage: Storage) -> str | None:
        """Return why there can be no snapshot of everything on a storage; None when there can."""
        if storage.snapshot() is None:
            return (
                f"storage {storage.name} (kind {storage.spec.kind}) has no snapshots: those of btrfs and ZFS are used"
            )
        if storage.name in self.with_standbys:
            return _STANDBYS
        if storage.context.is_base:
            return f"files of other storages are on {storage.name}, and going back to a snapshot of it would take them along"
        if (count := self.clusters_on[storage.name]) > 1:
            return f"{count} clusters are stored on {storage.name}, and going back to a snapshot of it would take all of them along"
        return None


def restoring_of(plan: Plan, context: RunContext) -> Restoring:
    """Return how the files are restored in a plan."""
    return Restoring.of(
        context, ((cluster.storages, bool(cluster.standbys)) for cluster in plan.clusters), plan.experiment.measure
    )


def loaded_copies(
    planned: PlannedCluster, plan: Plan, context: RunContext, runner: Runner, journal: Journal
) -> list[LoadedCopy]:
    """Return the copies of a cluster's files as loaded, one for each node."""
    restoring = restoring_of(plan, context)
    return [
        context.host_of(node).loaded_copy(
            context.layout(planned, node), restoring.ways(planned, node), planned, node, runner, journal
        )
        for node in planned.nodes
    ]
