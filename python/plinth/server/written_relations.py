"""Which tables took writes, by the server's statistics, and where they and their indexes are stored."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.write_facts import DURABILITY_SETTINGS, Persistence
from plinth.system import cancel

if TYPE_CHECKING:
    import psycopg

_COUNTERS = """
    SELECT relid::bigint, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables
"""
_STORED = """
    WITH written AS (
        SELECT oid AS table_oid, oid FROM pg_class WHERE oid = ANY(%(tables)s::oid[])
        UNION ALL
        SELECT indrelid, indexrelid FROM pg_index WHERE indrelid = ANY(%(tables)s::oid[])
    ), own AS (SELECT dattablespace FROM pg_database WHERE datname = current_database())
    SELECT n.nspname || '.' || c.relname, c.relkind IN ('i', 'I'), c.relpersistence::text, s.spcname,
           nullif(pg_tablespace_location(s.oid), '')
    FROM written w
    JOIN pg_class c ON c.oid = w.oid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN own
    JOIN pg_tablespace s ON s.oid = CASE c.reltablespace WHEN 0 THEN own.dattablespace ELSE c.reltablespace END
    WHERE c.relpersistence <> 't'
    ORDER BY 2, 1
"""
_SETTINGS = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
_LATE_STATISTICS_BEFORE = 150000
_LATEST_S = 0.6
"""Before version 15 a collector writes statistics at most every 500 ms (PGSTAT_STAT_INTERVAL in pgstat.c)."""

Counters = Mapping[int, int]
"""By OID of a table: the rows inserted, updated and deleted, of transactions that failed too."""


class StoredRelation(NamedTuple):
    """A table that took writes, or an index of one; of the data directory it has no `directory`."""

    name: str
    is_index: bool
    persistence: Persistence
    tablespace: str
    directory: str | None


def read_counters(control: "psycopg.Connection[Any]") -> Counters:
    """Read the counters of all tables of the database, once those of sessions that have ended are there. Raises psycopg.Error."""
    if control.info.server_version < _LATE_STATISTICS_BEFORE:
        cancel.sleep(_LATEST_S)
    return {int(oid): int(count or 0) for oid, count in control.execute(_COUNTERS).fetchall()}


def written_since(before: Counters, now: Counters) -> list[int]:
    """Return the tables whose counters have changed; a crash of the server resets counters to zero."""
    return [oid for oid, count in now.items() if count != before.get(oid, 0) and count > 0]


def stored_relations(control: "psycopg.Connection[Any]", tables: list[int]) -> list[StoredRelation]:
    """Read where these tables and their indexes are stored; temporary ones are left out. Raises psycopg.Error."""
    kinds: dict[str, Persistence] = {"p": "permanent", "u": "unlogged"}
    rows = control.execute(_STORED.encode(), {"tables": tables}).fetchall()
    return [
        StoredRelation(name, is_index, kinds[persistence], space, location)
        for name, is_index, persistence, space, location in rows
    ]


def counts_writes(control: "psycopg.Connection[Any]") -> bool:
    """Return whether the server counts writes to tables at all (track_counts). Raises psycopg.Error."""
    return control.execute("SHOW track_counts").fetchone() == ("on",)


def session_settings(control: "psycopg.Connection[Any]") -> dict[str, str]:
    """Read the durability settings of this session, which roles, databases and connection options may set. Raises psycopg.Error."""
    rows = control.execute(_SETTINGS, (list(DURABILITY_SETTINGS),)).fetchall()
    return {str(name): str(value) for name, value in rows}
