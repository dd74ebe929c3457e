"""Loading a cluster's dataset: how long each part took, and what it came to."""

import time
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.model.loaded import LoadedDataset, LoadTask
from plinth.model.plan import PlannedCluster
from plinth.model.progress import Progress, Report
from plinth.workload import Dataset, loaded_tables

if TYPE_CHECKING:
    import psycopg


class TaskClock:
    """Passes progress on, and keeps when each task was first and last heard of."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._heard: dict[str, tuple[float, float]] = {}

    def report(self, progress: Progress) -> None:
        """Tell how far a task is."""
        now = time.monotonic()
        first, _ = self._heard.get(progress.task, (now, now))
        self._heard[progress.task] = (first, now)
        self._report(progress)

    def tasks(self) -> tuple[LoadTask, ...]:
        """The tasks in their order, each from its first word to its last."""
        return tuple(LoadTask(name=name, duration_s=last - first) for name, (first, last) in self._heard.items())


def load_dataset(
    planned: PlannedCluster,
    dataset: Dataset,
    control: "psycopg.Connection[Any]",
    target: Connection,
    report: Report,
) -> LoadedDataset:
    """Load `dataset`, and look at what it came to. Raises RunError."""
    clock = TaskClock(report)
    began = time.monotonic()
    dataset.load(control, target, clock.report)
    load_s = time.monotonic() - began
    tables, gaps = loaded_tables(control)
    return LoadedDataset(
        cluster=planned.id, kind=planned.dataset.kind, load_s=load_s, tasks=clock.tasks(), tables=tables, gaps=gaps
    )
