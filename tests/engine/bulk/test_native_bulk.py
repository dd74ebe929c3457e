"""The bulk loader: the rows that `pgbench -i` makes, by several streams, and every way not to get them."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from native_server import Server
from plinth import _native
from public_folder import PUBLIC

TABLES = """\
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)){0};
CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)){0};
CREATE TABLE pgbench_accounts (aid {1} NOT NULL, bid int, abalance int, filler char(84)){0}
"""
PIECE_ROWS = 100_000  # where nobody says which
NAMES = ("pgbench_branches", "pgbench_tellers", "pgbench_accounts")

Bulk = Callable[..., _native.BulkLoad]


class Database:
    """A database of the test's own on a server."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        server.execute(f"CREATE DATABASE {name}")

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(
            host=str(self.server.folder), port=self.server.port, user="postgres", dbname=self.name, autocommit=True
        ) as connection:
            cursor = connection.execute(sql)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def create_tables(self, tablespace: str = "", key: str = "int") -> None:
        for statement in TABLES.format(f" TABLESPACE {tablespace}" if tablespace else "", key).split(";"):
            self.execute(statement)

    def counts(self) -> list[int]:
        return [self.execute(f"SELECT count(*) FROM {table}")[0][0] for table in NAMES]

    def rows(self) -> list[tuple[Any, ...]]:
        """Everything in the tables, as digests, with what text does not show: NULL, and the blanks of an empty filler."""
        return [
            self.execute(
                f"SELECT count(*), md5(string_agg(t::text, ';' ORDER BY {key})), count(filler), "
                f"min(octet_length(filler)), max(octet_length(filler)) FROM {table} t"
            )[0]
            for table, key in zip(NAMES, ("bid", "tid", "aid"), strict=True)
        ]

    def remove(self) -> None:
        self.server.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    database = Database(server, "bulk")
    yield database
    database.remove()


@pytest.fixture
def bulk() -> Iterator[Bulk]:
    """Makes bulk loads; keywords are keys of the configuration. Those that still run at the end are stopped."""
    made: list[_native.BulkLoad] = []

    def make(connection: dict[str, Any], scale: int = 1, streams: int = 2, **changes: Any) -> _native.BulkLoad:
        generator = {"kind": "tpcb", "scale": scale, "fillfactor": None}
        config = {"connection": connection, "generator": generator, "streams": streams}
        made.append(_native.BulkLoad(json.dumps(config | changes)))
        return made[-1]

    yield make
    for run in made:
        run.stop()


def finished(run: _native.BulkLoad) -> dict[str, Any]:
    run.start()
    return ended(run)


def ended(run: _native.BulkLoad) -> dict[str, Any]:
    assert run.wait(60.0), "the load did not end"
    assert json.loads(run.progress())["finished"]
    return json.loads(run.result())


def under_way(run: _native.BulkLoad, rows: int = 100_000) -> _native.BulkLoad:
    """Starts a load and waits until it has sent some rows."""
    run.start()
    while (progress := json.loads(run.progress()))["rows_done"] < rows:
        assert not run.wait(0.01), run.result()
    assert not progress["finished"]
    return run


@pytest.mark.long
@pytest.mark.parametrize("streams", [1, 5])
def test_rows_are_those_of_pgbench(server: Server, database: Database, bulk: Bulk, streams: int) -> None:
    pgbench = [f"{server.installation.bindir}/pgbench", *server.where()]
    subprocess.run([*pgbench, "-i", "-q", "-s", "3", "-I", "dtg", database.name], check=True, stderr=subprocess.PIPE)
    wanted = database.rows()
    assert [count for count, *_ in wanted] == [3, 30, 300_000]
    database.execute("TRUNCATE pgbench_branches, pgbench_tellers, pgbench_accounts")

    run = bulk(server.connection(database=database.name), scale=3, streams=streams)
    result = finished(run)
    assert database.rows() == wanted
    assert (result["rows"], result["interrupted"], result["errors"]) == (300_033, False, [])
    progress = json.loads(run.progress())
    assert progress == {
        "rows_done": 300_033,
        "rows_total": 300_033,
        "bytes_sent": result["bytes_sent"],
        "streams_open": 0,
        "finished": True,
    }
    accounts = sum(len(f"{aid}\t{1 + (aid - 1) // 100_000}\t0\t\n") for aid in range(1, 300_001))
    assert accounts < result["bytes_sent"] < accounts * 1.01
    assert result["elapsed_ns"] > 0
    assert result["user_cpu_ns"] + result["system_cpu_ns"] < result["elapsed_ns"] * streams


