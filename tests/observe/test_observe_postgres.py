"""PostgreSQL's views on real servers: each version gives what it has, says what it lacks, and counts what was done."""

import itertools
import re
import time
from collections.abc import Callable, Iterator

import pytest
from psycopg import pq

from plinth.model.waits import ALL
from plinth.observe.postgres import view_sources
from plinth.observe.session import Session
from plinth.observe.views import SLOTS, SLOW_VIEWS, VIEWS, Extension, Traits, build_query
from plinth.server.server import LocalServer
from plinth.system.log_file import LogFile
from waiting import wait_until
from watching import INTERVAL_S, ask, client, major, watching

TRANSACTIONS = 137
NOT_LOADED = "pg_stat_statements is not in shared_preload_libraries"


def test_every_version_gives_its_metrics_and_says_what_it_lacks(every_server: LocalServer) -> None:
    with client(every_server) as control:
        control.execute("CREATE TABLE IF NOT EXISTS written (payload text)")
        control.execute("INSERT INTO written SELECT repeat('x', 100) FROM generate_series(1, 5000)")
    with watching(every_server) as watched:
        pass
    shown = dict(ask(every_server, "SELECT name, setting FROM pg_settings"))
    version = major(every_server)
    server = Traits(version, shown, {"pg_stat_statements": Extension(None, NOT_LOADED)})
    for view in (*VIEWS, *SLOW_VIEWS):
        query = build_query(view, server)
        given = {metric for _, metric in watched.named(view.source)}
        # A view may have no row to tell of; what is null everywhere would be missing without a word.
        assert given == set(query.metrics) or (view.absent != "gap" and given <= set(query.metrics)), view.source
        for part, reason in query.missing.items():
            assert watched.reason(part) == reason
    reported = " ".join(f"{gap.what}: {gap.reason}" for gap in watched.seen.gaps)
    assert not re.search("error|exist|denied", reported), "no query was refused"
    assert watched.values("pg_size", "postgres", "size_bytes")[0] > 1_000_000
    assert watched.values("pg_wal_files", "all", "size_bytes")[0] >= 16 << 20
    assert watched.values("pg_table", "public.written", "n_live_tup")[-1] >= 5000
    assert watched.grown("pg_wal", "all", "insert_lsn_bytes") >= 0
    if version >= 16:
        assert watched.values("pg_io", "client backend/relation/normal", "hits")[-1] > 0
    if version >= 18:
        assert watched.values("pg_io", "client backend/wal/normal", "writes")[-1] > 0


def wait_for_statistics(cluster: LocalServer) -> None:
    """Wait until the views include every session that has ended: before 15 a statistics collector writes them every 500 ms."""
    if major(cluster) >= 15:
        return
    with client(cluster, "template1") as control:
        now = control.execute("SELECT clock_timestamp()").fetchall()[0]
        written = "SELECT pg_stat_get_snapshot_timestamp() > %s"
        wait_until(lambda: control.execute(written, now).fetchall() == [(True,)], "statistics of a later time")


def committed_by(cluster: LocalServer, transactions: int) -> float:
    """By how much xact_commit grows for a session with so many transactions, from its start to its end."""
    wait_for_statistics(cluster)
    with client(cluster, "template1") as control, watching(cluster) as watched:
        load = client(cluster)
        for _ in range(transactions):
            load.execute("SELECT 1", prepare=False)  # to prepare it would be a transaction more
        load.close()  # a session reports its last transactions when it ends
        gone = "SELECT numbackends FROM pg_stat_database WHERE datname = 'postgres'"
        wait_until(lambda: control.execute(gone).fetchall() == [(1,)], "the session's end: only the observer's is left")
        wait_for_statistics(cluster)
    assert not watched.seen.shares_database
    return watched.grown("pg_database", "postgres", "xact_commit")


def test_transactions_are_counted_exactly_and_ours_are_not(every_server: LocalServer) -> None:
    assert committed_by(every_server, TRANSACTIONS) - committed_by(every_server, 0) == TRANSACTIONS


def test_wal_grows_by_what_the_server_itself_measured(every_server: LocalServer) -> None:
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


