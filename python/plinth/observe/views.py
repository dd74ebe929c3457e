"""PostgreSQL's statistics views, versions 13 to 18, that are read at every tick, with columns by their newest names."""

from plinth.observe.view import Column, View, same, seconds

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
VIEWS = (DATABASE, BGWRITER, CHECKPOINTER, WAL, IO, SLRU, ARCHIVER, REPLICATION, SLOTS, WAL_RECEIVER, PROGRESS, AIOS)
