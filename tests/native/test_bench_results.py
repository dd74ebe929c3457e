"""`plinth bench` says what pgbench says, line for line, but for the figures."""

import json
import re
from pathlib import Path

import pytest
from both import Both, Told
from native_server import Server


@pytest.fixture
def both(server: Server) -> Both:
    place = {"PGHOST": str(server.folder), "PGPORT": str(server.port)}
    return Both(place | {"PGUSER": "postgres", "PGDATABASE": "postgres"})


@pytest.mark.parametrize(
    "options",
    [
        "-t 5",
        "-n -S -c 4 -j 2 -t 5 -M prepared",
        "-n -c 2 -t 5 -r",
        "-n -N -c 2 -t 5 -r --max-tries=3 --failures-detailed",
        "-n -T 2 -P 1 -S -c 2",
        "-n -t 50 -R 200 -S",
        "-n -t 50 -R 200 -L 100 -S -c 2 -j 2",
        "-n -t 5 -L 100 -b tpcb",
        "-n -t 20 -c 2 -b se@3 -b si@1 --random-seed=7",
        "-n -t 20 -c 2 -b se@3 -b si@0 -b tpcb@2 -r --max-tries=2",
        "-n -C -S -t 5",
        "-n -S -s 5 -t 5",
        "-v -S -t 5",
        "-n -S -t 1 -T 1",
    ],
)
def test_report_has_the_lines_of_pgbench(both: Both, options: str) -> None:
    words = options.split()
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    assert shape(ours.err) == shape(theirs.err)


def test_counts_are_exact_where_they_are_asked_for(both: Both) -> None:
    ours = both.plinth("-n", "-S", "-c", "3", "-t", "7").out
    assert "number of transactions actually processed: 21/21\n" in ours
    assert "number of failed transactions: 0 (0.000%)\n" in ours


