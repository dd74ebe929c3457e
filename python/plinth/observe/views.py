"""PostgreSQL's statistics views by version, and the query of each for one server. Pure functions.

Most are read once a second. Sizes, tables and statements are read every ten seconds, in the load's own database.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class Column(NamedTuple):
    """A metric and its SQL expression in versions `since` to `until`; a metric may have several such columns.

    `needs` is the setting without which the column counts nothing.
    """

    metric: str
    sql: str
    since: int = 13
    until: int = 99
    needs: str | None = None


class View(NamedTuple):
    """One view as a source. `relations` is what goes after FROM, by the version that it came with.

    `object` is the SQL of what a row is of. `absent` is what a row says that is not there: nothing is known about it
    (gap), it counts nothing (zero), or there is no such thing (nothing). `extension`: the view is that extension's, and
    `{schema}` in a relation the schema where it is. $1 is the load's database. `seldom`: mostly there is no row of it, so
    that after a look that found none it is looked for less often.
    """

    source: str
    relations: Mapping[int, str]
    columns: tuple[Column, ...]
    object: str = "'all'"
    needs: str | None = None
    absent: Literal["gap", "zero", "nothing"] = "gap"
    extension: str | None = None
    seldom: bool = False


class Traits(NamedTuple):
    """Features of a server: major version, settings, and extensions, each with its schema or the reason for its absence."""

    major: int
    settings: Mapping[str, str]
    extensions: Mapping[str, "Extension"]


class Extension(NamedTuple):
    """An extension in the observer's database: its schema, quoted, or why it cannot be used."""

    schema: str | None
    reason: str = ""


class Query(NamedTuple):
    """A view's query for one server, which returns the object and the metrics. `missing`: part -> reason.

    `sql` is None when the server has nothing of the view.
    """

    sql: str | None
    metrics: tuple[str, ...]
    missing: dict[str, str]


def same(names: str, since: int = 13, until: int = 99) -> tuple[Column, ...]:
    """Return metrics with the names of their columns."""
    return tuple(Column(name, name, since, until) for name in names.split())


def seconds(names: str, since: int = 13, until: int = 99, needs: str | None = None) -> tuple[Column, ...]:
    """Return metrics in seconds for columns in milliseconds."""
    return tuple(Column(f"{name}_s", f"{name} / 1000", since, until, needs) for name in names.split())


def needed_settings(views: Sequence[View]) -> tuple[str, ...]:
    """Return settings that determine what the views count."""
    needs = {need for view in views for need in (view.needs, *(column.needs for column in view.columns)) if need}
    return tuple(sorted(needs))


def build_query(view: View, server: Traits) -> Query:
    """Return the query of `view` for a server."""
    major, settings = server.major, server.settings
    came = [since for since in view.relations if since <= major]
    if not came:
        return Query(None, (), {view.source: _too_old(major, min(view.relations))})
    if view.needs is not None and settings.get(view.needs) != "on":
        return Query(None, (), {view.source: _is_off(view.needs)})
    relation = view.relations[max(came)]
    if view.extension is not None:
        extension = server.extensions[view.extension]
        if extension.schema is None:
            return Query(None, (), {view.source: extension.reason})
        relation = relation.format(schema=extension.schema)
    present = [column for column in view.columns if column.since <= major <= column.until]
    counted = [column for column in present if column.needs is None or settings.get(column.needs) == "on"]
    reasons = {column.metric: _is_off(column.needs) for column in present if column.needs and column not in counted}
    had = {column.metric for column in present}
    for column in view.columns:
        if column.since > major and column.metric not in had:
            reasons[column.metric] = _too_old(major, column.since)
    selected = ", ".join([f"{view.object} AS object", *(f"{column.sql} AS {column.metric}" for column in counted)])
    return Query(f"SELECT {selected} FROM {relation}", tuple(column.metric for column in counted), _by_reason(reasons))


def _too_old(major: int, since: int) -> str:
    return f"PostgreSQL {major} does not have it; {since} and later do"


def _is_off(setting: str) -> str:
    return f"{setting} is off"


def _by_reason(reasons: Mapping[str, str]) -> dict[str, str]:
    metrics: dict[str, list[str]] = {}
    for metric, reason in reasons.items():
        metrics.setdefault(reason, []).append(metric)
    return {", ".join(names): reason for reason, names in metrics.items()}


