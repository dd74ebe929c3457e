"""What a dataset must offer, and which there are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from plinth.model.base import SettingValue
from plinth.model.dataset import (
    DatasetSpec,
    GeneratedDataset,
    LoadedTables,
    NoDataset,
    NumbersDataset,
    SqlDataset,
    TpcbDataset,
    UpsertDataset,
)
from plinth.model.experiment import WorkloadSpec
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.workload.generated import Generated
from plinth.workload.numbers import Numbers
from plinth.workload.server import LoadServer
from plinth.workload.sql_dataset import Sql
from plinth.workload.tpcb import Tpcb
from plinth.workload.upsert import Upsert

if TYPE_CHECKING:
    import psycopg

Snapshot = dict[str, int]
"""Figures of the database before a trial, that its checks compare with."""


class Dataset(Protocol):
    """Tables and rows: how they are made, prepared for a trial, and checked after it."""

    def size(self) -> DatasetSize:
        """Estimated size on disk."""
        ...

    def load_s(self) -> float:
        """Estimated time to load, on a common SSD."""
        ...

    def variables(self) -> dict[str, str]:
        """Variables that scripts may use, such as scale."""
        ...

    def steps(self) -> list[Step]:
        """What `load` does, for the plan."""
        ...

    def load(self, server: LoadServer, report: Report) -> None:
        """Make tables, rows, keys and statistics, and verify the row counts. Raises RunError.

        Whatever is raised in it, such as Interrupted by a signal, ends the streams that it started.
        """
        ...

    def before_trial(self, control: "psycopg.Connection") -> Snapshot:
        """Bring the dataset to the state that each trial starts from; returns what the checks compare with."""
        ...

    def after_trial(
        self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """What must hold of the database after the trial."""
        ...


class Nothing:
    """No dataset: scripts make or find their own tables."""

    def size(self) -> DatasetSize:
        """Nothing is loaded."""
        return DatasetSize(0, 0)

    def load_s(self) -> float:
        """Nothing is loaded."""
        return 0.0

    def variables(self) -> dict[str, str]:
        """Scripts get no variable of a dataset but a scale of 1, as from pgbench."""
        return {"scale": "1"}

    def steps(self) -> list[Step]:
        """Nothing is done."""
        return []

    def load(self, server: LoadServer, report: Report) -> None:
        """Nothing is loaded."""

    def before_trial(self, control: "psycopg.Connection") -> Snapshot:
        """Nothing is prepared."""
        return {}

    def after_trial(
        self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Nothing is known that must hold."""
        return []


def is_resumable(spec: DatasetSpec) -> bool:
    """Whether `load` resumes a load that was killed; the user's own SQL files do not know what is there."""
    return not isinstance(spec, SqlDataset)


def load_settings(spec: DatasetSpec) -> dict[str, SettingValue]:
    """Settings of a managed server while the dataset is loaded."""
    return spec.load_settings if isinstance(spec, LoadedTables) else {}


def dataset_of(spec: DatasetSpec, files: Mapping[str, str] | None = None) -> Dataset:
    """The dataset that a specification asks for; `files` are the texts of the SQL files that it names, by path as written."""
    match spec:
        case TpcbDataset():
            return Tpcb(spec)
        case NumbersDataset():
            return Numbers(spec)
        case UpsertDataset():
            return Upsert(spec)
        case GeneratedDataset():
            return Generated(spec)
        case SqlDataset():
            return Sql(spec, files or {})
        case NoDataset():
            return Nothing()
