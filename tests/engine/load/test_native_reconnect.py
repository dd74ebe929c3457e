"""A connection for each transaction, what is left of clients that cannot continue, and the results of aborted transactions."""

import json
import signal
import threading
from typing import Any

import pytest

from native_server import Finished, Load, Server
from plinth import _native
from plinth.model.facts import Installation
from plinth.model.load import LoadResult
from plinth.system.owner import Owner
from waiting import wait_until


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_each_transaction_gets_a_session_of_its_own(
    server: Server, load: Load, finished: Finished, protocol: str
) -> None:
    server.execute("drop table if exists sessions; create table sessions (pid int)")
    script = "insert into sessions values (pg_backend_pid());\nselect 1;\n"
    run = load(
        server.connection(),
        script,
        clients=4,
        threads=2,
        protocol=protocol,
        transactions_per_client=8,
        reconnect=True,
    )
    result = finished(run)
    assert (result.measured.done, result.errors, result.clients_aborted) == (32, (), 0)
    assert server.execute("select count(*), count(distinct pid) from sessions") == [(32, 32)]
    (connect,) = [one for one in result.histograms if one.scope == "connect"]
    (transaction,) = [one for one in result.histograms if one.scope == "transaction"]
    assert connect.count == 32
    # As pgbench has it, latency in a closed loop begins when there is a connection.
    elapsed_ns = connect.sum_ns + transaction.sum_ns
    assert elapsed_ns <= 4 * result.measured_ns
    wait_until(lambda: not server.execute("select 1 from pg_stat_activity where application_name = 'plinth'"))


def test_in_an_open_loop_latency_includes_the_connection(server: Server, load: Load, finished: Finished) -> None:
    rate = {"arrivals": "uniform", "stages": [{"from_tps": 50, "to_tps": 50}]}
    result = finished(load(server.connection(), "select 1;", clients=2, duration_s=1.0, rate=rate, reconnect=True))
    sums = {one.scope: one.sum_ns for one in result.histograms}
    assert result.totals.done == pytest.approx(50, abs=3)
    assert sums["schedule_lag"] >= sums["connect"]
    assert sums["transaction"] == sums["service"] + sums["schedule_lag"]


def test_more_clients_than_the_server_takes(server: Server, load: Load, finished: Finished) -> None:
    """Those that get no session end, each with the server's reason; the others continue."""
    with server.role("connection limit 3") as role:
        to = server.connection(user=role, database="postgres")
        result = finished(load(to, "select pg_sleep(0.3);", clients=6, duration_s=1.0, reconnect=True))
    (error,) = result.errors
    assert (error.kind, error.sqlstate) == ("connect", "53300")
    assert result.clients_aborted == error.count >= 3
    assert result.totals.done >= 3


def test_what_is_cut_off_is_cancelled_on_the_server(server: Server, load: Load) -> None:
    script = "select pg_sleep(600);"
    run = load(server.connection(), script, clients=3, threads=2, duration_s=600.0, stop_timeout_s=0.0)
    run.start()
    sleeping = "select 1 from pg_stat_activity where query like 'select pg_sleep(600)%' and state = 'active'"
    while len(server.execute(sleeping)) < 3:
        assert not run.wait(0.01)
    run.stop()
    assert run.wait(10.0)
    result = LoadResult.model_validate_json(run.result())
    assert (result.totals.open, result.errors) == (3, ())
    wait_until(lambda: not server.execute(sleeping))


def fetch(run: _native.LoadRun) -> list[dict[str, Any]]:
    progress = json.loads(run.progress())
    assert progress["events_dropped"] == 0
    return progress["events"]


def test_an_error_ends_its_client_if_asked_for(server: Server, load: Load, finished: Finished) -> None:
    script = "select 1;\nselect 1 / (1 - :client_id);\n"
    run = load(server.connection(), script, clients=2, duration_s=0.5, abort_on_error=True)
    result = finished(run)
    assert (result.clients_aborted, result.totals.failed) == (1, 1)
    assert result.totals.done > 0
    (event,) = fetch(run)
    assert (event["kind"], event["client"], event["script"], event["command"]) == ("aborted", 1, 0, 1)
    assert (event["sqlstate"], event["tries"]) == ("22012", 1)
    assert "division by zero" in event["message"]