DATABASE = View(
    "pg_database",
    {13: "pg_stat_database WHERE datname = $1"},
    object="datname",
    needs="track_counts",
    columns=(
        *same("numbackends xact_commit xact_rollback blks_read blks_hit tup_returned tup_fetched tup_inserted"),
        *same("tup_updated tup_deleted conflicts temp_files temp_bytes deadlocks"),
        Column("checksum_failures", "checksum_failures", needs="data_checksums"),
        *seconds("blk_read_time blk_write_time", needs="track_io_timing"),
        *seconds("session_time active_time idle_in_transaction_time", since=14),
        *same("sessions sessions_abandoned sessions_fatal sessions_killed", since=14),
        *same("parallel_workers_to_launch parallel_workers_launched", since=18),
    ),
)
BGWRITER = View(
    "pg_bgwriter",
    {13: "pg_stat_bgwriter"},
    columns=(
        *same("buffers_clean maxwritten_clean buffers_alloc"),
        *same("buffers_backend buffers_backend_fsync", until=16),
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
        *same("num_timed num_requested", since=17),
        *seconds("write_time sync_time", since=17),
        *same("buffers_written restartpoints_timed restartpoints_req restartpoints_done", since=17),
        *same("num_done slru_written", since=18),
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
        *same("wal_records wal_fpi wal_bytes wal_buffers_full wal_write wal_sync", since=14),
        *same("wal_fpi_bytes", since=19),
        *seconds("wal_write_time wal_sync_time", since=14, needs="track_wal_io_timing"),
    ),
)
_IO_COUNTS = "reads writes writebacks extends hits evictions reuses fsyncs"
IO = View(
    "pg_io",
    {16: f"pg_stat_io WHERE {' + '.join(f'coalesce({name}, 0)' for name in _IO_COUNTS.split())} > 0"},
    object="concat_ws('/', backend_type, object, context)",
    needs="track_counts",
    absent="zero",
    columns=(
        *same(_IO_COUNTS, since=16),
        *(Column(f"{verb}_bytes", f"{verb}s * op_bytes", 16, 17) for verb in ("read", "write", "extend")),
        *same("read_bytes write_bytes extend_bytes", since=18),
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
    absent="zero",
    columns=same(_SLRU_COUNTS),
)
ARCHIVER = View("pg_archiver", {13: "pg_stat_archiver"}, columns=same("archived_count failed_count"))
# On a standby that others stream from, what was received is what can be sent.
_POSITION = (
    "(SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END AS lsn) AS here"
)
REPLICATION = View(
    "pg_replication",
    {13: f"pg_stat_replication CROSS JOIN {_POSITION}"},
    object="concat_ws('/', application_name, pid)",
    absent="nothing",
    seldom=True,
    columns=(
        *(Column(f"{step}_behind_bytes", f"lsn - {step}_lsn") for step in ("sent", "write", "flush", "replay")),
        # Null while nothing is behind.
        *(Column(f"{step}_lag_s", f"extract(epoch FROM {step}_lag)") for step in ("write", "flush", "replay")),
    ),
)
_SLOTS = f"pg_replication_slots CROSS JOIN {_POSITION}"
SLOTS = View(
    "pg_slots",
    {13: _SLOTS, 14: f"{_SLOTS} LEFT JOIN pg_stat_replication_slots USING (slot_name)"},
    object="slot_name",
    absent="nothing",
    seldom=True,
    columns=(
        Column("active", "active::int"),
        Column("retained_bytes", "lsn - restart_lsn"),
        Column("safe_wal_bytes", "safe_wal_size"),
        *same(
            "spill_txns spill_count spill_bytes stream_txns stream_count stream_bytes total_txns total_bytes", since=14
        ),
    ),
)
WAL_RECEIVER = View(
    "pg_wal_receiver",
    {13: "pg_stat_wal_receiver"},
    absent="nothing",
    seldom=True,
    columns=tuple(
        Column(f"{name}_lsn_bytes", f"{name}_lsn - '0/0'::pg_lsn") for name in ("written", "flushed", "latest_end")
    ),
)


def _progress(command: str, view: str, done: str, total: str, unit: str, of_relation: bool = True) -> str:
    what = (
        f"concat_ws(' ', '{command}', datname, relid, phase)" if of_relation else f"concat_ws(' ', '{command}', phase)"
    )
    return f"SELECT {what} AS work, '{unit}' AS unit, {done} AS done, {total} AS total FROM {view}"


_PROGRESS_13 = (
    _progress("vacuum", "pg_stat_progress_vacuum", "heap_blks_scanned", "heap_blks_total", "blocks"),
    _progress("analyze", "pg_stat_progress_analyze", "sample_blks_scanned", "sample_blks_total", "blocks"),
    _progress("create index", "pg_stat_progress_create_index", "blocks_done", "blocks_total", "blocks"),
    _progress("cluster", "pg_stat_progress_cluster", "heap_blks_scanned", "heap_blks_total", "blocks"),
    _progress("base backup", "pg_stat_progress_basebackup", "backup_streamed", "backup_total", "bytes", False),
)
_COPY = _progress("copy", "pg_stat_progress_copy", "bytes_processed", "bytes_total", "bytes").replace(
    "phase", "command"
)
PROGRESS = View(
    "pg_progress",
    {
        13: f"({' UNION ALL '.join(_PROGRESS_13)}) AS progress",
        14: f"({' UNION ALL '.join((*_PROGRESS_13, _COPY))}) AS progress",
    },
    object="work",
    absent="nothing",
    seldom=True,
    columns=tuple(
        Column(f"{unit}_{how_much}", f"CASE unit WHEN '{unit}' THEN {how_much} END")
        for unit in ("blocks", "bytes")
        for how_much in ("done", "total")
    ),
)
AIOS = View(
    "pg_aios",
    {18: "pg_aios GROUP BY 1"},
    object="concat_ws('/', operation, target, state)",
    absent="zero",
    columns=(Column("handles", "count(*)"), Column("length_bytes", "sum(length)")),
)
LOCKS = View(
    "pg_lock",
    {19: "pg_stat_lock WHERE waits + fastpath_exceeded > 0"},
    object="locktype",
    absent="zero",
    columns=(*same("waits fastpath_exceeded"), *seconds("wait_time")),
)
VIEWS = (
    *(DATABASE, BGWRITER, CHECKPOINTER, WAL, IO, SLRU, ARCHIVER, REPLICATION, SLOTS, WAL_RECEIVER, PROGRESS, AIOS),
    LOCKS,
)


_MOST_TABLES = 50
_MOST_STATEMENTS = 100
_STATEMENT_LENGTH = 200

SIZE = View(
    "pg_size",
    {13: "(SELECT pg_database_size($1::name) AS bytes) AS size"},
    object="$1::name",
    columns=(Column("size_bytes", "bytes"),),
)
WAL_FILES = View(
    "pg_wal_files",
    {13: "pg_ls_waldir()"},
    columns=(Column("files", "count(*)"), Column("size_bytes", "coalesce(sum(size), 0)")),
)
TABLE = View(
    "pg_table",
    {
        13: "pg_stat_user_tables JOIN (SELECT oid, relpages FROM pg_class) AS class ON oid = relid"
        f" ORDER BY relpages DESC, relid LIMIT {_MOST_TABLES}"
    },
    object="concat_ws('.', schemaname, relname)",
    needs="track_counts",
    absent="nothing",
    columns=(
        Column("heap_bytes", "pg_relation_size(relid)"),
        Column("index_bytes", "pg_indexes_size(relid)"),
        Column("total_bytes", "pg_total_relation_size(relid)"),
        *same("n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum"),
        *same("n_tup_ins n_tup_upd n_tup_del n_tup_hot_upd seq_scan idx_scan"),
        *same("vacuum_count autovacuum_count analyze_count autoanalyze_count"),
        *same("n_tup_newpage_upd", since=16),
        *seconds("total_vacuum_time total_autovacuum_time total_analyze_time total_autoanalyze_time", since=18),
    ),
)
STATEMENTS_EXTENSION = "pg_stat_statements"
STATEMENTS = View(
    "pg_statements",
    {
        13: "{schema}.pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = $1)"
        f" ORDER BY total_exec_time DESC, queryid LIMIT {_MOST_STATEMENTS}"
    },
    # The same statement is there once for each user, and from 14 on once more when it is run from a function.
    object=f"concat_ws(' ', queryid, userid, left(regexp_replace(query, '\\s+', ' ', 'g'), {_STATEMENT_LENGTH}))",
    extension=STATEMENTS_EXTENSION,
    absent="nothing",
    columns=(
        *same("calls rows shared_blks_hit shared_blks_read shared_blks_dirtied shared_blks_written"),
        *same("local_blks_read local_blks_written temp_blks_read temp_blks_written"),
        *same("wal_records wal_fpi wal_bytes"),
        *same("wal_buffers_full", since=18),
        *seconds("total_exec_time"),
        *seconds("total_plan_time", needs="pg_stat_statements.track_planning"),
        *(
            Column(f"shared_blk_{verb}_time_s", f"{column} / 1000", since, until, "track_io_timing")
            for verb in ("read", "write")
            for column, since, until in ((f"blk_{verb}_time", 13, 16), (f"shared_blk_{verb}_time", 17, 99))
        ),
    ),
)
SLOW_VIEWS = (SIZE, WAL_FILES, TABLE, STATEMENTS)
