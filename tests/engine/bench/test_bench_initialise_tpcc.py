"""`plinth bench -i -b tpcc` leaves what the dataset tpcc leaves."""

import re

import psycopg
import pytest

from both import Both
from native_server import Server
from plinth.model.tpcc_tables import SEED_QUERY, TABLES, seed_in
from plinth.workload.tpcc_conditions import check_conditions

KEYS = "SELECT contype::text, count(*) FROM pg_constraint WHERE contype IN ('p', 'f') AND conparentid = 0 AND connamespace = 'public'::regnamespace GROUP BY 1 ORDER BY 1"
PARTITIONED = "SELECT relname, (SELECT count(*) FROM pg_inherits WHERE inhparent = c.oid) FROM pg_class c WHERE relkind = 'p' ORDER BY 1"
LARGE = ("customer", "history", "new_order", "order_line", "orders", "stock")


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "keys", "partitions"),
    [
        ("-s 1 -q", [("p", 8)], 0),
        pytest.param("-s 2 --partitions=2 --foreign-keys -F 90", [("f", 10), ("p", 8)], 2, marks=pytest.mark.long),
        pytest.param("-s 1 --partitions=3 --partition-method=hash -I dtgp", [("p", 8)], 3, marks=pytest.mark.long),
    ],
)
def test_tables_are_those_of_the_dataset(
    server: Server, both: Both, options: str, keys: list[tuple[str, int]], partitions: int
) -> None:
    warehouses = int(options.split()[1])
    server.execute("CREATE DATABASE warehouses")
    try:
        reported = both.plinth("-i", "-b", "tpcc", *options.split(), "warehouses")
        assert reported.code == 0, reported.err
        assert len(re.findall(r"of the nine tables done", reported.err)) >= 1, reported.err
        assert "(100%)" in reported.err and "pgbench" not in reported.err
        place = {"host": str(server.folder), "port": server.port, "user": "postgres", "dbname": "warehouses"}
        with psycopg.connect(**place, autocommit=True) as control:
            assert [check.got for check in check_conditions(control, initial=True) if not check.ok] == []
            assert control.execute(KEYS.encode()).fetchall() == keys
            (comment,) = control.execute(SEED_QUERY.encode()).fetchone() or (None,)
            assert seed_in(comment) == 1
            expected = [(table, partitions) for table in LARGE] if partitions else []
            assert control.execute(PARTITIONED.encode()).fetchall() == expected
            assert control.execute("SELECT count(*) FROM warehouse").fetchone() == (warehouses,)
        assert both.plinth("-i", "-b", "tpcc", "-I", "d", "warehouses").code == 0
        with psycopg.connect(**place) as control:
            assert [table.name for table in TABLES if _is_there(control, table.name)] == []
    finally:
        server.execute("DROP DATABASE warehouses WITH (FORCE)")


def _is_there(control: psycopg.Connection, table: str) -> bool:
    return control.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() == (True,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-i -b tpcc -I dtG", 'the initialization step "G" is not there for tpcc'),
        ("-i -b tpcc -s 100001", "must be in range 1..100000"),
        ("-i -b tpcc -s 2 --partitions=3", "got 3 partitions by ranges of 2 warehouses"),
        ("-i -b tpcc -S", "cannot be used in initialization"),
        ("-i -b select-only", "cannot be used in initialization"),
    ],
)
def test_what_cannot_be_is_refused(both: Both, options: str, message: str) -> None:
    reported = both.plinth(*options.split())
    assert (reported.code, message in reported.err) == (1, True), reported.err
