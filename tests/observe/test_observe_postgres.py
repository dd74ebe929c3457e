"""PostgreSQL's views on real servers: each version gives what it has, says what it lacks, and counts what was done."""

import re

import pytest
from watching import ask, client, major, wait_until, watching

from plinth.observe.views import VIEWS, build_query
from plinth.server import Cluster

TRANSACTIONS = 137


def test_every_version_gives_its_metrics_and_says_what_it_lacks(every_server: Cluster) -> None:
    with client(every_server) as control:
        control.execute("CREATE TABLE IF NOT EXISTS written (payload text)")
        control.execute("INSERT INTO written SELECT repeat('x', 100) FROM generate_series(1, 5000)")
    with watching(every_server) as watched:
        pass
    version, shown = major(every_server), dict(ask(every_server, "SELECT name, setting FROM pg_settings"))
    for view in VIEWS:
        query = build_query(view, version, shown)
        given = {metric for _, metric in watched.named(view.source)}
        # A sparse view may have nothing to tell; what is null everywhere would be missing without a word.
        assert given == set(query.metrics) or (view.sparse and given <= set(query.metrics)), view.source
        for part, reason in query.missing.items():
            assert watched.reason(part) == reason
    assert watched.grown("pg_wal", "all", "insert_lsn_bytes") >= 0
    if version >= 16:
        assert watched.values("pg_io", "client backend/relation/normal", "hits")[-1] > 0
    if version >= 18:
        assert watched.values("pg_io", "client backend/wal/normal", "writes")[-1] > 0


def committed_by(cluster: Cluster, transactions: int) -> float:
    """By how much xact_commit grows for a session with so many transactions, from its start to its end."""
    with client(cluster, "template1") as control, watching(cluster) as watched:
        load = client(cluster)
        for _ in range(transactions):
            load.execute("SELECT 1", prepare=False)  # to prepare it would be a transaction more
        load.close()  # a session tells of its last transactions when it ends
        gone = "SELECT numbackends FROM pg_stat_database WHERE datname = 'postgres'"
        wait_until(lambda: control.execute(gone).fetchall() == [(0,)], "the session's end")
    assert not watched.seen.shares_database
    return watched.grown("pg_database", "postgres", "xact_commit")


def test_transactions_are_counted_exactly_and_ours_are_not(every_server: Cluster) -> None:
    assert committed_by(every_server, TRANSACTIONS) - committed_by(every_server, 0) == TRANSACTIONS


def test_wal_grows_by_what_the_server_itself_measured(every_server: Cluster) -> None:
    def position(control: object) -> int:
        return int(control.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()[0])  # type: ignore[attr-defined]

    with client(every_server) as control:
        control.execute("CREATE TABLE IF NOT EXISTS logged (payload text)")
        before = position(control)
        with watching(every_server) as watched:
            before_watching = position(control)
            control.execute("INSERT INTO logged SELECT repeat('x', 100) FROM generate_series(1, 10000)")
            after = position(control)
        at_end = position(control)
    grown = watched.grown("pg_wal", "all", "insert_lsn_bytes")
    assert after - before_watching <= grown <= at_end - before
    assert grown > 1_000_000


def test_waits_are_told_by_event_and_ours_are_not_among_them(every_server: Cluster) -> None:
    with client(every_server) as holder, client(every_server) as waiter, client(every_server) as idle:
        holder.execute("SELECT pg_advisory_lock(1)")
        idle.execute("BEGIN")
        waiter.execute("SET lock_timeout = '1s'")
        with watching(every_server) as watched:
            with pytest.raises(Exception, match="lock timeout"):
                waiter.execute("SELECT pg_advisory_lock(1)")
    waits = watched.named("pg_wait")
    locked = [sample.value for sample in waits["Lock:advisory", "backends"]]
    assert max(locked) == 1
    assert locked[-1] == 0, "an event that was seen before is shown as zero when nobody waits for it"
    assert set(waits) == {("Lock:advisory", "backends")}, "nobody else was active"
    assert set(watched.values("pg_activity", "all", "idle_in_transaction")) == {1}
    assert set(watched.values("pg_activity", "all", "idle")) <= {1, 2}


def test_checkpoints_are_events_from_the_log(every_server: Cluster) -> None:
    with client(every_server) as control:
        control.execute("CREATE TABLE IF NOT EXISTS dirty (n int)")
        control.execute("INSERT INTO dirty SELECT generate_series(1, 10000)")
        with watching(every_server, log_path=every_server.layout.log_path) as watched:
            control.execute("CHECKPOINT")
            wait_until(lambda: watched.live_growth("pg_checkpointer", "num_requested") > 0, "the checkpoint's count")
    events = {event.kind: event for event in watched.seen.events}
    assert [event.kind for event in watched.seen.events] == ["checkpoint_start", "checkpoint_end"]
    assert "starting: " in events["checkpoint_start"].text
    written = re.search(r"wrote (\d+) buffers", events["checkpoint_end"].text)
    assert written is not None and int(written[1]) >= 10000 * 32 // 8192
    assert watched.grown("pg_checkpointer", "all", "num_requested") == 1
    pages = watched.grown("pg_checkpointer", "all", "buffers_written")
    assert 0 <= int(written[1]) - pages <= 10, "the log counts the few SLRU pages too"


def test_checkpoints_are_counted_where_there_is_no_log(every_server: Cluster) -> None:
    with client(every_server) as control:
        with watching(every_server) as watched:
            control.execute("CHECKPOINT")
            wait_until(lambda: watched.live_growth("pg_checkpointer", "num_requested") > 0, "the checkpoint's count")
    assert [event.text for event in watched.seen.events if event.kind == "checkpoint_start"] == ["counted: requested"]


def test_a_log_that_cannot_be_read_is_a_gap_and_checkpoints_are_counted(server: Cluster) -> None:
    with client(server) as control, watching(server, log_path=server.layout.log_path.with_suffix(".none")) as watched:
        control.execute("CHECKPOINT")
        wait_until(lambda: watched.live_growth("pg_checkpointer", "num_requested") > 0, "the checkpoint's count")
    assert "No such file" in watched.reason("server log")
    assert "checkpoint_start" in {event.kind for event in watched.seen.events}
