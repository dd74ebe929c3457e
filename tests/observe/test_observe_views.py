"""The views' queries for each version, against the columns that the documentation of that version lists."""

import re

import pytest

from plinth.observe.views import SLOW_VIEWS, VIEWS, Extension, Query, Traits, View, build_query, needed_settings

ALL_VIEWS = (*VIEWS, *SLOW_VIEWS)
ALL_ON = dict.fromkeys(needed_settings(ALL_VIEWS), "on")
CREATED = {"pg_stat_statements": Extension("public")}


def query_of(view: View, major: int, settings: dict[str, str], extensions: dict[str, Extension] = CREATED) -> Query:
    return build_query(view, Traits(major, settings, extensions))


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
_TABLES_13 = """
    relid schemaname relname seq_scan seq_tup_read idx_scan idx_tup_fetch n_tup_ins n_tup_upd n_tup_del n_tup_hot_upd
    n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum last_vacuum last_autovacuum last_analyze
    last_autoanalyze vacuum_count autovacuum_count analyze_count autoanalyze_count"""
_STATEMENTS_13 = """
    userid dbid queryid query plans total_plan_time calls total_exec_time rows shared_blks_hit shared_blks_read
    shared_blks_dirtied shared_blks_written local_blks_hit local_blks_read local_blks_dirtied local_blks_written
    temp_blks_read temp_blks_written blk_read_time blk_write_time wal_records wal_fpi wal_bytes"""
_PROGRESS_VACUUM_13 = """
    pid datid datname relid phase heap_blks_total heap_blks_scanned heap_blks_vacuumed index_vacuum_count
    max_dead_tuples num_dead_tuples"""
_13 = {
    "pg_stat_database": _DATABASE_13,
    "pg_stat_bgwriter": _BGWRITER_13,
    "pg_stat_slru": _SLRU,
    "pg_stat_archiver": """archived_count last_archived_wal last_archived_time failed_count last_failed_wal
        last_failed_time stats_reset""",
    "pg_stat_replication": """pid usesysid usename application_name client_addr client_hostname client_port
        backend_start backend_xmin state sent_lsn write_lsn flush_lsn replay_lsn write_lag flush_lag replay_lag
        sync_priority sync_state reply_time""",
    "pg_replication_slots": """slot_name plugin slot_type datoid database temporary active active_pid xmin catalog_xmin
        restart_lsn confirmed_flush_lsn wal_status safe_wal_size""",
    "pg_stat_wal_receiver": """pid status receive_start_lsn receive_start_tli written_lsn flushed_lsn received_tli
        last_msg_send_time last_msg_receipt_time latest_end_lsn latest_end_time slot_name sender_host sender_port
        conninfo""",
    "pg_stat_progress_vacuum": _PROGRESS_VACUUM_13,
    "pg_stat_progress_analyze": """pid datid datname relid phase sample_blks_total sample_blks_scanned ext_stats_total
        ext_stats_computed child_tables_total child_tables_done current_child_table_relid""",
    "pg_stat_progress_create_index": """pid datid datname relid index_relid command phase lockers_total lockers_done
        current_locker_pid blocks_total blocks_done tuples_total tuples_done partitions_total partitions_done""",
    "pg_stat_progress_cluster": """pid datid datname relid command phase cluster_index_relid heap_tuples_scanned
        heap_tuples_written heap_blks_total heap_blks_scanned index_rebuild_count""",
    "pg_stat_progress_basebackup": "pid phase backup_total backup_streamed tablespaces_total tablespaces_streamed",
    "pg_stat_user_tables": _TABLES_13,
    "pg_class": "oid relpages",
    "pg_database": "oid datname",
    "pg_ls_waldir": "name size modification",
    "pg_stat_statements": _STATEMENTS_13,
}
_14 = _13 | {
    "pg_stat_database": _DATABASE_14,
    "pg_stat_wal": _WAL_14,
    "pg_stat_replication_slots": """slot_name spill_txns spill_count spill_bytes stream_txns stream_count stream_bytes
        total_txns total_bytes stats_reset""",
    "pg_stat_progress_copy": """pid datid datname relid command type bytes_processed bytes_total tuples_processed
        tuples_excluded""",
}
_16 = _14 | {
    "pg_stat_io": _IO_16,
    "pg_stat_user_tables": f"{_TABLES_13} last_seq_scan last_idx_scan n_tup_newpage_upd",
}
_17 = _16 | {
    "pg_stat_bgwriter": "buffers_clean maxwritten_clean buffers_alloc stats_reset",
    "pg_stat_checkpointer": _CHECKPOINTER_17,
    "pg_stat_progress_vacuum": """pid datid datname relid phase heap_blks_total heap_blks_scanned heap_blks_vacuumed
        index_vacuum_count max_dead_tuple_bytes dead_tuple_bytes num_dead_item_ids indexes_total indexes_processed""",
    "pg_stat_statements": _STATEMENTS_13.replace(
        "blk_read_time blk_write_time",
        "shared_blk_read_time shared_blk_write_time local_blk_read_time local_blk_write_time",
    ),
}
_18 = _17 | {
    "pg_stat_database": f"{_DATABASE_14} parallel_workers_to_launch parallel_workers_launched",
    "pg_stat_checkpointer": f"{_CHECKPOINTER_17} num_done slru_written",
    "pg_stat_wal": "wal_records wal_fpi wal_bytes wal_buffers_full stats_reset",
    "pg_stat_io": f"{_IO_16.replace('op_bytes', '')} read_bytes write_bytes extend_bytes",
    "pg_stat_user_tables": f"""{_17["pg_stat_user_tables"]} total_vacuum_time total_autovacuum_time
        total_analyze_time total_autoanalyze_time""",
    "pg_stat_statements": f"{_17['pg_stat_statements']} wal_buffers_full",
    "pg_aios": """pid io_id io_generation state operation off length target handle_data_len raw_result result
        target_desc f_sync f_localmem f_buffered""",
}
DOCUMENTED = {
    13: _13,
    14: _14,
    15: _14,
    16: _16,
    17: _17,
    18: _18,
    19: _18
    | {
        "pg_stat_wal": "wal_records wal_fpi wal_bytes wal_fpi_bytes wal_buffers_full stats_reset",
        "pg_stat_lock": "locktype waits wait_time fastpath_exceeded stats_reset",
    },
}
"""Chapters "Monitoring Database Activity", "System Views" and "pg_stat_statements" of each version's documentation."""
_SQL_WORDS = set(
    re.findall(
        r"\w+",
        "SELECT AS FROM WHERE AND OR NOT IN IS NULL CASE WHEN THEN ELSE END FILTER GROUP ORDER BY DESC LIMIT CROSS LEFT JOIN ON"
        " USING UNION ALL VALUES EPOCH extract count sum coalesce concat_ws left regexp_replace int name"
        " pg_is_in_recovery pg_current_wal_insert_lsn pg_current_wal_lsn pg_last_wal_receive_lsn pg_lsn"
        " pg_database_size pg_relation_size pg_indexes_size pg_total_relation_size public",
    )
) | {"epoch"}
VERSIONS = sorted(DOCUMENTED)


