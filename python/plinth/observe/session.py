"""The observer's own connection: lost without harm, made anew, and out of the load's database where it can be."""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psycopg

from plinth.model.load import Connection
from plinth.observe.proc import read_once
from plinth.observe.source import Unreadable, reason_of
from plinth.observe.views import NEEDED_SETTINGS
from plinth.system.database import connect

SHOWN_SETTINGS = (*NEEDED_SETTINGS, "log_checkpoints")
_CONNECT_TIMEOUT_S = 2
_RETRY_AFTER_NS = 500_000_000
# The load's limits and planner settings are not to bear on the observer.
_OWN_SETTINGS = {
    "client_encoding": "UTF8",  # psycopg gives bytes for the text of an SQL_ASCII database
    "application_name": "plinth observer",
    "statement_timeout": "5s",
    "jit": "off",
    "default_transaction_isolation": "read committed",
}
_OWN_SETTINGS_SINCE_15 = {"stats_fetch_consistency": "none"}


class Session:
    """A connection to the server under load. One thread uses it; any other may interrupt it.

    The server counts our transactions too. So the connection stands in another database than the load's: in
    `postgres`, or in `template1` of a cluster that is ours alone (`local`), since it keeps others from creating
    databases. Where neither can be had, `shares_database` is true.
    """

    def __init__(self, target: Connection, *, local: bool) -> None:
        self.major = 0
        self.settings: Mapping[str, str] = {}
        self.shares_database = False
        self.backend_pid: int | None = None
        self._target = target
        self._local = local
        self._databases = _databases(target.database, local)
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._backend_cpu_ns: dict[int, int] = {}
        self._cost_unknown = None if local else "the server's processes on this host are not known"
        self._interrupted = False
        self._failure: tuple[int, str] | None = None

    def connect(self) -> None:
        """Make sure that there is a connection. Raises Unreadable, at once if it failed a moment ago."""
        if self._connection is not None:
            return
        if self._interrupted:
            raise Unreadable("the observer was stopped")
        if self._failure is not None and time.monotonic_ns() - self._failure[0] < _RETRY_AFTER_NS:
            raise Unreadable(self._failure[1])
        try:
            self._connection = self._first_connection()
            self._begin(self._connection)
        except psycopg.Error as error:
            raise self._lost(error) from error
        self._failure = None

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a prepared query, to which %(database)s is the load's database. Raises Unreadable."""
        self.connect()
        assert self._connection is not None
        try:
            cursor = self._connection.execute(sql, {"database": self._target.database}, prepare=True)  # pyright: ignore[reportArgumentType]
            rows = cursor.fetchall()
        except psycopg.Error as error:
            if self._connection.closed:
                raise self._lost(error) from error
            raise Unreadable(_first_line(error)) from error
        self._note_cost()
        return rows

    def cpu_ns(self) -> int:
        """CPU time of our backends so far. Raises Unreadable when it cannot be known."""
        if self._cost_unknown is not None:
            raise Unreadable(self._cost_unknown)
        return sum(self._backend_cpu_ns.values())

    def interrupt(self) -> None:
        """End a wait for the server, from another thread; there will be no further connection."""
        self._interrupted = True
        connection = self._connection
        if connection is not None:
            with suppress(OSError, psycopg.Error):  # it has just ended, and so has the wait
                with socket.socket(fileno=os.dup(connection.fileno())) as shared:
                    shared.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self.backend_pid = self._connection, None, None
        if connection is not None:
            connection.close()

    def _first_connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        for database in self._databases[:-1]:
            try:
                return self._connect_to(database)
            except psycopg.OperationalError:
                continue  # not there, or not for us: the last one, which the load itself uses, tells why
        return self._connect_to(self._databases[-1])

    def _connect_to(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        target = self._target.model_copy(update={"database": database})
        connection = connect(target, timeout_s=_CONNECT_TIMEOUT_S)
        self.shares_database = database == self._target.database
        return connection

    def _begin(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.major = connection.info.server_version // 10_000
        own = _OWN_SETTINGS | (_OWN_SETTINGS_SINCE_15 if self.major >= 15 else {})
        for name, value in own.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        shown = "SELECT name, current_setting(name, true) FROM unnest(%s::text[]) AS name"
        self.settings = dict(connection.execute(shown, (list(SHOWN_SETTINGS),)).fetchall())
        self.backend_pid = connection.info.backend_pid

    def _lost(self, error: psycopg.Error) -> Unreadable:
        reason = _first_line(error)
        self._failure = (time.monotonic_ns(), reason)
        self.close()
        return Unreadable(reason)

    def _note_cost(self) -> None:
        if not self._local or self.backend_pid is None:
            return
        try:
            schedstat = read_once(f"/proc/{self.backend_pid}/schedstat")
        except OSError as error:
            self._cost_unknown = reason_of(error)
        else:
            self._backend_cpu_ns[self.backend_pid] = int(schedstat.split()[0])


def _databases(of_load: str, local: bool) -> tuple[str, ...]:
    others = ("postgres", "template1") if local else ("postgres",)
    return (*(name for name in others if name != of_load), of_load)


def _first_line(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).strip().partition("\n")[0] or type(error).__name__