def test_own_scripts_and_variables(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    script.write_text("\\set n :rows * 2\nSELECT :n, :scale, :client_id;\n\\sleep 1 ms\n")
    words = ("-n", "-f", str(script), "-D", "rows=5", "-s", "9", "-t", "3", "-r")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert shape(ours.out) == shape(theirs.out)
    assert "scaling factor: 9\n" in ours.out


COMMANDS = """\\set a 1 + 1
\\sleep 20 ms
\\if :a = 2
select 1; select pg_sleep(0.03);
\\else
select 2;
\\endif
\\shell sleep 0.02
\\setshell b sleep 0.02; echo 3
\\startpipeline
select pg_sleep(0.01);
\\endpipeline
"""


def test_every_command_is_timed_as_pgbench_does(both: Both, tmp_path: Path) -> None:
    script, told = tmp_path / "own.sql", tmp_path / "told.json"
    script.write_text(COMMANDS)
    words = ("-n", "-f", str(script), "-t", "3", "-M", "extended", "-r")
    ours, theirs = both.plinth(*words, f"--json={told}"), both.pgbench(*words)
    assert shape(ours.out) == shape(theirs.out)
    at_least_ms = {"sleep 20": 20, "pg_sleep(0.03)": 30, "shell sleep": 20, "setshell": 20, "endpipeline": 10}
    for said in (ours, theirs):
        commands = re.findall(r"^ +([0-9.]+) +0 +(.+)$", said.out, re.MULTILINE)
        assert len(commands) == 13
        for words_of_it, least_ms in at_least_ms.items():
            (took_ms,) = [float(ms) for ms, text in commands if words_of_it in text]
            assert took_ms >= least_ms
        (skipped_ms,) = [ms for ms, text in commands if text == "select 2;"]
        assert skipped_ms == "0.000"

    histograms = json.loads(told.read_text())["histograms"]
    timed = {one["line"]: one for one in histograms if one["scope"] == "command"}
    assert {line: one["count"] for line, one in timed.items()} == dict.fromkeys([1, 2, 3, 5, 8, 9, 10, 12], 3)
    (all_of_it,) = [one for one in histograms if one["scope"] == "transaction"]
    alone = [one for one in histograms if one["scope"] == "statement" and one["line"] == 4]
    assert sum(one["sum_ns"] for one in (*timed.values(), *alone)) <= all_of_it["sum_ns"]


def test_a_client_that_fails_ends_and_the_exit_code_is_2(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1 / 0;\n")
    words = ("-n", "-f", str(script), "-c", "2", "-t", "3")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, theirs.code) == (2, 2)
    assert shape(ours.out) == shape(theirs.out)
    assert sorted(set(shape(ours.err))) == sorted(set(shape(theirs.err)))


def test_a_client_whose_script_cannot_go_on(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1;\n\\set x 1 / 0\n")
    words = ("-n", "-f", str(script), "-t", "3")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (2, shape(theirs.err))


def test_going_on_after_errors(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1 / 0;\n")
    told = both.plinth("-n", "-f", str(script), "-t", "3", "--continue-on-error", "--failures-detailed")
    assert told.code == 0
    assert "number of failed transactions: 3 (100.000%)\n" in told.out
    assert "number of other failures: 3 (100.000%)\n" in told.out


def test_exit_on_abort(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("\\if :client_id = 1\nSELECT 1 / 0;\n\\endif\nSELECT 1;\n")
    told = both.plinth("-n", "-f", str(script), "-c", "2", "-T", "60", "--exit-on-abort")
    assert told.code == 2
    assert "Run was aborted" in told.err


def test_tables_that_are_not_there(both: Both) -> None:
    words = ("-S", "-t", "1", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err))


def test_vacuum_that_cannot_be_is_told_and_passed_over(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    script.write_text("SELECT 1;\n")
    words = ("-f", str(script), "-t", "1", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (0, shape(theirs.err))


def test_what_pgbench_has_not(both: Both, tmp_path: Path) -> None:
    place = tmp_path / "result.json"
    told = both.plinth("-n", "-S", "-t", "20", "--percentiles=50,99.9", "--warmup=0.2", f"--json={place}")
    assert re.search(r"^latency p50 = \d+\.\d{3} ms\nlatency p99.9 = \d+\.\d{3} ms$", told.out, re.MULTILINE)
    result = json.loads(place.read_text())
    assert result["measured"]["done"] == 20
    assert result["warmup_ns"] >= 200_000_000


def test_a_rate_that_steps_and_ramps(both: Both, tmp_path: Path) -> None:
    """100 in the first second, from 100 to 300 in the next, then 50 a second."""
    place = tmp_path / "result.json"
    words = ("-n", "-S", "-c", "4", "-T", "3", "--rate=100:1,100..300:1,50", "--arrivals=uniform", f"--json={place}")
    told = both.plinth(*words)
    assert told.code == 0, told.err
    result = json.loads(place.read_text())
    done = [row["done"] for row in result["series"] if row["phase"] == "measure"]
    assert sum(done) == pytest.approx(350, abs=4)
    assert done[:3] == pytest.approx([100, 200, 50], abs=4)
    assert "rate limit schedule lag: avg" in told.out


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
            told = program(*words, name)
            assert told.code == 0, told.err
            left.append((_catalogue(server, name), steps(told)))
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


def test_an_initialisation_that_fails_says_the_statement(both: Both) -> None:
    words = ("-i", "-I", "t", "--tablespace=nosuch", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (1, shape(theirs.err))


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


def steps(told: Told) -> list[str]:
    """What was done, without the rows on the way."""
    return [re.sub(r"\d+\.\d+", "N", line) for line in told.err.splitlines() if "tuples" not in line]


def shape(text: str) -> list[str]:
    """Lines without figures, and without who says them."""
    text = re.sub(r"^(\S*/)?pgbench:|^plinth bench:", "", text, flags=re.MULTILINE).replace("plinth bench", "pgbench")
    text = re.sub(r"^pgbench \(.*\)$", "pgbench (VERSION)", text, flags=re.MULTILINE)
    lines = [re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?", "N", line)) for line in text.splitlines()]
    # How many seconds there were, and which client's error came first, is chance.
    return [line for number, line in enumerate(lines) if not line.startswith("progress:") or line not in lines[:number]]
