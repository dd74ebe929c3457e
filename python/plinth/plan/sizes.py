"""Estimates the space that clusters take, and the bytes that a run writes."""

import re
from collections.abc import Sequence

from plinth.model.base import SettingValue
from plinth.model.dataset import DatasetSpec, LoadedTables
from plinth.model.experiment import Experiment
from plinth.model.pg_units import SIZES_BYTES
from plinth.model.plan import DatasetSize, PlannedCluster, Variant
from plinth.model.server_spec import DEFAULT_TABLESPACE, ServerSpec
from plinth.model.workload import WorkloadSpec

EMPTY_DATA_BYTES = 32 * 2**20
"""Size of a data directory after initdb, without WAL."""
EMPTY_WAL_BYTES = 16 * 2**20
"""Size of its first WAL segment."""

_DEFAULT_MAX_WAL_BYTES = 2**30
_WAL_BYTES_PER_S = 25e6
DEFAULT_SHARED_BUFFERS_BYTES = 128 * 2**20

_WAL_LOAD_FACTOR = 1.5
_GROWTH = 1.1
"""Growth of tables and indexes by dead rows, as a factor."""


def setting_bytes(value: SettingValue, unit_bytes: int) -> int | None:
    """Return the bytes of a PostgreSQL setting such as "1GB", or 16384 in units of `unit_bytes`; None if it is no size."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?B)?\s*", str(value))
    return round(float(match[1]) * (SIZES_BYTES[match[2]] if match[2] else unit_bytes)) if match else None


def node_bytes(
    server: ServerSpec, dataset: DatasetSpec, size: DatasetSize, variants: Sequence[Variant], trial_s: float
) -> dict[str, int]:
    """Return the highest use of each storage of a node in bytes: while keys are built, or in trials. An external server
    uses none."""
    if server.storage is None:
        return {}
    of_tablespace = {DEFAULT_TABLESPACE: server.storage, **server.tablespaces}
    tables = of_tablespace[getattr(dataset, "tablespace", None) or DEFAULT_TABLESPACE]
    keys = of_tablespace[getattr(dataset, "index_tablespace", None) or DEFAULT_TABLESPACE]
    wal_bytes = EMPTY_WAL_BYTES + _wal_bytes(size.total_bytes, variants, trial_s)
    wal = (server.wal_storage or server.storage, wal_bytes)
    always = [*((storage, 0) for storage in server.tablespaces.values()), (server.storage, EMPTY_DATA_BYTES), wal]
    trials = [(tables, size.tables_bytes * _GROWTH), (keys, size.indexes_bytes * _GROWTH)]
    # Temporary files of an index build are in the default tablespace, not in that of the index.
    building = [(tables, size.tables_bytes), (keys, size.indexes_bytes), (server.storage, size.sorts_bytes)]
    moments = [_by_storage([*always, *trials]), _by_storage([*always, *building])]
    if getattr(dataset, "unlogged", False):  # SET LOGGED rewrites each table, and removes the old files only at the end
        moments.append(_by_storage([*always, (tables, 2 * size.tables_bytes)]))
    return {storage: max(moment.get(storage, 0) for moment in moments) for storage in moments[0]}


def _by_storage(parts: Sequence[tuple[str, float]]) -> dict[str, int]:
    """Sum bytes by storage."""
    storages = dict.fromkeys(storage for storage, _ in parts)
    return {storage: round(sum(size for other, size in parts if other == storage)) for storage in storages}


def _wal_bytes(dataset_bytes: int, variants: Sequence[Variant], trial_s: float) -> float:
    """Return the WAL that load and trials leave, at most max_wal_size."""
    limits = [
        setting_bytes(v.settings["max_wal_size"], SIZES_BYTES["MB"]) for v in variants if "max_wal_size" in v.settings
    ]
    limit = max([size for size in limits if size is not None], default=_DEFAULT_MAX_WAL_BYTES)
    writes_s = 0.0 if all(v.workload.is_read_only for v in variants) else trial_s
    return min(limit, dataset_bytes * _WAL_LOAD_FACTOR + writes_s * _WAL_BYTES_PER_S)


def estimated_written_bytes(
    experiment: Experiment, clusters: Sequence[PlannedCluster], loads: Sequence[WorkloadSpec], ballast_bytes: int
) -> int:
    """Return the bytes that the run writes to storages: `ballast_bytes`, each cluster's data, once more as WAL if loaded by
    SQL, then WAL and pages of each trial, by its load, unless that only reads."""
    writes_s = experiment.measure.longest_trial_s * sum(not load.is_read_only for load in loads)
    loaded = sum(
        (1 if isinstance(cluster.dataset, LoadedTables) and cluster.dataset.writes_pages else 2)
        * len(cluster.nodes)
        * cluster.data_bytes
        for cluster in clusters
        if not cluster.is_external
    )
    return round(ballast_bytes + loaded + 2 * writes_s * _WAL_BYTES_PER_S)