def test_keys_may_be_bigint_and_streams_more_than_chunks(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables(key="bigint")
    result = finished(bulk(server.connection(database=database.name), streams=32))
    assert (result["rows"], result["errors"], database.counts()) == (100_011, [], [1, 10, 100_000])
    assert database.execute("SELECT sum(aid), count(DISTINCT aid) FROM pgbench_accounts") == [(5_000_050_000, 100_000)]


def test_stop_withdraws_what_is_under_way(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    run = under_way(bulk(server.connection(database=database.name), scale=2_000, streams=3))
    with pytest.raises(_native.EngineError, match="has not ended"):
        run.result()
    run.stop()
    result = ended(run)
    assert (result["interrupted"], result["errors"]) == (True, [])
    # Whole pieces are there already; of those under way nothing is.
    assert database.counts()[2] % PIECE_ROWS == 0
    assert result["rows"] == sum(database.counts()) < 200_022_000


def test_stop_after_the_end_changes_nothing(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    run = bulk(server.connection(database=database.name))
    run.start()
    assert run.wait(60.0)
    run.stop()
    result = json.loads(run.result())
    assert (result["rows"], result["interrupted"]) == (100_011, False)
    assert json.loads(run.result()) == result
    with pytest.raises(_native.EngineError, match="started before"):
        run.start()


def test_stop_does_not_wait_for_a_server_that_hangs(own_server: Server, bulk: Bulk) -> None:
    database = Database(own_server, "bulk")
    database.create_tables()
    run = under_way(bulk(own_server.connection(database="bulk"), scale=2_000))
    backends = [
        pid for (pid,) in own_server.execute("SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY pgbench%'")
    ]
    assert len(backends) == 2
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        run.stop()
        result = ended(run)
        assert 4.0 < time.monotonic() - began < 8.0
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)
    assert (result["interrupted"], result["errors"]) == (True, [])
    while own_server.execute("SELECT 1 FROM pg_stat_activity WHERE datname = 'bulk'"):
        pass  # the backends find that nobody is there any more
    assert database.counts()[2] % PIECE_ROWS == 0
    assert database.counts() != [0, 0, 0]


def test_a_servers_error_is_reported_once_and_the_others_withdraw(
    server: Server, database: Database, bulk: Bulk
) -> None:
    database.create_tables()
    database.execute("ALTER TABLE pgbench_accounts ADD CHECK (aid <> 777777)")
    result = finished(bulk(server.connection(database=database.name), scale=2_000, streams=4))
    (error,) = result["errors"]
    assert (error["kind"], error["sqlstate"], error["table"]) == ("sql", "23514", "pgbench_accounts")
    assert "violates check constraint" in error["message"]
    assert not result["interrupted"]
    assert database.counts()[2] % PIECE_ROWS == 0
    assert database.execute("SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN 700001 AND 800000") == [(0,)]


HISTORY = "CREATE TABLE pgbench_history (tid int, bid int, aid int)"


def test_replacing_leaves_the_new_rows_frozen(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    database.execute(HISTORY)
    database.execute("INSERT INTO pgbench_branches VALUES (7)")
    database.execute("INSERT INTO pgbench_history VALUES (1, 7, 1)")
    run = bulk(server.connection(database=database.name), streams=1, replace=True, freeze=True)
    assert finished(run)["rows"] == 100_011
    assert database.counts() == [1, 10, 100_000]
    assert database.execute("SELECT count(*) FROM pgbench_history") == [(0,)]
    database.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
    assert database.execute("SELECT count(*) FROM pg_visibility('pgbench_accounts') WHERE NOT all_frozen") == [(0,)]


def test_replacing_that_is_stopped_leaves_the_old_rows(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    database.execute(HISTORY)
    database.execute("INSERT INTO pgbench_branches VALUES (7)")
    run = under_way(bulk(server.connection(database=database.name), scale=100, streams=1, replace=True))
    run.stop()
    result = ended(run)
    assert (result["rows"], result["interrupted"]) == (0, True)
    assert database.execute("SELECT bid FROM pgbench_branches") == [(7,)]


LEDGER = "CREATE TABLE l (table_number int, first_row bigint, row_count bigint)"


def piece(table: int, first_row: int, rows: int, into: str | None = None) -> dict[str, Any]:
    return {"table": table, "first_row": first_row, "rows": rows, "into": into}


def test_pieces_are_what_is_sent_and_the_progress_table_shows_them(
    server: Server, database: Database, bulk: Bulk
) -> None:
    database.create_tables()
    database.execute(LEDGER)
    pieces = [piece(2, 0, 10), piece(2, 500, 1_000), piece(1, 3, 1)]
    run = bulk(server.connection(database=database.name), pieces=pieces, progress_table="l", streams=2)
    assert (result := finished(run))["rows"] == 1_011 and result["errors"] == []
    assert json.loads(run.progress())["rows_total"] == 1_011
    assert database.execute("SELECT min(aid), max(aid), count(*) FROM pgbench_accounts") == [(1, 1_500, 1_010)]
    assert database.execute("SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN 11 AND 500") == [(0,)]
    assert database.execute("SELECT tid FROM pgbench_tellers") == [(4,)]
    assert database.execute("SELECT * FROM l ORDER BY 1, 2") == [(1, 3, 1), (2, 0, 10), (2, 500, 1_000)]


def test_a_piece_that_fails_is_not_in_the_progress_table(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    database.execute(LEDGER)
    database.execute("ALTER TABLE pgbench_accounts ADD CHECK (aid <> 25)")
    pieces = [piece(2, 0, 10), piece(2, 20, 10), piece(2, 40, 10)]
    (error,) = finished(bulk(server.connection(database=database.name), pieces=pieces, progress_table="l", streams=1))[
        "errors"
    ]
    assert error["sqlstate"] == "23514"
    assert database.execute("SELECT * FROM l") == [(2, 0, 10)]
    assert database.counts() == [0, 0, 10]


def test_frozen_pieces_empty_their_partition_first(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    database.execute(LEDGER)
    database.execute("CREATE TABLE a (LIKE pgbench_accounts); CREATE TABLE b (LIKE a); INSERT INTO b VALUES (7)")
    pieces = [piece(2, 0, 50_000, "a"), piece(2, 50_000, 50_000, "b")]
    run = bulk(server.connection(database=database.name), pieces=pieces, progress_table="l", freeze=True)
    assert finished(run)["errors"] == []
    assert database.execute("SELECT min(aid), max(aid), count(*) FROM b") == [(50_001, 100_000, 50_000)]
    database.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
    for table in ("a", "b"):
        assert database.execute(f"SELECT count(*) FROM pg_visibility('{table}') WHERE NOT all_frozen") == [(0,)]


def test_each_session_begins_with_what_is_prepared(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    prepare = ["SET default_transaction_read_only = on"]
    (error, *_) = finished(bulk(server.connection(database=database.name), prepare=prepare, streams=1))["errors"]
    assert error["sqlstate"] == "25006"


def test_tables_that_are_missing_are_errors(server: Server, database: Database, bulk: Bulk) -> None:
    result = finished(bulk(server.connection(database=database.name), streams=1))
    (error,) = result["errors"]
    assert (error["sqlstate"], error["table"], error["stream"]) == ("42P01", "pgbench_branches", 0)
    assert (result["rows"], result["bytes_sent"]) == (0, 0)


def test_rows_that_the_server_leaves_out_are_an_error(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    database.execute("CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    database.execute(
        "CREATE TRIGGER odd BEFORE INSERT ON pgbench_tellers FOR EACH ROW WHEN (NEW.tid = 3) EXECUTE FUNCTION odd()"
    )
    (error,) = finished(bulk(server.connection(database=database.name)))["errors"]
    assert (error["kind"], error["message"]) == ("protocol", "of 10 rows, the server copied 9")


def test_a_full_disk_says_so(own_server: Server, bulk: Bulk) -> None:
    database = Database(own_server, "bulk")
    small = Path(tempfile.mkdtemp(prefix="plinth-full-", dir=PUBLIC))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0777", "tmpfs", small], check=True)
    try:
        space = small / "space"
        space.mkdir()
        status = own_server.data.stat()
        os.chown(space, status.st_uid, status.st_gid)
        own_server.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        database.create_tables(tablespace="small")
        result = finished(bulk(own_server.connection(database="bulk"), streams=2))
        assert {error["sqlstate"] for error in result["errors"]} == {"53100"}
        assert "No space left on device" in result["errors"][0]["message"]
        assert database.counts()[2] == 0  # not one piece has room
    finally:
        own_server.stop()
        subprocess.run(["umount", small], check=True)
        small.rmdir()


@pytest.mark.long
@pytest.mark.parametrize("how", ["terminate", "SIGKILL", "immediate shutdown"])
def test_sessions_that_end_are_errors(own_server: Server, bulk: Bulk, how: str) -> None:
    database = Database(own_server, "bulk")
    database.create_tables()
    run = under_way(bulk(own_server.connection(database="bulk"), scale=2_000, streams=3))
    pids = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY pgbench%' ORDER BY pid LIMIT 1"
    if how == "terminate":
        own_server.execute(f"SELECT pg_terminate_backend(({pids}))")
    elif how == "SIGKILL":
        os.kill(own_server.execute(pids)[0][0], signal.SIGKILL)
        # A shutdown in the middle of the restart may hang, so that must be over.
        while "reinitializing" not in (own_server.folder / "log").read_text():
            pass
        own_server.wait_until_ready()
    else:
        own_server.stop(signal.SIGQUIT)
    result = ended(run)
    assert result["errors"] and not result["interrupted"]
    kinds = {(error["kind"], error["sqlstate"]) for error in result["errors"]}
    # A killed process says nothing; the others are sent away by the postmaster (57P02), or just see the end.
    allowed = {"terminate": {("sql", "57P01")}}.get(
        how, {("sql", "57P02"), ("sql", "57P01"), ("connection_lost", None)}
    )
    assert kinds <= allowed


def test_a_peer_that_is_no_server_is_an_error(bulk: Bulk) -> None:
    welcome = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(reply: bytes) -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(welcome)
                peer.recv(1000)
                peer.sendall(reply)
                while peer.recv(1_000_000):
                    pass

        for reply, words in [
            (b"D\0\0\0\x04", "message 'D' in answer to COPY"),
            (b"\xff\0\0\0\x04", "unknown message type 0xff"),
        ]:
            peer = threading.Thread(target=answer, args=(reply,))
            peer.start()
            here = {"host": "127.0.0.1", "port": listener.getsockname()[1], "user": "u", "database": "d"}
            (error,) = finished(bulk(here, streams=1))["errors"]
            peer.join()
            assert (error["kind"], error["sqlstate"]) == ("protocol", None)
            assert words in error["message"]


def test_a_stream_that_cannot_connect_keeps_all_from_loading(server: Server, database: Database, bulk: Bulk) -> None:
    database.create_tables()
    with server.role("CONNECTION LIMIT 2") as role:
        database.execute(f"GRANT INSERT ON {', '.join(NAMES)} TO {role}")
        run = bulk(server.connection(database=database.name, user=role), streams=3)
        with pytest.raises(_native.ConnectError, match="too many connections") as raised:
            run.start()
        assert raised.value.sqlstate == "53300"
        assert run.wait(10.0)
        assert database.counts() == [0, 0, 0]
        database.execute(f"DROP OWNED BY {role}")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"freeze": True, "pieces": [piece(2, 0, 9), piece(2, 9, 1)]},
            "freeze: got true with several pieces of pgbench_accounts",
        ),
        ({"pieces": [piece(1, 5, 6)]}, "pieces: got 6 rows from row 5 of pgbench_tellers, which has 10"),
        ({"pieces": [piece(3, 0, 1)]}, "pieces: table: got 3, allowed are 0 to 2"),
        ({"streams": 1, "replace": True, "progress_table": "l"}, "progress_table: only null is allowed"),
        ({"streams": 2, "replace": True}, "streams: got 2"),
        ({"streams": 0}, "streams: got 0"),
        ({"generator": {"kind": "tpcb", "scale": 0}}, "generator.scale: got 0"),
        ({"generator": {"kind": "tpch", "scale": 1}}, "unknown variant `tpch`"),
        ({"generator": {"kind": "tpcc", "scale": 1}}, "unknown field `scale`"),
        ({"speed": "high"}, "unknown field `speed`"),
    ],
)
def test_configurations_that_make_no_sense(bulk: Bulk, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(_native.ConfigError, match=words):
        bulk({"host": "/tmp", "port": 1, "user": "u", "database": "d"}, **changes)


def test_the_object_says_what_it_is_asked_too_early(bulk: Bulk) -> None:
    run = bulk({"host": "/nonexistent", "port": 1, "user": "u", "database": "d"})
    with pytest.raises(_native.EngineError, match="not started"):
        run.result()
    with pytest.raises(_native.ConnectError, match=r"/nonexistent/.s.PGSQL.1"):
        run.start()
