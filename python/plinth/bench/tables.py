"""What is known of the database before a run: its scale, and how its accounts are partitioned."""

from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.bench.failure import BenchFailure

if TYPE_CHECKING:
    import psycopg

_PARTITIONS = """
    select p.partstrat, count(i.inhparent)
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    cross join lateral (select array_position(current_schemas(true), n.nspname)) o(place)
    left join pg_catalog.pg_partitioned_table p on p.partrelid = c.oid
    left join pg_catalog.pg_inherits i on c.oid = i.inhparent
    where c.relname = 'pgbench_accounts' and o.place is not null
    group by o.place, p.partstrat
    order by o.place
    limit 1
"""
_METHODS = {"r": "range", "h": "hash", None: None}


class TableInfo(NamedTuple):
    """`partition_method` is None for accounts that are not partitioned, or not known."""

    scale: int
    partition_method: str | None = None
    partitions: int = 0


def read_tables(connection: "psycopg.Connection[Any]") -> TableInfo:
    """The scale by the number of branches, and the partitions of the first accounts table in search_path.

    Raises BenchFailure when the tables are not there.
    """
    import psycopg

    hint = f'Perhaps you need to do initialization ("plinth bench -i") in database "{connection.info.dbname}".'
    try:
        branches = connection.execute("select count(*) from pgbench_branches").fetchone()
    except psycopg.Error as error:
        missing = isinstance(error, psycopg.errors.UndefinedTable)
        raise BenchFailure(
            f"could not count number of branches: {server_message(error)}", hint=hint if missing else None
        ) from error
    row = connection.execute(_PARTITIONS).fetchone()
    if row is None:
        raise BenchFailure('no pgbench_accounts table found in "search_path"', hint=hint)
    if row[0] not in _METHODS:
        raise BenchFailure(f'unexpected partition method: "{row[0]}"')
    assert branches is not None, "an aggregate gives one row"
    return TableInfo(int(branches[0]), _METHODS[row[0]], int(row[1]) if row[0] is not None else 0)


def server_message(error: "psycopg.Error") -> str:
    """A server's error as libpq's programs show it: severity, message, the line of the statement, detail and hint."""
    result = error.pgresult
    return (result.error_message.decode(errors="replace") if result is not None else str(error)).strip()
