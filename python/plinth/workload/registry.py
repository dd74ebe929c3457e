"""The table of datasets: which there are, and how the kinds differ for those who load them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plinth.model.base import SettingValue
from plinth.model.dataset import (
    DatasetSpec,
    GeneratedDataset,
    LoadedTables,
    NoDataset,
    NumbersDataset,
    SqlDataset,
    TpcbDataset,
    TpccDataset,
    UpsertDataset,
)
from plinth.model.load import LoadResult
from plinth.model.plan import DatasetSize
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.workload.dataset import Dataset, Snapshot
from plinth.workload.server import DatasetServer

if TYPE_CHECKING:
    import psycopg


class Nothing:
    """No dataset: scripts make or find their own tables."""

    def size(self) -> DatasetSize:
        """Nothing is loaded."""
        return DatasetSize(0, 0)

    def populate_s(self) -> float:
        """Nothing is loaded."""
        return 0.0

    def variables(self) -> dict[str, str]:
        """Scripts get no variable of a dataset but a scale of 1, as from pgbench."""
        return {"scale": "1"}

    def steps(self) -> list[Step]:
        """No steps."""
        return []

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Nothing is loaded."""

    def before_trial(self, control: "psycopg.Connection") -> Snapshot:
        """Nothing is prepared."""
        return {}

    def after_trial(
        self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec, result: LoadResult
    ) -> list[Check]:
        """Return no checks: nothing is known about the tables."""
        return []

    def after_cut(self, control: "psycopg.Connection", before: Snapshot, workload: WorkloadSpec) -> list[Check]:
        """Return no invariants."""
        return []


def is_resumable(spec: DatasetSpec) -> bool:
    """Return whether `load` resumes a load that was killed; the user's own SQL files do not know what is there."""
    return not isinstance(spec, SqlDataset)


def settings_while_loading(spec: DatasetSpec) -> dict[str, SettingValue]:
    """Return settings of a managed server while the dataset is loaded."""
    return spec.load_settings if isinstance(spec, LoadedTables) else {}


def dataset_of(spec: DatasetSpec, files: Mapping[str, str] | None = None) -> Dataset:
    """Return the dataset that a specification asks for; `files` are the texts of the SQL files that it names, by path as written.

    Imports the modules of that kind only, since they are many.
    """
    match spec:
        case TpcbDataset():
            from plinth.workload.tpcb import Tpcb

            return Tpcb(spec)
        case TpccDataset():
            from plinth.workload.tpcc import Tpcc

            return Tpcc(spec)
        case NumbersDataset():
            from plinth.workload.numbers import Numbers

            return Numbers(spec)
        case UpsertDataset():
            from plinth.workload.upsert import Upsert

            return Upsert(spec)
        case GeneratedDataset():
            from plinth.workload.generated import Generated

            return Generated(spec)
        case SqlDataset():
            from plinth.workload.sql_dataset import Sql

            return Sql(spec, files or {})
        case NoDataset():
            return Nothing()