@pytest.mark.parametrize("major", VERSIONS)
@pytest.mark.parametrize("view", ALL_VIEWS, ids=lambda view: view.source)
def test_a_query_names_only_columns_of_its_version(view: View, major: int) -> None:
    query = query_of(view, major, ALL_ON)
    if query.sql is None:
        assert min(view.relations) > major
        return
    bare = re.sub(r"'[^']*'|\$1|\b\d+", " ", query.sql)
    words = {word for word in re.findall(r"\w+", bare) if word not in _SQL_WORDS}
    own_names = set(re.findall(r"\bAS (\w+)", query.sql))
    relations = {word for word in words - own_names if word.startswith("pg_")}
    assert relations <= set(DOCUMENTED[major]), f"PostgreSQL {major} has no {relations - set(DOCUMENTED[major])}"
    columns = {column for relation in relations for column in DOCUMENTED[major][relation].split()}
    assert words - relations - columns - own_names == set()


@pytest.mark.parametrize("major", VERSIONS)
@pytest.mark.parametrize("view", ALL_VIEWS, ids=lambda view: view.source)
def test_every_metric_is_given_or_missing_with_its_reason_or_moved(view: View, major: int) -> None:
    query = query_of(view, major, {})
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


def test_reasons_name_the_version_the_setting_or_the_extension() -> None:
    views = {view.source: view for view in ALL_VIEWS}
    assert query_of(views["pg_io"], 15, ALL_ON).missing == {"pg_io": "PostgreSQL 15 does not have it; 16 and later do"}
    assert query_of(views["pg_table"], 18, ALL_ON | {"track_counts": "off"}).missing == {
        "pg_table": "track_counts is off"
    }
    wal_13 = query_of(views["pg_wal"], 13, ALL_ON)
    assert wal_13.metrics == ("insert_lsn_bytes",)
    since = {f"PostgreSQL 13 does not have it; {version} and later do" for version in (14, 19)}
    assert set(wal_13.missing.values()) == since
    assert "read_time_s" not in query_of(views["pg_io"], 18, ALL_ON | {"track_io_timing": "off"}).metrics
    absent = {"pg_stat_statements": Extension(None, "not there")}
    assert query_of(views["pg_statements"], 18, ALL_ON, absent).missing == {"pg_statements": "not there"}


def test_figures_that_moved_keep_one_name() -> None:
    for source in ("pg_checkpointer", "pg_wal", "pg_bgwriter"):
        view = next(view for view in VIEWS if view.source == source)
        newest = set(query_of(view, VERSIONS[-1], ALL_ON).metrics)
        for major in VERSIONS[1:]:
            given = set(query_of(view, major, ALL_ON).metrics)
            assert given - newest <= {"buffers_backend", "buffers_backend_fsync"}
