"""`plinth bench -i` leaves what pgbench leaves, and says what it says."""

import os
import re
import subprocess
import sys

import psycopg
import pytest

from both import Both, ProgramOutput, shape
from native_server import PASSWORD, Server


def test_rows_are_reported_once_when_all_are_there(both: Both) -> None:
    reported = both.plinth("-i", "-s", "2", "-I", "dtg")
    assert len(re.findall(r"\(100%\)", reported.err)) == 1, reported.err
    assert both.plinth("-i", "-q").code == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        "-I d",
        "-s 2",
        "-s 1 -F 70 --foreign-keys -q",
        "-I dtGvpf",
        "-I dtpg",
        "-I dtpfgv",
        "-n --unlogged-tables",
        "--partitions=3",
        "--partitions=2 --partition-method=hash --unlogged-tables -F 50",
        "--partitions=1",
        "-I dt -s 20000",
    ],
)
def test_initialisation_leaves_what_pgbench_leaves(server: Server, both: Both, options: str) -> None:
    words = ("-i", *options.split())
    left = []
    for name, program in (("theirs", both.pgbench), ("ours", both.plinth)):
        server.execute(f"CREATE DATABASE {name}")
        try:
            reported = program(*words, name)
            assert reported.code == 0, reported.err
            left.append((_catalogue(server, name), steps(reported)))
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert left[0] == left[1]


def test_initialisation_with_tablespaces(server: Server, both: Both) -> None:
    (server.folder / "space").mkdir()
    server.own(server.folder / "space")
    server.execute(f"CREATE TABLESPACE space LOCATION '{server.folder}/space'")
    server.execute("CREATE DATABASE ours")
    try:
        assert both.plinth("-i", "--tablespace=space", "--index-tablespace=space", "ours").code == 0
        query = (
            "SELECT count(*) FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE spcname = 'space'"
        )
        assert _query(server, "ours", query) == [(7,)]
    finally:
        server.execute("DROP DATABASE ours WITH (FORCE)")
        server.execute("DROP TABLESPACE space")


@pytest.mark.parametrize("options", ["-I t --tablespace=nosuch", "-I G", "-I v", "-I p", "-I f"])
def test_an_initialisation_that_fails_says_the_statement(both: Both, options: str) -> None:
    words = ("-i", *options.split(), "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (1, shape(theirs.err))


def test_rows_for_tables_that_are_not_there(both: Both) -> None:
    words = ("-i", "-I", "g", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, theirs.code) == (1, 1)
    assert 'relation "pgbench_' in ours.err


def _catalogue(server: Server, database: str) -> list[tuple[object, ...]]:
    """Tables with their options, columns, constraints, partitions' bounds and rows."""
    tables = _query(
        server,
        database,
        "SELECT relname, relkind, relpersistence, reloptions::text, pg_get_expr(relpartbound, oid),"
        " (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || attnotnull, ',' ORDER BY attnum)"
        "  FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0)"
        " FROM pg_class c WHERE relname LIKE 'pgbench%' ORDER BY relname",
    )
    constraints = _query(
        server,
        database,
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype <> 'n' ORDER BY 1, 2",
    )
    rows = [
        _query(server, database, f"SELECT count(*), md5(string_agg(t::text, ';' ORDER BY t::text)) FROM {row[0]} t")
        for row in tables
        if row[1] in ("r", "p")
    ]
    return [*tables, *constraints, *[row for each in rows for row in each]]


def _query(server: Server, database: str, sql: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", dbname=database, autocommit=True
    ) as connection:
        return connection.execute(sql.encode()).fetchall()


def steps(reported: ProgramOutput) -> list[str]:
    """What was done, without the rows on the way."""
    return [re.sub(r"\d+\.\d+", "N", line) for line in reported.err.splitlines() if "tuples" not in line]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_partitioned_tables_in_a_database_of_any_encoding(server: Server, encoding: str) -> None:
    place = {"PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres", "PGPASSWORD": PASSWORD}
    env = {**os.environ, **place}
    name = f"in_{encoding.lower()}"
    with psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", password=PASSWORD, autocommit=True
    ) as control:
        control.execute(f"create database {name} template template0 encoding '{encoding}' locale 'C'".encode())
    for words in (["-i", "-q", "--partitions=2"], ["-n", "-t", "3"]):
        bench = [sys.executable, "-m", "plinth", "bench", *words, name]
        done = subprocess.run(bench, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert "partition method: range" in done.stdout