def test_a_client_that_ends_ends_the_run_if_asked_for(server: Server, load: Load) -> None:
    run = load(
        server.connection(),
        "\\sleep 1 ms\nselect 1 / (1 - :client_id);\n",
        clients=2,
        threads=2,
        duration_s=600.0,
        abort_on_error=True,
        exit_on_abort=True,
    )
    run.start()
    assert run.wait(10.0)
    result = LoadResult.model_validate_json(run.result())
    assert (result.clients_aborted, result.interrupted) == (1, True)


def test_every_error_is_reported_if_asked_for(server: Server, load: Load, finished: Finished) -> None:
    server.execute(
        "create or replace function fail() returns void language plpgsql as"
        " $$ begin raise exception using errcode = '40001'; end $$"
    )
    run = load(server.connection(), "select fail();", max_tries=3, transactions_per_client=2, verbose_errors=True)
    finished(run)
    events = fetch(run)
    assert [(event["kind"], event["tries"]) for event in events] == [
        ("retried", 1),
        ("retried", 2),
        ("failed", 3),
    ] * 2
    assert all(event["sqlstate"] == "40001" and event["latency_ns"] > 0 for event in events)
    quiet = load(server.connection(), "select fail();", transactions_per_client=2)
    finished(quiet)
    assert fetch(quiet) == []


def test_tries_end_with_the_latency_limit(server: Server, load: Load, finished: Finished) -> None:
    """As many tries as fit into 50 ms, each of which takes 20 ms."""
    server.execute(
        "create or replace function fail_slowly() returns void language plpgsql as"
        " $$ begin perform pg_sleep(0.02); raise exception using errcode = '40P01'; end $$"
    )
    run = load(
        server.connection(), "select fail_slowly();", max_tries=0, transactions_per_client=2, latency_limit_s=0.05
    )
    result = finished(run)
    assert result.measured.failed == result.measured.deadlock_failures == 2
    assert 2 <= result.measured.retries <= 4
    (error,) = result.errors
    assert error.count == 2 + result.measured.retries
    assert error.retried == result.measured.retries


def test_an_interrupted_wait_for_connections_ends(server: Server, load: Load) -> None:
    """A stop while clients connect for their transactions."""
    run = load(server.connection(), "select 1;", clients=8, threads=2, duration_s=600.0, reconnect=True)
    run.start()
    threading.Timer(0.3, run.stop).start()
    assert run.wait(10.0)
    result = LoadResult.model_validate_json(run.result())
    assert result.interrupted
    assert result.totals.done > 0


@pytest.mark.long
@pytest.mark.parametrize("rate", [None, {"arrivals": "uniform", "stages": [{"from_tps": 200, "to_tps": 200}]}])
def test_lost_connections_are_opened_again_at_a_bounded_rate(
    installations: dict[str, Installation], owner: Owner, load: Load, finished: Finished, rate: dict[str, Any] | None
) -> None:
    """Each loss fails the transaction that it met; attempts that fail are errors, and neither transactions nor latencies."""
    server = Server(installations["debian"], owner)
    try:
        server.start()
        run = load(
            server.connection(), "select 1;", clients=3, threads=2, duration_s=3.0, retry_connect_s=0.05, rate=rate
        )
        run.start()
        assert not run.wait(0.5)
        server.stop(signal.SIGQUIT)
        assert not run.wait(0.5)
        server.start()
        assert run.wait(20.0)
        result = LoadResult.model_validate_json(run.result())
    finally:
        server.remove()
    counts = {
        kind: sum(error.count for error in result.errors if error.kind == kind)
        for kind in ("connect", "connection_lost")
    }
    assert result.clients_aborted == 0
    assert counts["connection_lost"] == 3 and counts["connect"] >= 3 * 5
    assert result.totals.failed <= 3, "a client that was idle has lost no transaction"
    totals = result.totals
    assert totals.scheduled == totals.done + totals.failed + totals.skipped + totals.open
    after = [second for second in result.series if second.second >= 2]
    assert sum(second.done for second in after) > 0
    (transaction,) = [one for one in result.histograms if one.scope == "transaction"]
    assert transaction.count == totals.done
    if rate is not None:
        assert totals.scheduled == pytest.approx(600, abs=5), "what was due meanwhile is not forgotten"
