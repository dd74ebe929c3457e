"""Getting a session: socket and TCP, every login method, and every way to be refused."""

import socket
import threading
from typing import Any

import pytest

from native_server import PASSWORD, Finished, Load, Server, free_port
from plinth import _native
from plinth.model.load import LoadResult

TCP = {"host": "127.0.0.1", "password": PASSWORD}
WHO = "select 1 / (case when current_user = '{}' and application_name = 'plinth' then 1 else 0 end) \
from pg_stat_activity where pid = pg_backend_pid();"


@pytest.mark.parametrize(
    ("changes", "user"),
    [
        ({}, "postgres"),
        (TCP | {"user": "scram_user"}, "scram_user"),
        (TCP | {"user": "scram_user", "host": "localhost"}, "scram_user"),
        (TCP | {"user": "md5_user"}, "md5_user"),
        (TCP | {"user": "clear_user"}, "clear_user"),
    ],
)
def test_every_login_method(server: Server, load: Load, finished: Finished, changes: dict[str, Any], user: str) -> None:
    if changes.get("host") == "localhost" and socket.getaddrinfo("localhost", 0)[0][0] == socket.AF_INET6:
        pytest.fail("localhost is IPv6 first here, where the test's pg_hba.conf has no line")
    result = finished(load(server.connection(**changes), WHO.format(user), clients=3, transactions_per_client=2))
    assert (result.measured.done, result.errors) == (6, ())
    assert [(result.engine.server_version,)] == server.execute("show server_version")


def test_options_reach_the_server(server: Server, load: Load, finished: Finished) -> None:
    script = "select 1 / (current_setting('work_mem') = '77MB')::int;"
    connection = server.connection(options="-c work_mem=77MB")
    assert finished(load(connection, script, transactions_per_client=1)).measured.done == 1


@pytest.mark.parametrize(
    ("changes", "sqlstate", "words"),
    [
        (TCP | {"user": "scram_user", "password": "wrong"}, "28P01", "password authentication failed"),
        (TCP | {"user": "md5_user", "password": "wrong"}, "28P01", "password authentication failed"),
        (TCP | {"user": "scram_user", "password": None}, None, "none was given"),
        ({"database": "nowhere"}, "3D000", "nowhere"),
        ({"host": "/nonexistent"}, None, "/nonexistent/.s.PGSQL"),
        ({"host": "/" + "d" * 120}, None, "at most 107"),
        ({"host": "no.such.host.invalid"}, None, "no.such.host.invalid"),
        ({"host": "127.0.0.1", "port": free_port()}, None, "refused"),
    ],
)
def test_nobody_connects(server: Server, load: Load, changes: dict[str, Any], sqlstate: str | None, words: str) -> None:
    run = load(server.connection(**changes), "select 1;", clients=3, threads=2)
    with pytest.raises(_native.ConnectError, match=words) as raised:
        run.start()
    assert raised.value.sqlstate == sqlstate
    assert words in raised.value.message
    assert run.wait(5.0)
    with pytest.raises(_native.EngineError):
        run.result()


def test_a_server_that_does_not_answer_is_given_up_on(load: Load) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = {"host": "127.0.0.1", "port": silent.getsockname()[1], "user": "u", "database": "d"}
        with pytest.raises(_native.ConnectError, match=r"within 0\.3 s"):
            load(connection, "select 1;", clients=50, connect_timeout_s=0.3).start()


def test_clients_beyond_the_limit_are_errors_and_the_others_run(server: Server, load: Load, finished: Finished) -> None:
    """The server counts those that it is about to refuse, too, so that of clients that come at a time more than two may be."""
    with server.role("connection limit 3") as role:
        run = load(server.connection(user=role), "select 1;", clients=5, threads=2, transactions_per_client=4)
        result = finished(run)
    (error,) = result.errors
    assert (error.kind, error.sqlstate, error.script) == ("connect", "53300", None)
    assert 2 <= error.count < 5
    assert result.measured.done == (5 - error.count) * 4


def test_a_stop_while_connecting_ends_it(load: Load) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = {"host": "127.0.0.1", "port": silent.getsockname()[1], "user": "u", "database": "d"}
        run = load(connection, "select 1;", clients=50, connect_timeout_s=60.0)
        accepting = threading.Thread(target=lambda: (silent.accept(), run.stop()))
        accepting.start()
        run.start()
        accepting.join()
        assert run.wait(5.0)
        assert LoadResult.model_validate_json(run.result()).interrupted