def test_waits_are_reported_by_event_and_ours_are_not_among_them(every_server: LocalServer) -> None:
    with client(every_server) as holder, client(every_server) as waiter, client(every_server) as idle:
        holder.execute("SELECT pg_advisory_lock(1)")
        idle.execute("BEGIN")
        waiter.execute("SET lock_timeout = '1s'")
        with watching(every_server) as watched:
            with pytest.raises(Exception, match="lock timeout"):
                waiter.execute("SELECT pg_advisory_lock(1)")
            watched.wait_for_readings("pg_wait", 2)
    waits = watched.named("pg_wait")
    locked = [sample.value for sample in waits["client backend/Lock:advisory", "backends"]]
    assert max(locked) == 1
    assert locked[-1] == 0, "an event that was seen before is shown as zero when nobody waits for it"
    # The moment before it waits, it may be seen at work.
    seen = {of for of, _ in waits if of.startswith("client backend/")} - {"client backend/CPU"}
    assert seen == {"client backend/Lock:advisory"}
    assert not [of for of, _ in waits if "Activity:" in of], "nobody waits who has nothing to do"
    assert set(watched.values("pg_wait", ALL, "idle_in_transaction")) == {1}
    assert all(1 <= idle <= 2 for idle in watched.values("pg_wait", ALL, "idle"))


def test_waits_are_looked_at_ten_times_as_often_as_they_are_reported(server: LocalServer) -> None:
    with client(server) as sleeper, watching(server) as watched:
        sleeper.execute("SELECT pg_sleep(0.55)")
    looks = watched.values("pg_wait", ALL, "looks")
    assert len(looks) <= 10, "one row for each interval of 100 ms"
    assert sum(looks) >= 3 * len(looks)
    asleep = watched.values("pg_wait", "client backend/Timeout:PgSleep", "backends")
    seen = sum(mean * count for mean, count in zip(asleep, looks, strict=True))
    assert round(seen, 6) == round(seen), "means over the looks, from which their sums can be had again"
    assert seen >= 0.4 * sum(looks)


def test_sessions_that_show_nothing_are_a_gap_and_no_smaller_sum(server: LocalServer) -> None:
    with client(server) as quiet, watching(server) as watched:
        watched.wait_for_readings("pg_wait", 2)
        quiet.execute("SET track_activities = off")
        blind_ns = time.monotonic_ns() - watched.started_ns
        watched.wait_for_readings("pg_wal", 5)
        quiet.execute("SET track_activities = on")
        watched.wait_for_readings("pg_wait", 2)
    assert watched.reason("pg_wait (from") == "track_activities is off in a session of a client backend"
    times = [sample.t_ns for sample in watched.named("pg_wait")[ALL, "idle"]]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) > 3 * INTERVAL_S * 1e9
    assert times[0] < blind_ns < times[-1]
    assert {min(1, round(idle)) for idle in watched.values("pg_wait", ALL, "idle")} == {1}


def standby_of(cluster: LocalServer) -> pq.abc.PGconn:
    """A connection as a standby has, for which the server is first told to take such."""
    rules = cluster.layout.data_directory / "pg_hba.conf"
    if "replication" not in rules.read_text():
        with rules.open("a") as file:
            file.write("local replication all trust\n")
        ask(cluster, "SELECT pg_reload_conf()")
    to = cluster.connection
    words = f"host='{to.host}' port={to.port} user='{to.user}' replication=true application_name=standby"
    made: list[pq.abc.PGconn] = []

    def connected() -> bool:
        made.append(pq.PGconn.connect(words.encode()))
        return made[-1].status == pq.ConnStatus.OK

    wait_until(connected, "a connection for replication")
    return made[-1]


