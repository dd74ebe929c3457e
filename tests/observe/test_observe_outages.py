"""Servers that die, restart or hang while they are observed: gaps, while the host is still observed."""

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from plinth.observe.processes import RunProcesses
from plinth.observe.views import VIEWS
from plinth.server.server import LocalServer
from waiting import wait_until
from watching import INTERVAL_S, ask, client, watching

SERVER_SOURCES = {view.source for view in VIEWS if min(view.relations) <= 18}
OBSERVERS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'plinth observer%'"


@pytest.fixture
def cluster(breakable: LocalServer) -> LocalServer:
    if not breakable.alive():
        breakable.start(breakable.settings)
    return breakable


def test_a_killed_server_is_a_gap_and_the_host_is_still_observed(cluster: LocalServer) -> None:
    with watching(cluster) as watched:
        cluster.crash()
        killed_ns = time.monotonic_ns() - watched.started_ns
        watched.wait_for_readings("host_cpu", 5)
    after = {sample.source for sample in watched.seen.samples if sample.t_ns > killed_ns + 2 * INTERVAL_S * 1e9}
    assert after >= {"host_cpu", "host_memory", "host", "device", "process_cpu"}
    assert not after.intersection(SERVER_SOURCES), "nothing is made up for a dead server"
    lost = " ".join(gap.what for gap in watched.seen.gaps if "(from " in gap.what)
    assert all(source in lost for source in SERVER_SOURCES)
    assert "has ended" in watched.reason("process_cpu: the server's processes")
    assert "gap" in {event.kind for event in watched.seen.events}
    engine = [s.t_ns for s in watched.seen.samples if s.source == "process_cpu" and s.object == "load engine"]
    assert engine[-1] > killed_ns


def test_after_a_crash_restart_the_gap_has_an_end(cluster: LocalServer) -> None:
    with client(cluster) as victim, watching(cluster) as watched:
        before = watched.observer._session.backend_pid
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        wait_until(
            lambda: watched.observer._session.backend_pid not in (None, before), "the observer's return to the server"
        )
        wait_until(lambda: "commits_per_s" in watched.observer.latest(), "two readings after that")
    gap = next(gap for gap in watched.seen.gaps if "pg_wait" in gap.what)
    assert " until " in gap.what
    assert [event.kind for event in watched.seen.events if "pg_wait" in event.text] == ["gap", "gap_end"]
    assert watched.values("process_cpu", "backends", "processes")[-1] == 0, "the observer's new backend is not one"


def test_a_server_that_does_not_answer_holds_up_neither_the_host_nor_the_end(server: LocalServer) -> None:
    with watching(server) as watched:
        stopped = [pid for (pid,) in ask(server, OBSERVERS)]
        assert len(stopped) == 3
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            watched.wait_for_readings("host_cpu", 5)
            began = time.monotonic()
            watched.observation = watched.observer.stop()
            assert time.monotonic() - began < 4
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
    missed = next(gap for gap in watched.seen.gaps if " readings of the server" in gap.what)
    assert "took up to" in missed.reason
    assert watched.seen.cost_cpu_ns > 0


def test_a_server_that_is_not_there_yet_is_seen_when_it_comes(cluster: LocalServer) -> None:
    cluster.shutdown()
    with watching(cluster, processes=RunProcesses(None)) as watched:
        cluster.start(cluster.settings)
        wait_until(lambda: "commits_per_s" in watched.observer.latest(), "two readings of the database")
    gap = next(gap for gap in watched.seen.gaps if "pg_wait" in gap.what)
    assert "from" not in gap.what, "it was missing from the start"
    assert "is not known" in watched.reason("process_cpu: the server's processes")
    assert "not known" in watched.reason("cost of the observer's queries")


def test_no_room_for_the_observer_is_a_gap(cluster: LocalServer) -> None:
    few = {"max_connections": 1, "superuser_reserved_connections": 0, "max_wal_senders": 0}
    cluster.shutdown()
    cluster.start(cluster.settings | few)
    # The session by which the server was started may not have ended there yet.
    only: list[psycopg.Connection[Any]] = []

    def has_connected() -> bool:
        with suppress(psycopg.OperationalError):
            only.append(client(cluster))
        return bool(only)

    wait_until(has_connected)
    with only[0], watching(cluster) as watched:
        pass
    assert "too many clients" in watched.reason("pg_wait")


def test_a_database_of_its_own_is_not_the_loads(server: LocalServer) -> None:
    with client(server) as control:
        control.execute("CREATE DATABASE of_load")
    try:
        elsewhere = replace(server.connection, database="of_load")
        where = "SELECT datname FROM pg_stat_activity WHERE application_name LIKE 'plinth observer%' ORDER BY 1"
        for database, expected in (("of_load", "postgres"), ("postgres", "template1")):
            connection = replace(elsewhere, database=database)
            with watching(server, connection=connection) as watched:
                assert ask(server, where) == sorted([(database,), (expected,), (expected,)]), "one for its tables"
            assert not watched.seen.shares_database
    finally:
        with client(server) as control:
            control.execute("DROP DATABASE of_load")


def test_a_strangers_template1_is_left_alone(server: LocalServer) -> None:
    with watching(server, processes=RunProcesses(None)) as watched:
        with client(server, "postgres") as control:
            control.execute("CREATE DATABASE meanwhile")
            control.execute("DROP DATABASE meanwhile")
    assert watched.seen.shares_database


def test_a_statement_that_fails_costs_its_source_alone(server: LocalServer) -> None:
    """The load's database goes away: its row is missing, all other views continue."""
    with client(server) as control:
        control.execute("CREATE DATABASE short_lived")
        gone = replace(server.connection, database="short_lived")
        with watching(server, connection=gone) as watched:
            control.execute("DROP DATABASE short_lived WITH (FORCE)")
            watched.wait_for_readings("pg_wal", 3)
    assert watched.reason("pg_database (from") == "the view has no row of it"
    assert watched.grown("pg_wal", "all", "insert_lsn_bytes") > 0
