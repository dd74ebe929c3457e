"""The snapshots of one trial: taken while the load runs, gone back to when it has ended, and removed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from plinth.model.action import Action
from plinth.model.base import SettingValue
from plinth.model.errors import PlinthError
from plinth.model.flashback import SnapshotAction
from plinth.model.plan import PlannedCluster
from plinth.model.progress import Report
from plinth.run.context import RunContext
from plinth.server.copies.live_snapshot import LiveSnapshot
from plinth.system import cancel
from plinth.system.journal import Journal
from plinth.system.runner import Runner

if TYPE_CHECKING:
    from plinth.server.node import Server


@dataclass(frozen=True)
class TakenSnapshot:
    """A snapshot that is there. Times are CLOCK_MONOTONIC in ns: before and after the command that took it."""

    action: SnapshotAction
    snapshot: LiveSnapshot
    began_ns: int
    ended_ns: int


def live_snapshot(context: RunContext, cluster: PlannedCluster, number: int) -> LiveSnapshot:
    """Return snapshot `number`, from 1, of a cluster's primary, on whose storage the plan was checked for it."""
    name = cluster.primary.server.storage
    assert name is not None, "it is a managed server"
    storage = context.storages[name]
    of_storage = None if storage.has_subvolumes() else storage.snapshot(f"snapshot-{number}")
    layout = context.layout(cluster, cluster.primary)
    return context.host_of(cluster.primary).live_snapshot(layout, cluster, number, of_storage)


def remove_left_snapshots(
    context: RunContext, cluster: PlannedCluster, actions: Sequence[Action], journal: Journal, runner: Runner
) -> None:
    """Remove what a run that was killed has left of the snapshots of a cluster whose primary has ended."""
    count = sum(isinstance(action, SnapshotAction) for action in actions)
    for number in range(count, 0, -1):
        live_snapshot(context, cluster, number).remove(runner, journal)


@dataclass(eq=False)
class TrialSnapshots:
    """Takes snapshots of one server. Leaving it removes all of them; the files are then those of whichever was gone back to last, and
    are restored before the next trial."""

    server: "Server"
    settings: Mapping[str, SettingValue]
    _snapshot: Callable[[int], LiveSnapshot]
    _runner: Runner
    _journal: Journal
    _report: Report
    _begun: list[LiveSnapshot] = field(default_factory=list, init=False)
    _taken: list[TakenSnapshot] = field(default_factory=list, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with cancel.masked():
            try:
                for snapshot in reversed(self._begun):
                    snapshot.remove(self._runner, self._journal)
            except PlinthError:
                if error is None:
                    raise
                # Of a storage that has failed: it goes with its snapshots, and `error` says why.

    def take(self, action: SnapshotAction) -> None:
        """Take one now. Raises PlinthError when the storage refuses it."""
        snapshot = self._snapshot(len(self._begun) + 1)
        snapshot.remove(self._runner, self._journal)
        snapshot.record(self._journal)
        self._begun.append(snapshot)
        began_ns = time.monotonic_ns()
        snapshot.take(self._runner)
        self._taken.append(TakenSnapshot(action, snapshot, began_ns, time.monotonic_ns()))

    def last_first(self) -> Iterator[TakenSnapshot]:
        """Yield those that were taken; each is removed before the next, since a ZFS dataset goes back to its last one only."""
        while self._taken:
            taken = self._taken.pop()
            yield taken
            taken.snapshot.remove(self._runner, self._journal)
            self._begun.remove(taken.snapshot)

    def go_back(self, taken: TakenSnapshot) -> float:
        """Put the files back to a snapshot; the server is ended for it. Returns how long it took, in s. Raises PlinthError."""
        self.server.crash()
        return taken.snapshot.go_back(self._runner, self._report)