def test_a_standby_a_slot_and_a_copy_under_way_are_reported(every_server: LocalServer) -> None:
    slot = "SELECT pg_create_physical_replication_slot('kept', true)"
    with client(every_server) as control, client(every_server) as copying:
        control.execute("CREATE TABLE IF NOT EXISTS streamed (payload text)")
        control.execute(slot)
        position = control.execute("SELECT pg_current_wal_lsn()").fetchall()[0][0]
        standby = standby_of(every_server)
        started = standby.exec_(f"START_REPLICATION SLOT kept PHYSICAL {position}".encode())
        assert started.status == pq.ExecStatus.COPY_BOTH, started.error_message
        with copying.cursor() as cursor, cursor.copy("COPY streamed FROM STDIN") as copy:
            copy.write("x\n" * 100_000)
            wait_until(
                lambda: (
                    ask(every_server, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == [(1,)]
                ),
                "the standby's stream",
            )
            with watching(every_server) as watched:
                pass
        standby.finish()
        gone = "SELECT count(*) FROM pg_replication_slots WHERE active"
        wait_until(lambda: control.execute(gone).fetchall() == [(0,)], "the end of the stream")
        control.execute("SELECT pg_drop_replication_slot('kept')")
    behind = {metric: samples for (of, metric), samples in watched.named("pg_replication").items() if "standby/" in of}
    assert behind["sent_behind_bytes"][-1].value >= 0
    assert watched.values("pg_slots", "kept", "active")[-1] == 1
    assert watched.values("pg_slots", "kept", "retained_bytes")[-1] >= 0
    copied = {of: samples for (of, metric), samples in watched.named("pg_progress").items() if metric == "bytes_done"}
    if major(every_server) >= 14:
        ((work, samples),) = copied.items()
        assert work.startswith("copy postgres ") and samples[-1].value > 0
    else:
        assert not copied


@pytest.fixture
def session(server: LocalServer) -> Iterator[Session]:
    session = Session(server.connection, local=True)
    yield session
    session.close()


def test_what_is_refused_of_queries_in_one_round_trip_takes_nothing_with_it(session: Session) -> None:
    refused = {"SELECT 1 / count(*) FROM pg_class WHERE false": "division by zero", "SELECT nothing": "does not exist"}
    for _ in range(2):  # the second time all that can be is prepared
        answers = session.query_all(["SELECT 1", *refused, "SELECT $1::text, NULL", "SELECT 2 WHERE false"])
        for sql, reason in refused.items():
            assert reason in str(answers.pop(sql))
        assert list(answers.values()) == [[("1",)], [("postgres", None)], []]


def test_what_is_seldom_there_is_found_a_few_ticks_after_it_came(session: Session, server: LocalServer) -> None:
    (slots,) = view_sources(session, [SLOTS])
    assert slots.read().readings == []
    with client(server) as control:
        control.execute("SELECT pg_create_physical_replication_slot('late', true)")
        try:
            found = [{reading.object for reading in slots.read().readings} for _ in range(6)]
        finally:
            control.execute("SELECT pg_drop_replication_slot('late')")
    assert found == [set()] * 4 + [{"late"}] * 2


def test_statements_are_reported_where_the_extension_is_loaded(start_server: Callable[..., LocalServer]) -> None:
    server = start_server("18", shared_preload_libraries="pg_stat_statements")
    with client(server) as load:
        with watching(server) as watched:
            for n in range(TRANSACTIONS):
                load.execute("SELECT %s::int + 1", (n,), prepare=False)
    ((of, calls),) = [
        (of, samples)
        for (of, metric), samples in watched.named("pg_statements").items()
        if "+ $" in of and metric == "calls"
    ]
    assert "SELECT $1::int + $2" in of
    assert calls[-1].value == TRANSACTIONS


def test_checkpoints_are_events_from_the_log(every_server: LocalServer) -> None:
    with client(every_server) as control:
        control.execute("CREATE TABLE IF NOT EXISTS dirty (n int)")
        control.execute("INSERT INTO dirty SELECT generate_series(1, 10000)")
        with watching(every_server, log=every_server.layout.log) as watched:
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


def test_checkpoints_are_counted_where_there_is_no_log(every_server: LocalServer) -> None:
    with client(every_server) as control:
        with watching(every_server) as watched:
            control.execute("CHECKPOINT")
            wait_until(lambda: watched.live_growth("pg_checkpointer", "num_requested") > 0, "the checkpoint's count")
    assert [event.text for event in watched.seen.events if event.kind == "checkpoint_start"] == ["counted: requested"]


def test_a_log_that_cannot_be_read_is_a_gap_and_checkpoints_are_counted(server: LocalServer) -> None:
    with (
        client(server) as control,
        watching(server, log=LogFile(server.layout.log.path.with_suffix(".none"))) as watched,
    ):
        control.execute("CHECKPOINT")
        wait_until(lambda: watched.live_growth("pg_checkpointer", "num_requested") > 0, "the checkpoint's count")
    assert "No such file" in watched.reason("server log")
    assert "checkpoint_start" in {event.kind for event in watched.seen.events}
