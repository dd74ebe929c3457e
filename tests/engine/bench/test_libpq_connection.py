"""Connections by libpq's own functions, and its reading of connection strings."""

import os
import signal
import threading
from collections.abc import Callable

import polars
import pytest
from psycopg.conninfo import conninfo_to_dict

from native_server import PASSWORD, Server
from plinth.common.libpq import ConninfoError, keywords, make_conninfo, parameters, parse
from plinth.system.libpq import ConnectError, LibpqConnection, StatementError
from waiting import wait_until

ODD = {"dbname": "it's", "password": "a b\\'\t=", "user": "", "host": "h\u00e9,/tmp", "options": "-c a=b\\ c"}


def test_strings_are_read_and_written_as_psycopg_does() -> None:
    made = make_conninfo(**ODD)
    assert parameters(made) == conninfo_to_dict(made) == ODD
    over = make_conninfo("postgresql://u:p%20q@h:1/d?sslmode=require", user="other", port=2)
    expected = {"user": "other", "password": "p q", "host": "h", "port": "2", "dbname": "d", "sslmode": "require"}
    assert parameters(over) == conninfo_to_dict(over) == expected
    assert [option.keyword for option in parse("password=x") if option.is_hidden and option.value] == ["password"]
    assert {"host", "sslmode", "service"} <= set(keywords())


def test_what_libpq_does_not_take_is_reported_in_its_words() -> None:
    with pytest.raises(ConninfoError, match=r'^invalid connection option "nonsense"$'):
        make_conninfo("host=a", nonsense="1")


@pytest.fixture
def connect(server: Server) -> Callable[..., LibpqConnection]:
    def connected(**parameters: str) -> LibpqConnection:
        place = {"host": str(server.folder), "port": str(server.port), "user": "postgres", "dbname": "postgres"}
        return LibpqConnection(make_conninfo(**(place | parameters)), notices.append)

    notices.clear()
    return connected


notices: list[str] = []


def test_rows_errors_and_notices(connect: Callable[..., LibpqConnection]) -> None:
    with connect() as connection:
        assert connection.execute("select 1, null, '\u00e9', ''") == [("1", None, "\u00e9", "")]
        assert connection.execute("do $$ begin raise warning 'beware'; end $$") == []
        assert notices == ["WARNING:  beware\n"]
        with pytest.raises(StatementError, match=r"^ERROR:  division by zero$") as failed:
            connection.execute("select 1 / 0")
        assert failed.value.sqlstate == "22012"
        assert connection.quoted_identifier('a "b"') == '"a ""b"""'
        assert connection.server_version >= 130000
        with pytest.raises(StatementError) as lost:
            connection.execute("select pg_terminate_backend(pg_backend_pid())")
        assert "terminating connection" in str(lost.value)


def test_notices_of_a_login(connect: Callable[..., LibpqConnection], capfd: pytest.CaptureFixture[str]) -> None:
    """They come before PQconnectdb returns: libpq would print them to stderr, with any bytes that steer a terminal."""
    connect(options="-c client_min_messages=debug5").close()
    assert any(notice.startswith("DEBUG: ") for notice in notices), notices
    assert capfd.readouterr().err == ""


def test_passwords_and_lists_of_hosts(connect: Callable[..., LibpqConnection]) -> None:
    with pytest.raises(ConnectError, match="no password supplied") as refused:
        connect(host="127.0.0.1", user="clear_user")
    assert refused.value.needs_password
    with pytest.raises(ConnectError, match="password authentication failed") as refused:
        connect(host="127.0.0.1", user="clear_user", password="wrong")
    with connect(host="/nonexistent,127.0.0.1", user="clear_user", password=PASSWORD) as connection:
        assert connection.host == "127.0.0.1"


def test_an_interrupted_statement_is_cancelled(server: Server, connect: Callable[..., LibpqConnection]) -> None:
    """Ctrl-C ends the wait at once, and the server does not go on with what nobody waits for."""
    polars.DataFrame({"a": [1]}).lazy().collect()  # its handler of SIGINT has waits restarted (SA_RESTART)
    sleeping = "select count(*) from pg_stat_activity where query = 'select pg_sleep(100)' and state = 'active'"

    def interrupt() -> None:
        with connect() as other:
            wait_until(lambda: other.execute(sleeping) == [("1",)])
        os.kill(os.getpid(), signal.SIGINT)

    with connect() as connection:
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            connection.execute("select pg_sleep(100)")
        interrupter.join()
        assert connection.execute(sleeping) == [("0",)]
