"""The views' queries for each version, against the columns that the documentation of that version lists."""

import re

import pytest

from plinth.observe.views import VIEWS, View, build_query

ALL_ON = {"track_counts": "on", "track_activities": "on", "track_io_timing": "on", "track_wal_io_timing": "on"}
_DATABASE_13 = """
    datid datname numbackends xact_commit xact_rollback blks_read blks_hit tup_returned tup_fetched tup_inserted
    tup_updated tup_deleted conflicts temp_files temp_bytes deadlocks checksum_failures checksum_last_failure
    blk_read_time blk_write_time stats_reset"""
_DATABASE_14 = f"""{_DATABASE_13} session_time active_time idle_in_transaction_time sessions sessions_abandoned
    sessions_fatal sessions_killed"""
_BGWRITER_13 = """
    checkpoints_timed checkpoints_req checkpoint_write_time checkpoint_sync_time buffers_checkpoint buffers_clean
    maxwritten_clean buffers_backend buffers_backend_fsync buffers_alloc stats_reset"""
_CHECKPOINTER_17 = """
    num_timed num_requested restartpoints_timed restartpoints_req restartpoints_done write_time sync_time
    buffers_written stats_reset"""
_WAL_14 = """
    wal_records wal_fpi wal_bytes wal_buffers_full wal_write wal_sync wal_write_time wal_sync_time stats_reset"""
_IO_16 = """
    backend_type object context reads read_time writes write_time writebacks writeback_time extends extend_time
    op_bytes hits evictions reuses fsyncs fsync_time stats_reset"""
_SLRU = "name blks_zeroed blks_hit blks_read blks_written blks_exists flushes truncates stats_reset"
_ACTIVITY = "pid backend_type state wait_event_type wait_event"
_13 = {
    "pg_stat_database": _DATABASE_13,
    "pg_stat_bgwriter": _BGWRITER_13,
    "pg_stat_slru": _SLRU,
    "pg_stat_activity": _ACTIVITY,
}
_14 = _13 | {"pg_stat_database": _DATABASE_14, "pg_stat_wal": _WAL_14}
_16 = _14 | {"pg_stat_io": _IO_16}
_17 = _16 | {
    "pg_stat_bgwriter": "buffers_clean maxwritten_clean buffers_alloc stats_reset",
    "pg_stat_checkpointer": _CHECKPOINTER_17,
}
DOCUMENTED = {
    13: _13,
    14: _14,
    15: _14,
    16: _16,
    17: _17,
    18: _17
    | {
        "pg_stat_database": f"{_DATABASE_14} parallel_workers_to_launch parallel_workers_launched",
        "pg_stat_checkpointer": f"{_CHECKPOINTER_17} num_done slru_written",
        "pg_stat_wal": "wal_records wal_fpi wal_bytes wal_buffers_full stats_reset",
        "pg_stat_io": f"{_IO_16.replace('op_bytes', '')} read_bytes write_bytes extend_bytes",
    },
}
"""Chapter "The Cumulative Statistics System" (13, 14: "The Statistics Collector") of each version's documentation."""
_SQL_WORDS = set(
    re.findall(
        r"\w+",
        "SELECT AS FROM WHERE AND OR NOT IN IS NULL CASE WHEN THEN END FILTER GROUP BY CROSS JOIN VALUES count sum coalesce"
        " concat_ws pg_backend_pid pg_is_in_recovery pg_current_wal_insert_lsn pg_lsn",
    )
)
VERSIONS = sorted(DOCUMENTED)


@pytest.mark.parametrize("major", VERSIONS)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.source)
def test_a_query_names_only_columns_of_its_version(view: View, major: int) -> None:
    query = build_query(view, major, ALL_ON)
    if query.sql is None:
        assert min(view.relations) > major
        return
    bare = re.sub(r"'[^']*'|%\(database\)s|\d+", " ", query.sql)
    words = {word for word in re.findall(r"\w+", bare) if word not in _SQL_WORDS}
    relations = {word for word in words if word.startswith("pg_stat_")}
    assert relations <= set(DOCUMENTED[major]), f"PostgreSQL {major} has no {relations - set(DOCUMENTED[major])}"
    columns = {column for relation in relations for column in DOCUMENTED[major][relation].split()}
    own_names = set(re.findall(r"\bAS (\w+)", query.sql))
    assert words - relations - columns - own_names == set()


@pytest.mark.parametrize("major", VERSIONS)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.source)
def test_every_metric_is_given_or_missing_with_its_reason_or_moved(view: View, major: int) -> None:
    query = build_query(view, major, {})
    missing = {name for names in query.missing for name in names.split(", ")}
    moved_away = {column.metric for column in view.columns if column.until < major} - {
        column.metric for column in view.columns if column.until >= major
    }
    if view.source in missing:
        assert query.sql is None
    else:
        assert set(query.metrics) | missing | moved_away == {column.metric for column in view.columns}
        assert not set(query.metrics) & missing
    assert all(query.missing.values())


def test_reasons_name_the_version_or_the_setting() -> None:
    views = {view.source: view for view in VIEWS}
    assert build_query(views["pg_io"], 15, ALL_ON).missing == {
        "pg_io": "PostgreSQL 15 does not have it; 16 and later do"
    }
    assert build_query(views["pg_wait"], 18, ALL_ON | {"track_activities": "off"}).missing == {
        "pg_wait": "track_activities is off"
    }
    wal_13 = build_query(views["pg_wal"], 13, ALL_ON)
    assert wal_13.metrics == ("insert_lsn_bytes",)
    assert set(wal_13.missing.values()) == {"PostgreSQL 13 does not have it; 14 and later do"}
    assert "read_time_s" not in build_query(views["pg_io"], 18, ALL_ON | {"track_io_timing": "off"}).metrics


def test_figures_that_moved_keep_one_name() -> None:
    for source in ("pg_checkpointer", "pg_wal", "pg_bgwriter"):
        view = next(view for view in VIEWS if view.source == source)
        newest = set(build_query(view, 18, ALL_ON).metrics)
        for major in VERSIONS[1:]:
            given = set(build_query(view, major, ALL_ON).metrics)
            assert given - newest <= {"buffers_backend", "buffers_backend_fsync"}
