"""`plinth bench -b tpcc`: the transactions of the TPC-C-derived workload by the command line of bench."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from both import Both
from native_server import Server
from plinth.model.facts import Installation
from plinth.model.tpcc_notice import NOTICE
from plinth.model.tpcc_tables import seed_comment
from plinth.system.owner import Owner
from plinth.workload.tpcc_conditions import check_conditions

TYPES = ("new-order", "payment", "order-status", "delivery", "stock-level")
PACED = ("--mix=1,0,0,0,0", "--pacing=spec", "-c", "2", "-t", "1", "--random-seed=3")
WAITED_NS = 11e9
"""How long the second of these terminals waits before its transaction, by this seed."""


@pytest.fixture(scope="module")
def warehouse(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    """A server with one warehouse in database postgres."""
    server = Server(installations["18"], owner)
    server.start()
    made = _both(server).plinth("-i", "-q", "-b", "tpcc")
    assert made.code == 0, made.err
    yield server
    server.remove()


def _both(server: Server) -> Both:
    return Both(
        {"PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
    )


@pytest.fixture
def bench(warehouse: Server) -> Both:
    return _both(warehouse)


def _control(server: Server) -> psycopg.Connection:
    return psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", dbname="postgres", autocommit=True
    )


def _of_type(report: str, name: str) -> str:
    return re.split(r"SQL script \d: |new orders per minute", report.partition(f": {name}\n")[2])[0]


@pytest.mark.long
def test_report_is_by_type_and_the_conditions_hold(warehouse: Server, bench: Both, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    with _control(warehouse) as control:
        before = control.execute("SELECT sum(d_next_o_id) FROM district").fetchone()
        reported = bench.plinth(
            "-b", "tpcc", "-c", "4", "-j", "2", "-t", "100", "-r", "--max-tries=20", f"--json={file}"
        )
        after = control.execute("SELECT sum(d_next_o_id) FROM district").fetchone()
        violated = [check.got for check in check_conditions(control, initial=False) if not check.ok]
    assert (reported.code, violated) == (0, []), reported.err
    assert reported.out.splitlines()[1:4] == [
        "transaction type: <builtin: TPC-C-derived>",
        "scaling factor: 1",
        "query mode: prepared",
    ]
    assert re.findall(r"SQL script \d: (.*)", reported.out) == list(TYPES)
    assert NOTICE in reported.out
    assert "deviation: 4 terminals for 1 warehouse, not 10 for each" in reported.out
    # A deck of 100 cards for each of two threads of 200 transactions: the mix is exact.
    shares = [int(n) for n in re.findall(r" - (\d+) transactions ", reported.out)]
    assert shares == [180, 172, 16, 16, 16]
    orders = _of_type(reported.out, "new-order")
    assert " COMMIT" in orders and "UPDATE district" in orders and "total number of retries" in orders
    everything = json.loads(file.read_text())
    (done,) = [one["measured"] for one in everything["scripts"] if one["name"] == "new-order"]
    assert before is not None and after is not None
    assert after[0] - before[0] == done["done"] - done["rolled_back"]
    nopm = (done["done"] - done["rolled_back"]) * 60e9 / everything["measured_ns"]
    assert f"new orders per minute (NOPM) = {nopm:.3f}" in reported.out
    of_tpcc = everything["tpcc"]
    assert (of_tpcc["warehouses"], of_tpcc["nopm"], of_tpcc["notice"]) == (1, pytest.approx(nopm), NOTICE)
    assert [f"deviation: {text}" in reported.out for text in of_tpcc["deviations"]].count(False) == 0


@pytest.mark.long
def test_mix_isolation_and_a_connection_for_each_transaction(bench: Both) -> None:
    words = [
        "-n",
        "-b",
        "tpcc",
        "-C",
        "-c",
        "2",
        "-t",
        "10",
        "-r",
        "-s",
        "5",
        "--mix=0,1,0,0,1",
        "--isolation=repeatable-read",
        "--max-tries=20",
    ]
    reported = bench.plinth(*words)
    assert reported.code == 0, reported.err
    assert "scale option ignored, using count from warehouse table (1)" in reported.err
    assert [int(n) for n in re.findall(r" - (\d+) transactions ", reported.out)] == [0, 10, 0, 0, 10]
    assert "BEGIN ISOLATION LEVEL REPEATABLE READ" in _of_type(reported.out, "payment")
    assert "deviation: shares of transactions below the least" in reported.out
    assert "isolation read committed" not in reported.out


def test_procedures_are_called_and_paced_terminals_have_an_efficiency(bench: Both) -> None:
    called = bench.plinth("-n", "-b", "tpcc", "-t", "20", "-r", "--form=procedures", "--json=-")
    assert called.code == 0, called.err
    assert "CALL" in _of_type(called.err, "payment").upper()
    assert json.loads(called.out)["tpcc"]["efficiency"] is None
    # By their number, not by time: a busy machine may not do any in some seconds.
    paced = bench.plinth("-n", "-b", "tpcc", *PACED, "--json=-")
    assert paced.code == 0, paced.err
    document = json.loads(paced.out)
    nopm = document["tpcc"]["nopm"]
    assert document["tpcc"]["efficiency"] == pytest.approx(nopm / 12.86) and nopm > 0
    assert "efficiency = " in paced.err and "no keying and think times" not in paced.err
    measured = document["measured"]
    assert measured["done"] == 2 and document["measured_ns"] >= WAITED_NS


def test_progress_rate_and_json_on_standard_output(bench: Both) -> None:
    reported = bench.plinth(*["-n", "-b", "tpcc", "-R", "30", "-T", "2", "-P", "1", "--percentiles=50,99", "--json=-"])
    assert reported.code == 0, reported.err
    document = json.loads(reported.out)
    assert document["tpcc"]["nopm"] > 0
    assert "progress: 1." in reported.err and "latency p99 = " in reported.err and NOTICE in reported.err
    assert "a client begins a transaction at a rate" in reported.err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("-b tpcc@2", "tpcc has no weight", "--mix=45,43,4,4,4"),
        ("-b tpcc -b tpcb-like@2", "cannot be mixed with other scripts", "at the same time"),
        ("-S -b tpcc", "cannot be mixed with other scripts", "at the same time"),
        ("-b tpcc -M simple", "-M simple: the statements of tpcc have parameters", "Leave -M out"),
        ("-b tpcc -D x=1", "-D/--define sets variables of scripts", ""),
        ("-b tpcc --mix=45,43", 'invalid mix: "45,43"', "new-order, payment, order-status"),
        ("-b tpcc --mix=0,0,0,0,0", "invalid mix", "not all 0"),
        ("-b tpcc --mix=1,1,1,1,-1", "invalid mix", ""),
        ("-b tpcc --mix=1,1,1,1,10001", "invalid mix", "up to 10000"),
        ("-b tpcc --isolation=chaos", 'invalid isolation: "chaos"', "serializable"),
        ("-b tpcc --form=other", 'invalid form: "other"', "statements, procedures"),
        ("-b tpcc --pacing=some", 'invalid pacing: "some"', "none, spec"),
        ("-b tpcc --delivery=later", 'invalid delivery: "later"', "immediate, deferred"),
        ("-b tpcc --delivery=deferred", "--delivery=deferred needs --pacing=spec", "leave --delivery out"),
        ("-b tpcc --pacing=spec -R 10", "both say when transactions begin", ""),
        ("-S --mix=1,1,1,1,1", "--mix: allowed only under -b tpcc", ""),
        ("--isolation=serializable", "--isolation: allowed only under -b tpcc", ""),
        ("-i -b tpcc --mix=1,1,1,1,1", "cannot be used in initialization", ""),
    ],
)
def test_what_cannot_be_is_refused(bench: Both, words: str, message: str, hint: str) -> None:
    reported = bench.plinth(*words.split())
    assert (reported.code, reported.out) == (1, "")
    assert message in reported.err and hint in reported.err


def test_tables_that_are_not_there_or_not_ours_are_refused(warehouse: Server, bench: Both) -> None:
    warehouse.execute("CREATE DATABASE nothing")
    reported = bench.plinth("-b", "tpcc", "nothing")
    assert reported.code == 1
    assert 'relation "warehouse" does not exist' in reported.err
    assert 'hint: Perhaps you need to do initialization ("plinth bench -i -b tpcc -s WAREHOUSES")' in reported.err
    warehouse.execute("COMMENT ON TABLE warehouse IS 'by another program'")
    try:
        reported = bench.plinth("-b", "tpcc")
    finally:
        warehouse.execute(f"COMMENT ON TABLE warehouse IS '{seed_comment(1)}'")
    assert (reported.code, "was not made by Plinth" in reported.err) == (1, True), reported.err
