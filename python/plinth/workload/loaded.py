"""Measures tables that have just been loaded: sizes, the depth of their B-trees, the pages that a lookup touches."""

import json
from typing import TYPE_CHECKING, Any

from plinth.model.base import Gap
from plinth.model.dataset import LOAD_PROGRESS_TABLE
from plinth.model.errors import RunError
from plinth.model.loaded import LoadedIndex, LoadedTable
from plinth.system.extension import function_of

if TYPE_CHECKING:
    import psycopg

_MOST_TABLES = 20
_TABLES = f"""\
SELECT oid::regclass::text, greatest(reltuples, 0)::bigint, pg_table_size(oid)
FROM pg_class WHERE relkind = 'r' AND relname <> '{LOAD_PROGRESS_TABLE}'
AND CASE WHEN %(all_schemas)s THEN oid >= 16384 AND relpersistence <> 't' AND relnamespace <> 'information_schema'::regnamespace
ELSE relnamespace = current_schema()::regnamespace END
ORDER BY 3 DESC, 1"""
_INDEXES = """\
SELECT i.indexrelid::regclass::text, pg_relation_size(i.indexrelid), m.amname = 'btree',
       CASE WHEN i.indisprimary AND i.indnkeyatts = 1 THEN quote_ident(a.attname) END
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
JOIN pg_attribute a ON a.attrelid = i.indexrelid AND a.attnum = 1
WHERE i.indrelid = %s::regclass ORDER BY 2 DESC, 1"""


def loaded_tables(
    control: "psycopg.Connection[Any]", lookups: "psycopg.Connection[Any] | None" = None, *, all_schemas: bool = False
) -> tuple[tuple[LoadedTable, ...], tuple[Gap, ...]]:
    """Return the tables of the schema that is loaded into, or of `all_schemas`, the largest first, and what of them could not be read.

    `lookups` reads rows, by the casts and operators of their types. Nothing is left in the database: what must be installed to look is rolled back.
    """
    rows = control.execute(_TABLES.encode(), {"all_schemas": all_schemas}).fetchall()
    gaps: dict[Gap, None] = {}
    if len(rows) > _MOST_TABLES:
        gaps[
            Gap(what="sizes of further tables", reason=f"there are {len(rows)}; the largest {_MOST_TABLES} are shown")
        ] = None
    tables = tuple(
        LoadedTable(
            name=name, rows=count, size_bytes=size_bytes, indexes=_indexes(control, lookups or control, name, gaps)
        )
        for name, count, size_bytes in rows[:_MOST_TABLES]
    )
    return tables, tuple(gaps)


def _indexes(
    control: "psycopg.Connection[Any]", lookups: "psycopg.Connection[Any]", table: str, gaps: dict[Gap, None]
) -> tuple[LoadedIndex, ...]:
    return tuple(
        LoadedIndex(
            name=name,
            size_bytes=size_bytes,
            levels=_levels(control, name, gaps) if is_btree else None,
            lookup_buffers=None if key is None else _lookup_buffers(lookups, table, key),
        )
        for name, size_bytes, is_btree, key in control.execute(_INDEXES, (table,)).fetchall()
    )


def _levels(control: "psycopg.Connection[Any]", index: str, gaps: dict[Gap, None]) -> int | None:
    """Read the levels from the B-tree's metapage by pageinspect, which is installed for as long as that takes."""
    import psycopg

    try:
        with control.transaction(force_rollback=True):
            bt_metap = function_of(control, "pageinspect", "bt_metap")
            row = control.execute(f"SELECT level FROM {bt_metap}(%s::text)".encode(), (index,)).fetchone()
    except (psycopg.Error, RunError) as error:
        gaps[Gap(what="levels of B-trees", reason=str(error).strip().splitlines()[0])] = None
        return None
    return None if row is None else int(row[0])


def _lookup_buffers(control: "psycopg.Connection[Any]", table: str, key: str) -> int | None:
    """Return the number of pages that a lookup of the first key touches, in memory or not; None for a table without rows."""
    # Not min(), which not every type that can be a key has.
    first = control.execute(
        f"SELECT quote_literal({key}::text) FROM {table} ORDER BY {key} LIMIT 1".encode()
    ).fetchone()
    if first is None:
        return None
    with control.transaction(force_rollback=True):
        control.execute("SET LOCAL enable_seqscan = off")
        control.execute("SET LOCAL enable_bitmapscan = off")
        query = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT * FROM {table} WHERE {key} = {first[0]}"
        row = control.execute(query.encode()).fetchone()
    assert row is not None, "EXPLAIN gives one row"
    (explained,) = row[0] if isinstance(row[0], list) else json.loads(row[0])
    plan = explained["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
