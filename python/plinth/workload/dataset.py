"""What a dataset offers, and the interface to the server that it is loaded into."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from plinth.model.base import Gap
from plinth.model.connection import Connection
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.system.runner import Runner
from plinth.workload.bulk import Loader

if TYPE_CHECKING:
    import psycopg

Snapshot = dict[str, int]
"""Figures of the database before a trial, that its checks compare with."""


class DatasetServer(Protocol):
    """A server while a dataset is loaded into it."""

    @property
    def control(self) -> "psycopg.Connection":
        """Return the session that tables are made in; another one once the server has been stopped and started."""
        ...

    @property
    def target(self) -> Connection:
        """Return where further sessions connect: as those of the load."""
        ...

    @property
    def control_target(self) -> Connection | None:
        """Return where control sessions connect; None where they do as `target`."""
        ...

    def loader(self, config: dict[str, Any], size_bytes: float) -> Loader:
        """Return what sends rows of about `size_bytes` in their tables by COPY: of this process, or of several machines."""
        ...

    @property
    def cores(self) -> int:
        """Return the processors of the machine that the server is on."""
        ...

    @property
    def runner(self) -> Runner:
        """Return what runs commands on this machine."""
        ...

    def client_bindir(self) -> Path:
        """Return the directory of client programs of the server's version on this machine. Raises Refused for a server that is not ours,
        MissingCapability."""
        ...

    def stopped(self) -> AbstractContextManager[None]:
        """Shut the server down while the block runs, so that its files are at rest. Raises Refused for one that we may not stop.

        It is started again at the end, but not where something was raised within.
        """
        ...


class Dataset:
    """Tables and rows: how they are made, prepared for a trial, and checked after it.

    The class itself is the dataset of kind none: scripts make or find their own tables. Those that are `is_brought` have objects of others,
    which nothing of Plinth's own calls with the rights of a superuser: `control` is then a control session. For all others it
    is one as the load's, which looks up names in the search_path of the role.
    """

    is_brought: ClassVar[bool] = False

    def size(self) -> DatasetSize:
        """Return the estimated size on disk."""
        return DatasetSize(0, 0)

    def populate_s(self) -> float:
        """Return the estimated time to populate it, on a common SSD."""
        return 0.0

    def variables(self) -> dict[str, str]:
        """Return the variables that scripts may use: a scale, which is 1 where a dataset has none, as in pgbench."""
        return {"scale": "1"}

    def steps(self) -> list[Step]:
        """Return the steps of `populate`, for the plan."""
        return []

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make tables, rows, keys and statistics, and verify the row counts. Raises RunError.

        Anything raised in it, such as Interrupted by a signal, ends the streams that it started.
        """

    def gaps(self, control: "psycopg.Connection") -> tuple[Gap, ...]:
        """Return what has to be known of the data once they are there."""
        return ()

    def before_trial(self, control: "psycopg.Connection") -> Snapshot:
        """Bring the dataset to the state that each trial starts from; returns what the checks compare with."""
        return {}

    def after_trial(
        self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Return the checks of the database after the trial; none where nothing is known about what scripts do."""
        return []

    def after_cut(self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec) -> list[Check]:
        """Check the invariants: what must hold after a crash, whichever transactions of the workload have committed.

        `before` is of `before_trial`. There are none where nothing is known about what scripts do. Raises psycopg.Error for
        tables that cannot be read.
        """
        return []


def numbers_of(control: "psycopg.Connection", query: str) -> tuple[int, ...]:
    """Return the single row of integers that a query returns."""
    row = control.execute(query.encode()).fetchone()
    assert row is not None, "an aggregate gives one row"
    return tuple(int(value) for value in row)
