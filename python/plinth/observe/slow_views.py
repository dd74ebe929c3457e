"""Samples sizes, tables and statements every ten seconds, in the load's own database."""

from plinth.observe.view import Column, View, same, seconds

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
