"""The tables before a run: their scale, and how the accounts are partitioned."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from plinth.bench.failure import BenchFailure
from plinth.system.libpq import LibpqConnection, StatementError

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
UNDEFINED_TABLE = "42P01"


class TableInfo(NamedTuple):
    """`partition_method` is None for accounts that are not partitioned, or not known."""

    scale: int
    partition_method: str | None = None
    partitions: int = 0


@contextmanager
def answers_of_postgresql() -> Iterator[None]:
    """Raise BenchFailure for an answer of another form: of a proxy, or of a server of another kind."""
    try:
        yield
    except ValueError as error:
        raise BenchFailure(f"the server did not answer a query of the catalog as PostgreSQL does: {error}") from error


@answers_of_postgresql()
def read_tables(connection: LibpqConnection) -> TableInfo:
    """Return the scale by the number of branches, and the partitions of the first accounts table in search_path.

    Raises BenchFailure when the tables are not there.
    """
    hint = f'Perhaps you need to do initialization ("plinth bench -i") in database "{connection.database}".'
    try:
        (scale,) = connection.execute("select count(*) from pgbench_branches")[0]
    except StatementError as error:
        missing = error.sqlstate == UNDEFINED_TABLE
        raise BenchFailure(f"could not count number of branches: {error}", hint=hint if missing else None) from error
    rows = connection.execute(_PARTITIONS)
    if not rows:
        raise BenchFailure('no pgbench_accounts table found in "search_path"', hint=hint)
    method, partitions = rows[0]
    if method not in _METHODS:
        raise BenchFailure(f'unexpected partition method: "{method}"')
    return TableInfo(int(scale or 0), _METHODS[method], int(partitions or 0) if method is not None else 0)
