"""PostgreSQL's statistics views, 13 to 18: which columns each version has, by their newest names. Pure."""

from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """A metric and the SQL that gives it in versions `since` to `until`; one metric may have a column for each time.

    `needs` is the setting without which the column counts nothing.
    """

    metric: str
    sql: str
    since: int = 13
    until: int = 99
    needs: str | None = None


class View(NamedTuple):
    """One view as a source. `relations` is what goes after FROM, by the version that it came with.

    `object` is the SQL of what a row is of. `sparse`: rows that count nothing are left out.
    """

    source: str
    relations: Mapping[int, str]
    columns: tuple[Column, ...]
    object: str = "'all'"
    needs: str | None = None
    sparse: bool = False


class Query(NamedTuple):
    """A view's query for one server, giving the object and then the metrics. `missing`: part -> reason.

    `sql` is None when the server has nothing of the view.
    """

    sql: str | None
    metrics: tuple[str, ...]
    missing: dict[str, str]


def _same(names: str, since: int = 13, until: int = 99) -> tuple[Column, ...]:
    return tuple(Column(name, name, since, until) for name in names.split())


def _seconds(names: str, since: int = 13, until: int = 99, needs: str | None = None) -> tuple[Column, ...]:
    return tuple(Column(f"{name}_s", f"{name} / 1000", since, until, needs) for name in names.split())


DATABASE = View(
    "pg_database",
    {13: "pg_stat_database WHERE datname = %(database)s"},
    object="datname",
    needs="track_counts",
    columns=(
        *_same("numbackends xact_commit xact_rollback blks_read blks_hit tup_returned tup_fetched tup_inserted"),
        *_same("tup_updated tup_deleted conflicts temp_files temp_bytes deadlocks"),
        Column("checksum_failures", "checksum_failures", needs="data_checksums"),
        *_seconds("blk_read_time blk_write_time", needs="track_io_timing"),
        *_seconds("session_time active_time idle_in_transaction_time", since=14),
        *_same("sessions sessions_abandoned sessions_fatal sessions_killed", since=14),
        *_same("parallel_workers_to_launch parallel_workers_launched", since=18),
    ),
)
BGWRITER = View(
    "pg_bgwriter",
    {13: "pg_stat_bgwriter"},
    columns=(
        *_same("buffers_clean maxwritten_clean buffers_alloc"),
        *_same("buffers_backend buffers_backend_fsync", until=16),
    ),
)
CHECKPOINTER = View(
    "pg_checkpointer",
    {13: "pg_stat_bgwriter", 17: "pg_stat_checkpointer"},
    columns=(
        Column("num_timed", "checkpoints_timed", until=16),
        Column("num_requested", "checkpoints_req", until=16),
        Column("write_time_s", "checkpoint_write_time / 1000", until=16),
        Column("sync_time_s", "checkpoint_sync_time / 1000", until=16),
        Column("buffers_written", "buffers_checkpoint", until=16),
        *_same("num_timed num_requested", since=17),
        *_seconds("write_time sync_time", since=17),
        *_same("buffers_written restartpoints_timed restartpoints_req restartpoints_done", since=17),
        *_same("num_done slru_written", since=18),
    ),
)
_WAL_IO = (
    "(SELECT sum(writes) AS wal_write, sum(fsyncs) AS wal_sync, sum(write_time) AS wal_write_time,"
    " sum(fsync_time) AS wal_sync_time FROM pg_stat_io WHERE object = 'wal' AND context = 'normal') AS wal_io"
)
WAL = View(
    "pg_wal",
    {13: "(VALUES (1)) AS no_view", 14: "pg_stat_wal", 18: f"pg_stat_wal CROSS JOIN {_WAL_IO}"},
    columns=(
        Column(
            "insert_lsn_bytes",
            "CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() - '0/0'::pg_lsn END",
        ),
        *_same("wal_records wal_fpi wal_bytes wal_buffers_full wal_write wal_sync", since=14),
        *_seconds("wal_write_time wal_sync_time", since=14, needs="track_wal_io_timing"),
    ),
)
_IO_COUNTS = "reads writes writebacks extends hits evictions reuses fsyncs"
IO = View(
    "pg_io",
    {16: f"pg_stat_io WHERE {' + '.join(f'coalesce({name}, 0)' for name in _IO_COUNTS.split())} > 0"},
    object="concat_ws('/', backend_type, object, context)",
    needs="track_counts",
    sparse=True,
    columns=(
        *_same(_IO_COUNTS, since=16),
        *(Column(f"{verb}_bytes", f"{verb}s * op_bytes", 16, 17) for verb in ("read", "write", "extend")),
        *_same("read_bytes write_bytes extend_bytes", since=18),
        # Times of WAL depend on another setting, and are in pg_wal.
        *(
            Column(
                f"{verb}_time_s", f"CASE WHEN object <> 'wal' THEN {verb}_time / 1000 END", 16, 99, "track_io_timing"
            )
            for verb in ("read", "write", "writeback", "extend", "fsync")
        ),
    ),
)
_SLRU_COUNTS = "blks_zeroed blks_hit blks_read blks_written blks_exists flushes truncates"
SLRU = View(
    "pg_slru",
    {13: f"pg_stat_slru WHERE {' + '.join(_SLRU_COUNTS.split())} > 0"},
    object="name",
    sparse=True,
    columns=_same(_SLRU_COUNTS),
)
_CLIENTS = "pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type IN ('client backend', 'parallel worker')"
WAIT = View(
    "pg_wait",
    {13: f"{_CLIENTS} AND state = 'active' GROUP BY 1"},
    object="coalesce(wait_event_type || ':' || wait_event, 'CPU')",
    needs="track_activities",
    sparse=True,
    columns=(Column("backends", "count(*)"),),
)
ACTIVITY = View(
    "pg_activity",
    {13: _CLIENTS},
    needs="track_activities",
    columns=(
        Column("active", "count(*) FILTER (WHERE state IN ('active', 'fastpath function call'))"),
        Column("idle", "count(*) FILTER (WHERE state = 'idle')"),
        Column(
            "idle_in_transaction",
            "count(*) FILTER (WHERE state IN ('idle in transaction', 'idle in transaction (aborted)'))",
        ),
    ),
)
VIEWS = (DATABASE, BGWRITER, CHECKPOINTER, WAL, IO, SLRU, WAIT, ACTIVITY)
NEEDED_SETTINGS = tuple(
    sorted({need for view in VIEWS for need in (view.needs, *(column.needs for column in view.columns)) if need})
)


