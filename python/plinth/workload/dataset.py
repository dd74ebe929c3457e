"""What a dataset must offer."""

from typing import TYPE_CHECKING, Protocol

from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.server import DatasetServer

if TYPE_CHECKING:
    import psycopg

Snapshot = dict[str, int]
"""Figures of the database before a trial, that its checks compare with."""


class Dataset(Protocol):
    """Tables and rows: how they are made, prepared for a trial, and checked after it."""

    def size(self) -> DatasetSize:
        """Return the estimated size on disk."""
        ...

    def populate_s(self) -> float:
        """Return the estimated time to populate it, on a common SSD."""
        ...

    def variables(self) -> dict[str, str]:
        """Return the variables that scripts may use, such as scale."""
        ...

    def steps(self) -> list[Step]:
        """Return the steps of `load`, for the plan."""
        ...

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make tables, rows, keys and statistics, and verify the row counts. Raises RunError.

        Anything raised in it, such as Interrupted by a signal, ends the streams that it started.
        """
        ...

    def before_trial(self, control: "psycopg.Connection") -> Snapshot:
        """Bring the dataset to the state that each trial starts from; returns what the checks compare with."""
        ...

    def after_trial(
        self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Return the checks of the database after the trial."""
        ...

    def after_cut(self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec) -> list[Check]:
        """Return the invariants: what must hold after a crash, whichever transactions of the workload have committed; none where
        nothing is known of it.

        `before` is of `before_trial`. Raises psycopg.Error for tables that cannot be read.
        """
        ...
