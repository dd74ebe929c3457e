"""Loads by drivers of Python against a real server: figures like the engine's, and failures counted as the engine's."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_server import Server
from plinth.load import Load
from plinth.load.drivers import DriverLoad, check_driver
from plinth.load.drivers.aggregates import Timeline, highest_of_buckets
from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability, RunError, UsageError
from plinth.model.facts import Installation
from plinth.model.load import LoadResult, Totals
from plinth.model.load_config import LoadConfig, LoadScript
from plinth.model.plan import ScriptText
from plinth.model.workload import Driver, WorkloadSpec
from plinth.observe.host import HostStat
from plinth.observe.process_sources import ProcessCpu
from plinth.observe.processes import LOAD_ENGINE, Processes, RunProcesses
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from typed import present
from waiting import wait_until

Begun = Callable[..., DriverLoad]


@pytest.fixture(scope="module")
def here(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    server = Server(installations["18"], owner)
    server.start()
    yield server
    server.remove()


def config(server: Server, script: str, **changes: Any) -> LoadConfig:
    usual = {"clients": 2, "duration_s": 0.5, "seed": 7, "stop_timeout_s": 0.2}
    return LoadConfig(
        connection=Connection(**server.connection()),
        scripts=[LoadScript(name="script", source=script)],
        **usual | changes,
    )


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Begun]:
    """Begins loads; those that still run at the end are stopped."""
    made: list[DriverLoad] = []

    def begin(of: LoadConfig, driver: Driver = "psycopg") -> DriverLoad:
        load = DriverLoad(driver, of, Runner(), LogFile(tmp_path / "drivers.log"))
        made.append(load)
        load.start()
        return load

    yield begin
    for load in made:
        load.stop()
        assert load.wait(30)


def ended(load: DriverLoad | Load) -> LoadResult:
    assert load.wait(30), "the load did not end"
    result = load.result()
    for totals in (result.totals, result.measured):
        assert totals.scheduled == totals.done + totals.failed + totals.skipped + totals.open
    return result


@pytest.mark.long
@pytest.mark.parametrize(
    ("driver", "protocol"), [("psycopg", "extended"), ("psycopg", "simple"), ("sqlalchemy", "prepared")]
)  # fmt: skip
def test_figures_are_as_the_engines_and_so_are_draws(here: Server, begun: Begun, driver: Driver, protocol: str) -> None:
    here.execute(
        "DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (at bigserial, who text, client int, value bigint, t text)"
    )
    script = (
        "\\set value random_zipfian(1, 1000 * :scale, 1.2)\n"
        "BEGIN;\nINSERT INTO drawn (who, client, value, t)\n  VALUES (:who, :client_id, :value, '%:' || '50%'::text);\n"
        "SELECT count(*), 'x' LIKE '%x%' FROM drawn WHERE at = :value;\nEND;\n"
    )
    of = config(here, script, protocol=protocol, warmup_s=0.3, variables={"scale": "7", "who": driver})
    if protocol == "simple":  # the engine puts texts in as they are
        script = script.replace(":who", f"'{driver}'")
        of = config(here, script, protocol=protocol, warmup_s=0.3, variables={"scale": "7"})
    result = ended(begun(of, driver))
    assert (result.errors, result.clients_aborted, result.interrupted) == ((), 0, False)
    with here.connect() as control:
        (rows,) = present(control.execute("SELECT count(*) FROM drawn WHERE t = '%:50%'").fetchone())
        drawn = control.execute("SELECT client, value FROM drawn ORDER BY at").fetchall()
        control.execute("TRUNCATE drawn")
    assert result.totals.done == rows >= result.measured.done > 0
    assert sum(row.done for row in result.series if row.phase == "measure") == result.measured.done
    assert [(row.phase, row.t_ns) for row in result.series[:2]] == [("warmup", 0), ("measure", 300_000_000)]
    assert sum(row.done for row in result.series) == result.totals.done
    assert sum(row.length_ns for row in result.series) == result.warmup_ns + result.measured_ns
    whole, *statements = result.histograms
    assert (whole.scope, whole.script, whole.count) == ("transaction", "script", result.measured.done)
    assert [(one.statement, one.line, one.count) for one in statements] == [
        (number, line, whole.count) for number, line in enumerate((2, 3, 5, 6))
    ]
    assert sum(one.sum_ns for one in statements) <= whole.sum_ns
    assert sum(count for _, count in whole.buckets) == whole.count
    assert result.series[1].latency_max_ns is not None and result.series[1].latency_max_ns <= whole.max_ns
    cost = result.engine
    assert (cost.threads, cost.bytes_sent, cost.loop_lag_p99_ns) == (2, None, None)
    assert cost.user_cpu_ns > 10_000 * result.measured.done
    assert driver in (cost.driver or "").lower() and "18." in (cost.server_version or "")
    engine = Load(of)
    engine.start()
    by_engine = ended(engine)
    assert all(
        highest_of_buckets(np.array([high]))[0] == high for one in by_engine.histograms for high, _ in one.buckets
    )
    with here.connect() as control:
        again = control.execute("SELECT client, value FROM drawn ORDER BY at").fetchall()
    for client in (0, 1):
        ours, engines = ([value for of, value in values if of == client] for values in (drawn, again))
        shared = min(len(ours), len(engines))
        assert shared > 5 and ours[:shared] == engines[:shared]


SERIALIZABLE = (
    "BEGIN ISOLATION LEVEL SERIALIZABLE;\nUPDATE hot SET n = n + 1;\nSELECT pg_sleep(0.002);\nEND;\n"
)  # fmt: skip


def test_serialization_failures_are_counted_and_tried_again(here: Server, begun: Begun) -> None:
    driver = "sqlalchemy"
    here.execute("DROP TABLE IF EXISTS hot; CREATE TABLE hot AS SELECT 0 AS n")
    once = ended(begun(config(here, SERIALIZABLE), driver)).totals
    again = ended(begun(config(here, SERIALIZABLE, max_tries=0), driver))
    with here.connect() as control:
        assert control.execute("SELECT n FROM hot").fetchone() == (once.done + again.totals.done,)
    assert once.failed == present(once.serialization_failures) > 0 and once.retries == 0
    # Only one that failed when the time was over is not tried again.
    assert again.totals.retries >= again.totals.retried > 0 and again.totals.failed <= 2
    (error,) = again.errors
    assert (error.kind, error.sqlstate, error.statement, error.line) == ("serialization_failure", "40001", 1, 2)
    assert error.count == again.totals.retries + again.totals.failed
    assert error.retried == again.totals.retries


@pytest.mark.long
def test_errors_of_statements_fail_transactions_and_others_end_clients(here: Server, begun: Begun) -> None:
    result = ended(begun(config(here, "\\set d random(0, 1)\nBEGIN;\nSELECT 1 / :d;\nEND;"), "sqlalchemy"))
    assert result.totals.failed > 0 and result.totals.done > 0 and result.clients_aborted == 0
    (error,) = result.errors
    assert (error.kind, error.sqlstate, error.statement, error.line) == ("sql", "22012", 1, 3)
    assert (error.message, error.count) == ("division by zero", result.totals.failed)
    for script, message in (
        ("BEGIN;\nSELECT 1;", "ends inside a transaction block"),
        ("\\set a 1 / (:client_id - :client_id)\nSELECT :a;", "script:1: division by zero"),
    ):
        result = ended(begun(config(here, script)))
        assert (result.clients_aborted, result.totals.failed, result.totals.done) == (2, 2, 0)
        assert [(error.kind, error.count) for error in result.errors] == [("script", 2)]
        assert message in result.errors[0].message


def test_a_lost_connection_ends_its_client_and_the_others_continue(here: Server, begun: Begun) -> None:
    load = begun(config(here, "SELECT pg_sleep(0.01);", duration_s=1.0), "sqlalchemy")
    with here.connect() as control:
        control.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plinth' LIMIT 1"
        )
    result = ended(load)
    assert (result.clients_aborted, result.totals.failed) == (1, 1)
    assert [(error.kind, error.count) for error in result.errors] == [("connection_lost", 1)]
    assert result.series[-1].t_ns + result.series[-1].length_ns > 900_000_000 and result.totals.done > 20


@pytest.mark.long
@pytest.mark.parametrize("driver", ["psycopg", "sqlalchemy"])
def test_a_session_that_is_terminated_is_replaced_where_that_is_asked_for(
    here: Server, begun: Begun, driver: Driver
) -> None:
    load = begun(config(here, "SELECT pg_sleep(0.1);", duration_s=60, replace_terminated=True), driver)
    ours = "FROM pg_stat_activity WHERE application_name = 'plinth'"
    with here.connect() as control:
        at_work = f"SELECT count(*) {ours} AND wait_event = 'PgSleep'"
        wait_until(lambda: load.progress().done > 0 and control.execute(at_work.encode()).fetchone() == (2,))
        control.execute(f"SELECT pg_terminate_backend(pid, 5000) {ours}".encode())
        wait_until(lambda: control.execute(f"SELECT count(*) {ours}".encode()).fetchone() == (2,))
    done = load.progress().done
    wait_until(lambda: load.progress().done > done + 10)
    load.stop()
    result = ended(load)
    assert [(error.kind, error.sqlstate, error.count) for error in result.errors] == [("terminated", "57P01", 2)]
    assert (result.clients_aborted, result.totals.failed) == (0, 2)


def test_a_client_that_is_killed_is_reported_and_its_transaction_is_open(here: Server, begun: Begun) -> None:
    load = begun(config(here, "SELECT pg_sleep(0.01);", duration_s=1.5))
    _, first, _ = load.processes
    os.kill(first, signal.SIGKILL)
    result = ended(load)
    assert (result.clients_aborted, result.totals.open) == (1, 1)
    (error,) = result.errors
    assert error.kind == "client_died" and "SIGKILL" in error.message
    assert result.totals.done > 20


@pytest.mark.long
def test_a_stop_lets_transactions_end_and_cuts_off_and_cancels_those_that_do_not(here: Server, begun: Begun) -> None:
    short = begun(config(here, "SELECT 1;", duration_s=60))
    wait_until(lambda: short.progress().done > 0)
    short.stop()
    result = ended(short)
    assert result.interrupted and result.totals.open == 0 and result.measured_ns < 30e9
    long = begun(config(here, "SELECT pg_sleep(100);", duration_s=60), "sqlalchemy")
    active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(100)%' AND state = 'active'"
    with here.connect() as control:
        wait_until(lambda: control.execute(active.encode()).fetchone() == (2,))
        long.stop()
        result = ended(long)
        assert (result.totals, result.errors) == (
            Totals(
                scheduled=2, done=0, failed=0, skipped=0, open=2, retries=0, retried=0, late=0,
                serialization_failures=0, deadlock_failures=0,
            ),
            (),
        )  # fmt: skip
        wait_until(lambda: control.execute(active.encode()).fetchone() == (0,))


def test_the_cpu_of_clients_is_observed_as_the_load_engines(here: Server, begun: Begun) -> None:
    load = begun(config(here, "SELECT 1;", duration_s=60))
    processes = Processes(
        RunProcesses(None, further_engines=lambda: load.processes),
    )
    source = ProcessCpu(processes, HostStat())

    def clients_cpu_s() -> float:
        readings = [reading.value for reading in source.read().readings if reading.object == LOAD_ENGINE]
        return sum(readings) - time.process_time()

    before_s = clients_cpu_s()
    wait_until(lambda: clients_cpu_s() > before_s + 0.3)
    load.stop()
    ended(load)
    assert load.processes == ()
    assert clients_cpu_s() > before_s + 0.2, "what they used stays"


@pytest.mark.long
@pytest.mark.parametrize("driver", ["plinth", "psycopg"])
def test_cpu_is_that_of_the_measured_phase(here: Server, begun: Begun, driver: Driver) -> None:
    """One client cannot use more than the time that was measured; over the warm-up, six times as long, it does."""
    of = config(here, "SELECT 1;", clients=1, warmup_s=1.2, duration_s=0.2)
    used_before_s = time.process_time()
    if driver == "plinth":
        load = Load(of)
        load.start()
    else:
        load = begun(of, driver)
    result = ended(load)
    cpu_ns = result.engine.user_cpu_ns + result.engine.system_cpu_ns
    assert 0 < cpu_ns <= result.measured_ns + 20_000_000
    if driver == "plinth":
        assert time.process_time() - used_before_s > 3 * cpu_ns / 1e9, "the whole load's"


def test_processes_end_with_whom_they_work_for(here: Server, begun: Begun) -> None:
    load = begun(config(here, "SELECT pg_sleep(100);", duration_s=60))
    foreman, *clients = load.processes
    os.kill(foreman, signal.SIGKILL)
    with pytest.raises(RunError, match="the driver's process ended with exit code -9"):
        load.wait(30)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in clients))


@pytest.mark.long
def test_who_cannot_connect_says_why(here: Server, begun: Begun) -> None:
    of = config(here, "SELECT 1;")
    gone = replace(of.connection, port=1)
    with pytest.raises(RunError, match=r"no client could connect: connection .*failed"):
        begun(of.model_copy(update={"connection": gone}))
    full = of.model_copy(update={"connection": replace(of.connection, database="nope")})
    with pytest.raises(RunError, match='database "nope" does not exist'):
        begun(full, "sqlalchemy")


def test_more_clients_than_the_server_takes_are_reported(here: Server, begun: Begun) -> None:
    here.execute("DROP ROLE IF EXISTS few; CREATE ROLE few LOGIN CONNECTION LIMIT 1")
    of = config(here, "SELECT 1;", clients=3)
    few = replace(of.connection, user="few")
    result = ended(begun(of.model_copy(update={"connection": few})))
    (error,) = result.errors
    assert (error.kind, error.count) == ("connect", 2) and "too many connections" in error.message
    assert result.totals.done > 0


def test_what_a_driver_does_not_run_is_refused_with_its_line() -> None:
    spec = WorkloadSpec(script=("x.sql",), driver="psycopg")
    ours = ScriptText(name="x.sql", source="\\set a :rows\nSELECT :a;")
    check_driver(spec, [ours], {"rows": "1"})
    with pytest.raises(
        UsageError, match=r"driver 'psycopg' does not run \\gset: it takes SQL and \\set only"
    ) as caught:
        check_driver(spec, [ours.model_copy(update={"source": "SELECT 1;\nSELECT 2 AS b \\gset\n"})], {})
    assert caught.value.where == "x.sql:2"
    with pytest.raises(UsageError, match='undefined variable "row"') as caught:
        check_driver(spec, [ours.model_copy(update={"source": "SELECT 1;\nSELECT :row;"})], {"rows": "1"})
    assert (caught.value.where, caught.value.hint) == ("x.sql:2:1", "did you mean :rows?")
    for source, message in (
        ("\\set a-b 1\nSELECT 1;", 'invalid variable name: "a-b"'),
        ("\\set a :nothing\nSELECT 1;", 'undefined variable "nothing"'),
        ("\\set a 1 +\nSELECT 1;", "syntax error"),
    ):
        with pytest.raises(UsageError, match=message):
            check_driver(spec, [ours.model_copy(update={"source": source})], {})
    with pytest.raises(UsageError, match=r"runs one script; got x\.sql, y\.sql"):
        check_driver(spec, [ours, ours.model_copy(update={"name": "y.sql"})], {"rows": "1"})
    for key, value in (("rate", 5), ("reconnect", True), ("threads", 2)):
        with pytest.raises(ValueError, match=f"{key}: of driver plinth only"):
            WorkloadSpec.model_validate({"script": "x.sql", "driver": "sqlalchemy", key: value})


def test_a_driver_that_is_not_installed_is_a_missing_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)  # as importlib has it: it cannot be imported
    script = ScriptText(name="x.sql", source="SELECT 1;")
    check_driver(WorkloadSpec(script=("x.sql",), driver="psycopg"), [script], {})
    with pytest.raises(MissingCapability) as caught:
        check_driver(WorkloadSpec(script=("x.sql",), driver="sqlalchemy"), [script], {})
    assert caught.value.exit_code == 5
    assert "pip install 'pgplinth[drivers]'" in (caught.value.hint or "")


@given(st.integers(0, 2**42))
def test_buckets_hold_their_latencies_to_three_digits(latency_ns: int) -> None:
    capped = min(latency_ns, 3_600_000_000_000)
    (highest,) = highest_of_buckets(np.array([latency_ns])).tolist()
    assert capped <= highest <= max(capped + 512, capped * 1.001)
    assert highest_of_buckets(np.array([highest]))[0] == highest or highest > 3_600_000_000_000


@given(st.integers(0, 10**11), st.integers(0, 10**11))
def test_rows_hold_their_instants(warmup_ns: int, t_ns: int) -> None:
    timeline = Timeline(warmup_ns)
    row = timeline.row(t_ns)
    assert timeline.start_ns(row) <= t_ns < timeline.start_ns(row + 1) <= timeline.start_ns(row) + 10**9
    assert (timeline.phase(row) == "measure") == (t_ns >= warmup_ns)