def build_query(view: View, major: int, settings: Mapping[str, str]) -> Query:
    """The query of `view` for a server of this major version with these settings."""
    came = [since for since in view.relations if since <= major]
    if not came:
        return Query(None, (), {view.source: _too_old(major, min(view.relations))})
    if view.needs is not None and settings.get(view.needs) != "on":
        return Query(None, (), {view.source: _is_off(view.needs)})
    present = [column for column in view.columns if column.since <= major <= column.until]
    counted = [column for column in present if column.needs is None or settings.get(column.needs) == "on"]
    reasons = {column.metric: _is_off(column.needs) for column in present if column.needs and column not in counted}
    had = {column.metric for column in present}
    for column in view.columns:
        if column.since > major and column.metric not in had:
            reasons[column.metric] = _too_old(major, column.since)
    selected = ", ".join([f"{view.object} AS object", *(f"{column.sql} AS {column.metric}" for column in counted)])
    sql = f"SELECT {selected} FROM {view.relations[max(came)]}"
    return Query(sql, tuple(column.metric for column in counted), _by_reason(reasons))


def _too_old(major: int, since: int) -> str:
    return f"PostgreSQL {major} does not have it; {since} and later do"


def _is_off(setting: str) -> str:
    return f"{setting} is off"


def _by_reason(reasons: Mapping[str, str]) -> dict[str, str]:
    metrics: dict[str, list[str]] = {}
    for metric, reason in reasons.items():
        metrics.setdefault(reason, []).append(metric)
    return {", ".join(names): reason for reason, names in metrics.items()}
