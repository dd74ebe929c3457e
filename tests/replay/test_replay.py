"""Replays of recorded loads on a real server: every statement is accounted for, and the data are as when it was recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from native_server import LOGGING, Server
from plinth.fleet.executors import executor_of
from plinth.fleet.load import FleetLoad
from plinth.load import Load, LoadConfig, builtin, run
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError
from plinth.model.fleet import FleetSpec
from plinth.model.load import LoadResult
from plinth.model.load_config import Rate, Recording
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.workload.server_log import Chosen, log_files, prepare_replay
from servers import all_installations
from waiting import wait_until

CLIENTS, TRANSACTIONS = 4, 50
STATEMENTS = 7 * CLIENTS * TRANSACTIONS
"""Of pgbench's TPC-B: BEGIN, five statements, END."""
TABLES = """
DROP TABLE IF EXISTS pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history;
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches VALUES (1, 0);
INSERT INTO pgbench_tellers SELECT n, 1, 0 FROM generate_series(1, 10) n;
INSERT INTO pgbench_accounts SELECT n, 1, 0 FROM generate_series(1, 100000) n;
"""
SUMS = "SELECT count(*), sum(delta), (SELECT sum(abalance) FROM pgbench_accounts) FROM pgbench_history"


@pytest.fixture(scope="module", params=["18", pytest.param("debian", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    owner = server_owner()
    server = Server(all_installations(owner, Runner())[request.param], owner, LOGGING)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def connection(server: Server, application: str) -> Connection:
    return Connection(
        host=str(server.folder), port=server.port, user="postgres", database="postgres", application_name=application
    )


def control(server: Server) -> psycopg.Connection[Any]:
    string = f"host={server.folder} port={server.port} user=postgres dbname=postgres application_name=control"
    return psycopg.connect(string, autocommit=True)


def fresh(server: Server) -> None:
    with control(server) as session:
        session.execute(TABLES.encode())


def sums(server: Server) -> tuple[Any, ...]:
    with control(server) as session:
        return session.execute(SUMS.encode()).fetchone() or ()


def prepare(server: Server, application: str, statements: int, output: Path) -> Path:
    """The replay file of an application's sessions, once the server has logged the end of all of them."""

    def is_whole() -> bool:
        log = server.data / "log" / "postgresql.json"
        written = prepare_replay(log_files([log]), output, chosen=Chosen(applications=(application,)), overwrite=True)
        check = written.check
        return written.written.statements == statements and check.sessions.with_end == check.sessions.count

    wait_until(is_whole, f"{statements} statements of {application} in the log")
    return output


@pytest.fixture(scope="module")
def recorded(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Any, ...]]:
    """A replay file of half a second of pgbench's TPC-B, however fast the machine is, and what the tables held after it."""
    fresh(server)
    config = LoadConfig(
        connection=connection(server, "recorded"),
        scripts=[builtin("tpcb-like")],
        clients=CLIENTS,
        threads=2,
        transactions_per_client=TRANSACTIONS,
        rate=Rate.constant(2.0 * CLIENTS * TRANSACTIONS),
        variables={"scale": "1"},
    )
    assert run(config).result.totals.done == CLIENTS * TRANSACTIONS
    after = sums(server)
    output = tmp_path_factory.mktemp("replay") / "tpcb.replay"
    return prepare(server, "recorded", STATEMENTS, output), after


def replay(server: Server, file: Path, clients: int = CLIENTS, threads: int = 2, **options: Any) -> LoadResult:
    limits = {name: options.pop(name) for name in ("duration_s", "warmup_s") if name in options}
    recording = Recording(file=str(file), **options)
    config = LoadConfig(
        connection=connection(server, "replayed"), replay=recording, clients=clients, threads=threads, **limits
    )
    return run(config).result


WAYS = {
    "at its own speed": {"speed": 1.0},
    "four times as fast": {"speed": 4.0},
    "as fast as sessions can": {},
    "through two connections": {"pooled": True, "clients": 2},
    "through one connection, as recorded": {"pooled": True, "clients": 1, "threads": 1, "speed": 2.0},
    "by one thread": {"threads": 1, "speed": 2.0},
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_each_statement_is_replayed_once(server: Server, recorded: tuple[Path, tuple[Any, ...]], way: str) -> None:
    file, after = recorded
    fresh(server)
    result = replay(server, file, **WAYS[way])
    assert result.replay is not None
    assert result.errors == ()
    assert (result.totals.scheduled, result.totals.done) == (STATEMENTS, STATEMENTS)
    assert (result.replay.statements, result.replay.not_reached) == (STATEMENTS, 0)
    assert sums(server) == after
    pool = WAYS[way].get("clients") if "pooled" in WAYS[way] else None
    assert result.replay.connections == (pool or CLIENTS)
    assert not result.interrupted


@pytest.mark.long
@pytest.mark.parametrize(
    "way", [{"speed": 2.0}, {}, {"pooled": True}], ids=["at a speed", "as fast as sessions can", "through a pool"]
)
def test_machines_of_a_fleet_share_the_sessions(
    server: Server, recorded: tuple[Path, tuple[Any, ...]], way: dict[str, Any], tmp_path: Path
) -> None:
    file, after = recorded
    fresh(server)
    config = LoadConfig(
        connection=connection(server, "replayed"), replay=Recording(file=str(file), **way), clients=CLIENTS, threads=1
    )
    executor = executor_of(FleetSpec(executor="local", machines=2), Runner(), LogFile(tmp_path / "agents.log"))
    load = FleetLoad(config, executor)
    load.start()
    while not load.wait(0.2):
        load.progress()
    result = load.result()
    assert sums(server) == after
    assert result.totals.done == STATEMENTS and result.replay is not None
    assert (result.replay.statements, result.replay.not_reached) == (STATEMENTS, 0)
    assert result.fleet is not None
    assert min(one.measured.done for one in result.fleet.machines) > 0, "each had sessions of its own"
    options: dict[str, Any] = {"speed": 2.0} | way
    alone = replay(server, file, **options)
    assert [script.name for script in result.scripts] == [script.name for script in alone.scripts]


def test_a_recording_that_an_agent_cannot_keep_is_told(
    server: Server, recorded: tuple[Path, tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = recorded
    config = LoadConfig(
        connection=connection(server, "replayed"), replay=Recording(file=str(tmp_path / "absent")), clients=2
    )
    executor = executor_of(FleetSpec(executor="local", machines=2), Runner(), LogFile(tmp_path / "agents.log"))
    with pytest.raises(PlinthError, match="cannot read the replay file"):
        FleetLoad(config, executor).start()
    cut = tmp_path / "cut.replay"
    cut.write_bytes(file.read_bytes()[:-1])
    config = config.model_copy(update={"replay": Recording(file=str(cut))})
    with pytest.raises(PlinthError, match="cut off"):
        FleetLoad(config, executor).start()


def test_figures_are_by_class_and_next_to_those_of_the_recording(
    server: Server, recorded: tuple[Path, tuple[Any, ...]]
) -> None:
    file, _ = recorded
    fresh(server)
    result = replay(server, file, speed=2.0, classes=4)
    each = CLIENTS * TRANSACTIONS
    assert sorted(one.weight for one in result.scripts) == [each] * 4 + [3 * each]
    assert {one.name for one in result.scripts} >= {"(other statements)"}
    by_scope: dict[str, dict[str | None, int]] = {}
    for one in result.histograms:
        by_scope.setdefault(one.scope, {})[one.script] = one.count
    done = {one.name: one.measured.done for one in result.scripts}
    for scope in ("transaction", "service", "schedule_lag", "recorded"):
        assert by_scope[scope] == done, scope
    assert by_scope["connect"] == {None: CLIENTS - 2}, "each thread had one of them before the beginning"


def test_statements_are_due_when_they_were_recorded(server: Server, recorded: tuple[Path, tuple[Any, ...]]) -> None:
    """A server that stands still for a while makes all statements late that were due meanwhile."""
    file, _ = recorded
    fresh(server)
    config = LoadConfig(
        connection=connection(server, "replayed"),
        replay=Recording(file=str(file), speed=0.2),
        clients=CLIENTS,
        threads=1,
    )
    load = Load(config)
    load.start()
    with control(server) as session:
        wait_until(lambda: load.progress().done > 20, "the replay is under way")
        with session.transaction():
            session.execute("LOCK pgbench_branches IN ACCESS EXCLUSIVE MODE")
            session.execute("SELECT pg_sleep(0.5)")
    assert load.wait(60)
    result = load.result()
    assert result.errors == () and result.totals.done == STATEMENTS
    lags = [one.max_ns for one in result.histograms if one.scope == "schedule_lag"]
    assert max(lags) > 100_000_000


def test_what_a_read_only_session_refuses_is_a_refused_write(
    server: Server, recorded: tuple[Path, tuple[Any, ...]]
) -> None:
    file, _ = recorded
    fresh(server)
    result = replay(server, file, read_only=True)
    assert result.replay is not None
    each = CLIENTS * TRANSACTIONS
    # The first statement of a transaction is refused, and those after it fail with the transaction: END is answered by ROLLBACK.
    totals = result.totals
    assert (totals.done, totals.failed, totals.skipped) == (each, 6 * each, 0)
    assert result.replay.refused_writes == 6 * each
    assert {one.kind for one in result.errors} == {"refused_write"}
    assert {one.sqlstate for one in result.errors} == {"25006", "25P02", None}
    assert sums(server)[0] == 0


def test_a_replay_that_ends_early_says_what_it_did_not_reach(
    server: Server, recorded: tuple[Path, tuple[Any, ...]]
) -> None:
    file, _ = recorded
    fresh(server)
    result = replay(server, file, speed=0.1, duration_s=3.0)
    assert result.replay is not None
    assert 0 < result.totals.done < STATEMENTS
    assert result.totals.scheduled + result.replay.not_reached == STATEMENTS
    assert result.measured_ns < 8e9


def test_a_session_that_is_ended_is_opened_again(server: Server, recorded: tuple[Path, tuple[Any, ...]]) -> None:
    file, _ = recorded
    fresh(server)
    config = LoadConfig(
        connection=connection(server, "replayed"),
        replay=Recording(file=str(file), speed=0.2),
        clients=CLIENTS,
        threads=2,
    )
    load = Load(config)
    load.start()
    with control(server) as session:
        wait_until(lambda: load.progress().done > 20, "the replay is under way")
        ended = session.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'replayed'"
        ).fetchone()
    assert load.wait(60)
    result = load.result()
    assert result.replay is not None and ended is not None and ended[0] > 0
    assert result.totals.scheduled == STATEMENTS
    assert result.totals.done + result.totals.failed == STATEMENTS
    assert result.replay.connections > CLIENTS
    assert "connection_lost" in {one.kind for one in result.errors}


def test_what_failed_when_it_was_recorded_fails_again(server: Server, tmp_path: Path) -> None:
    def work(application: str) -> None:
        string = f"host={server.folder} port={server.port} user=postgres dbname=postgres application_name={application}"
        with psycopg.connect(string, autocommit=True) as client:
            client.execute("DROP TABLE IF EXISTS goods")
            client.execute("CREATE TABLE goods (id int PRIMARY KEY, name text)")
            client.execute("INSERT INTO goods VALUES (%s, %s)", (1, 'it\'s\n\ttwo "lines"'))
            client.execute("INSERT INTO goods VALUES (%s, %s)", (2, None))
            for number in range(4):
                client.execute("SELECT name FROM goods WHERE id = %b", (number,), prepare=True)
            with pytest.raises(psycopg.errors.UniqueViolation):
                client.execute("INSERT INTO goods VALUES (%s, %s)", (1, "again"))
            with pytest.raises(psycopg.errors.SyntaxError):
                client.execute("SELEC 1")
            client.execute("DEALLOCATE ALL")
            client.execute("SELECT name FROM goods WHERE id = %b", (1,), prepare=True)
            client.execute("SELECT 'ä'; SELECT 2")
            with client.cursor() as cursor, cursor.copy("COPY goods TO STDOUT") as rows:
                assert len(list(rows)) == 2

    work("failing")
    with control(server) as session:
        before = session.execute("TABLE goods").fetchall()
    statements = 2 + 2 + 4 + 1 + 1 + 2 + 1 + 1 + 1  # psycopg says DEALLOCATE ALL once more
    file = prepare(server, "failing", statements, tmp_path / "a.replay")
    result = replay(server, file, clients=1, threads=1, speed=1.0)
    assert result.replay is not None
    assert (result.totals.done, result.totals.failed) == (statements - 2, 2)
    assert result.replay.failed_as_recorded == 2
    assert {one.kind for one in result.errors} == {"failed_as_recorded"}
    with control(server) as session:
        assert session.execute("TABLE goods").fetchall() == before
        session.execute("DROP TABLE goods")
    # What succeeded when it was recorded, and fails now, is an error of the replay.
    with control(server) as session:
        session.execute("CREATE VIEW goods AS SELECT 1 AS id, 'one' AS name")
    result = replay(server, file, clients=1, threads=1)
    with control(server) as session:
        session.execute("DROP VIEW goods")
    assert result.replay is not None
    assert result.totals.failed > 0
    assert {one.sqlstate for one in result.errors} >= {"42809"}
    assert sum(one.count for one in result.errors) == result.totals.failed


OUTCOMES: dict[str, tuple[list[str], str, int, set[tuple[str, str | None]]]] = {
    # What is recorded, what is changed before the replay, how many statements are done then, and kinds and codes of the others.
    "COMMIT": (
        ["BEGIN", "SELECT a FROM t", "COMMIT"],
        "DROP TABLE t",
        1,
        {("sql", "42P01"), ("sql", None)},
    ),
    "END": (["BEGIN", "SELECT a FROM t", "END"], "DROP TABLE t", 1, {("sql", "42P01"), ("sql", None)}),
    "COMMIT AND CHAIN": (
        ["BEGIN", "SELECT a FROM t", "COMMIT AND CHAIN", "SELECT 1", "COMMIT"],
        "DROP TABLE t",
        3,
        {("sql", "42P01"), ("sql", None)},
    ),
    "a COMMIT of several": (
        ["BEGIN", "SELECT a FROM t", "COMMIT; SELECT 1"],
        "DROP TABLE t",
        1,
        {("sql", "42P01"), ("sql", None)},
    ),
    "PREPARE TRANSACTION outside of a transaction": (["PREPARE TRANSACTION 'p'"], "", 0, {("sql", None)}),
    "COMMIT outside of a transaction": (["COMMIT"], "", 1, set()),
    "ROLLBACK": (["BEGIN", "SELECT a FROM t", "/* COMMIT */ rollback"], "DROP TABLE t", 2, {("sql", "42P01")}),
    "ABORT": (["BEGIN", "SELECT a FROM t", "ABORT"], "DROP TABLE t", 2, {("sql", "42P01")}),
    "ROLLBACK TO SAVEPOINT": (
        ["BEGIN", "SAVEPOINT s", "SELECT a FROM t", "ROLLBACK TO SAVEPOINT s", "COMMIT"],
        "DROP TABLE t",
        4,
        {("sql", "42P01")},
    ),
    "RELEASE SAVEPOINT": (
        ["BEGIN", "SAVEPOINT s", "SELECT a FROM t", "RELEASE SAVEPOINT s", "ROLLBACK"],
        "DROP TABLE t",
        3,
        {("sql", "42P01"), ("sql", "25P02")},
    ),
    "several rollbacks": (["BEGIN; ROLLBACK; BEGIN; ROLLBACK"], "", 1, set()),
    "a deferred constraint": (
        ["BEGIN", "INSERT INTO d VALUES (1)", "COMMIT"],
        "INSERT INTO d VALUES (1)",
        2,
        {("sql", "23505")},
    ),
    "an ambiguous function": (
        ["SELECT twice('1')"],
        "CREATE FUNCTION twice(date) RETURNS int LANGUAGE sql RETURN 2",
        0,
        {("refused", "42725")},
    ),
    "an absent function": (["SELECT twice('1')"], "DROP FUNCTION twice(int)", 0, {("refused", "42883")}),
    "a value of another type": (
        ["INSERT INTO v VALUES ('one')"],
        "DROP TABLE v; CREATE TABLE v (a int)",
        0,
        {("refused", "22P02")},
    ),
    "a notice": (["DO $$BEGIN RAISE NOTICE 'ROLLBACK'; END$$"], "", 1, set()),
}
SCHEMA = """
DROP TABLE IF EXISTS t, d, v; DROP FUNCTION IF EXISTS twice(int), twice(date);
CREATE TABLE t (a int); CREATE TABLE v (a text); CREATE TABLE d (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN 2 * $1;
"""


@pytest.mark.parametrize("case", OUTCOMES)
def test_the_outcome_is_what_the_server_did(server: Server, tmp_path: Path, case: str) -> None:
    statements, change, done, failures = OUTCOMES[case]
    application = f"outcome-{list(OUTCOMES).index(case)}"
    with control(server) as session:
        session.execute(SCHEMA.encode())
    string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
    with psycopg.connect(string, autocommit=True, application_name=application) as client:
        for statement in statements:
            client.pgconn.exec_(statement.encode())
    file = prepare(server, application, len(statements), tmp_path / "a.replay")
    with control(server) as session:
        session.execute(SCHEMA.encode())
        session.execute(change.encode())
    result = replay(server, file, clients=1, threads=1)
    totals = result.totals
    assert (totals.done, totals.failed, totals.skipped) == (done, len(statements) - done, 0)
    assert {(one.kind, one.sqlstate) for one in result.errors} == failures
    assert sum(one.count for one in result.histograms if one.scope == "transaction") == done


def test_sessions_are_opened_and_closed_as_recorded(server: Server, tmp_path: Path) -> None:
    string = f"host={server.folder} port={server.port} user=postgres dbname=postgres application_name=three"
    with psycopg.connect(string, autocommit=True) as first:
        first.execute("SELECT 1")
        with psycopg.connect(string, autocommit=True) as second:
            second.execute("SELECT 2")
        first.execute("SELECT pg_sleep(0.1)")  # times of a log have milliseconds
        with psycopg.connect(string, autocommit=True) as third:
            third.execute("SELECT 3")
        first.execute("SELECT 4")
    file = prepare(server, "three", 5, tmp_path / "a.replay")
    for speed in (1.0, None):
        result = replay(server, file, clients=2, threads=1, speed=speed)
        assert result.replay is not None
        assert (result.totals.done, result.replay.connections) == (5, 3)
        assert result.replay.connections_at_once == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "no replay file"), (b"PLINTHRP\x09\0\0\0" + bytes(100), "another version")],
)
def test_another_file_is_refused_before_anything_is_connected(tmp_path: Path, content: bytes, said: str) -> None:
    from plinth.model.errors import UsageError

    file = tmp_path / "a.replay"
    file.write_bytes(content)
    nowhere = Connection(host="/nowhere", port=1, user="a", database="b")
    with pytest.raises(UsageError, match=said):
        Load(LoadConfig(connection=nowhere, replay=Recording(file=str(file))))
