"""The table of datasets: which there are, and how the kinds differ for those who load them."""

from collections.abc import Mapping

from plinth.model.base import SettingValue
from plinth.model.dataset import (
    BackupDataset,
    DatasetSpec,
    DumpDataset,
    GeneratedDataset,
    LoadedTables,
    NoDataset,
    NumbersDataset,
    SqlDataset,
    TpcbDataset,
    TpccDataset,
    UpsertDataset,
)
from plinth.workload.dataset import Dataset


def is_resumable(spec: DatasetSpec) -> bool:
    """Return whether `populate` resumes a load that was killed; the user's own SQL files and dumps do not know what is there."""
    return not isinstance(spec, SqlDataset | DumpDataset | BackupDataset)


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
            from plinth.workload.table import Generated

            return Generated(spec)
        case SqlDataset():
            from plinth.workload.sql_dataset import Sql

            return Sql(spec, files or {})
        case DumpDataset():
            from plinth.workload.dump import Dump

            return Dump(spec)
        case BackupDataset():
            from plinth.workload.backup import Backup

            return Backup(spec)
        case NoDataset():
            return Dataset()
