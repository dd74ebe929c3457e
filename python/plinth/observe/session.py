"""The observer's connections, which are re-established when lost, and avoid the load's database if possible."""

import itertools
import os
import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import pq

from plinth.model.connection import Connection
from plinth.observe.proc import read_once
from plinth.observe.source import Unreadable, reason_of
from plinth.observe.views import SLOW_VIEWS, STATEMENTS_EXTENSION, VIEWS, Extension, Traits, needed_settings
from plinth.system.control import text_codec
from plinth.system.database import connect
from plinth.system.extension import make_extension

_LOADED = "SHOW shared_preload_libraries"
# In the server's encoding: it becomes a part of queries.
_SCHEMA = "SELECT convert_to(quote_ident(nspname), 'SQL_ASCII') FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = %s"
APPLICATION_NAME = "plinth observer"
"""Prefix of application_name of our sessions."""
SHOWN_SETTINGS = (*needed_settings((*VIEWS, *SLOW_VIEWS)), "track_activities", "log_checkpoints")
_CONNECT_TIMEOUT_S = 2
_RETRY_AFTER_NS = 500_000_000
_COST_EVERY_NS = 1_000_000_000
# The load's limits and planner settings must not affect the observer.
_OWN_SETTINGS = {
    "statement_timeout": "5s",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "plan_cache_mode": "force_generic_plan",  # plan once, although the database is a parameter
}
_OF_START = {"statement_timeout": "5000", "jit": "off", "plan_cache_mode": "force_generic_plan"}
_OWN_SETTINGS_SINCE_15 = {"stats_fetch_consistency": "none"}
Row = tuple[str | None, ...]
Answer = pq.abc.PGresult


def find_statements(connection: psycopg.Connection[tuple[Any, ...]], *, ours: bool) -> dict[str, Extension]:
    """Return the extension of the connection's database. `ours`: the cluster is Plinth's, so that it may be created.

    The connection is in a transaction, which stays open. Raises psycopg.Error.
    """
    return {STATEMENTS_EXTENSION: _find(connection, ours)}


def _find(connection: psycopg.Connection[tuple[Any, ...]], ours: bool) -> Extension:
    if ours:
        loaded = connection.execute(_LOADED).fetchone()
        libraries = "" if loaded is None else str(loaded[0])
        if STATEMENTS_EXTENSION not in (name.strip(' "') for name in libraries.split(",")):
            return Extension(None, f"{STATEMENTS_EXTENSION} is not in shared_preload_libraries")
        if connection.execute(_SCHEMA, (STATEMENTS_EXTENSION,)).fetchone() is None:
            make_extension(connection, STATEMENTS_EXTENSION)
            connection.execute("COMMIT AND CHAIN")
    found = connection.execute(_SCHEMA, (STATEMENTS_EXTENSION,)).fetchone()
    if found is None:
        return Extension(None, f"CREATE EXTENSION {STATEMENTS_EXTENSION} was not run in {connection.info.dbname}")
    return Extension(found[0].decode(text_codec(connection.pgconn), errors="surrogateescape"))


def interrupt_wait(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """End a connection that another thread waits for."""
    with suppress(OSError, psycopg.Error):  # it has just ended, and so has the wait
        with socket.socket(fileno=os.dup(connection.fileno())) as shared:
            shared.shutdown(socket.SHUT_RDWR)


class Session:
    """A connection to the server under load. One thread uses it; any other may interrupt it.

    The server counts our transactions too. So the connection is to another database than the load's: in
    `postgres`, or in `template1` of a cluster that is `ours` alone, since it keeps others from creating
    databases. Where neither is available, `shares_database` is true. What can be seen from the load's own database only
    is read by a session `within` it, whose transactions are rolled back and so are not among the commits. `local`: the server's
    processes are those of this machine.
    """

    def __init__(self, target: Connection, *, local: bool, ours: bool | None = None, within: bool = False) -> None:
        self.server: Traits | None = None
        self.shares_database = False
        self.backend_pid: int | None = None
        self._target = target
        self._local = local
        self._ours = local if ours is None else ours
        self._within = within
        self._databases = (target.database,) if within else _databases(target.database, self._ours)
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._prepared: dict[str, bytes] = {}
        self._codec = "utf-8"
        self._backend_cpu_ns: dict[int, int] = {}
        self._cost_noted_ns = 0
        self._cost_unknown = None if local else "the server's processes on this host are not known"
        self._interrupted = False
        self._failure: tuple[int, str] | None = None

    def connect(self) -> Traits:
        """Connect if necessary; return the server's features. Raises Unreadable, at once if a recent attempt failed."""
        if self._connection is not None and self.server is not None:
            return self.server
        if self._interrupted:
            raise Unreadable("the observer was stopped")
        if self._failure is not None and time.monotonic_ns() - self._failure[0] < _RETRY_AFTER_NS:
            raise Unreadable(self._failure[1])
        try:
            self._connection = self._first_connection()
            self.server = self._begin(self._connection)
        except psycopg.Error as error:
            raise self._lost(first_line(error)) from error
        self._failure = None
        return self.server

    def answer(self, sql: str) -> Answer:
        """Execute a query, prepared once, where $1 is the load's database. Raises Unreadable.

        By libpq's own calls: psycopg's cursors take five times as much of our CPU for the same query.
        """
        self.connect()
        assert self._connection is not None
        wire = self._connection.pgconn
        try:
            result = self._rolled_back(wire, sql) if self._within else self._execute(wire, sql)
        except psycopg.Error as error:  # the connection has ended
            raise self._lost(first_line(error)) from error
        self._note_cost_now_and_then()
        return result

    def query_all(self, queries: Sequence[str]) -> dict[str, "list[Row] | Unreadable"]:
        """Execute queries in one round trip and one transaction; a query that fails has the reason as its result.

        Raises Unreadable when there is no connection. Each round trip wakes two processes, which costs more than most queries.
        """
        self.connect()
        assert self._connection is not None
        wire = self._connection.pgconn
        answers: dict[str, list[Row] | Unreadable] = {}
        try:
            if not self._within:
                answers = self._at_once(wire, queries)
        except psycopg.Error as error:  # the connection has ended
            raise self._lost(first_line(error)) from error
        for sql in queries:
            if sql not in answers:  # a failed query aborted the transaction of those after it
                try:
                    answers[sql] = rows_of(self.answer(sql), self._codec)
                except Unreadable as refused:
                    answers[sql] = refused
        self._note_cost_now_and_then()
        return answers

    def setting(self, name: str) -> str | None:
        """Return one of SHOWN_SETTINGS as of the last connection; None if there was none."""
        return None if self.server is None else self.server.settings.get(name)

    def cpu_ns(self) -> int:
        """Return the CPU time of our backends so far. Raises Unreadable if it is unknown."""
        if self._cost_unknown is not None:
            raise Unreadable(self._cost_unknown)
        return sum(self._backend_cpu_ns.values())

    def note_cost(self) -> None:
        """Read the CPU time of our backend, which is not available after it has ended."""
        if not self._local or self.backend_pid is None:
            return
        self._cost_noted_ns = time.monotonic_ns()
        try:
            schedstat = read_once(f"/proc/{self.backend_pid}/schedstat")
        except OSError as error:
            self._cost_unknown = reason_of(error)
        else:
            self._backend_cpu_ns[self.backend_pid] = int(schedstat.split()[0])

    def interrupt(self) -> None:
        """Interrupt a wait for the server, from another thread, and allow no further connection."""
        self._interrupted = True
        connection = self._connection
        if connection is not None:
            interrupt_wait(connection)

    def close(self) -> None:
        """Close the connection after reading its backend's CPU time, unless the backend has ended before."""
        if self._connection is not None and not self._connection.closed:
            self.note_cost()
        connection, self._connection, self.backend_pid = self._connection, None, None
        self._prepared = {}
        if connection is not None:
            connection.close()

    def _first_connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        for database in self._databases[:-1]:
            try:
                return self._connect_to(database)
            except psycopg.OperationalError:
                continue  # it does not exist or refuses us: an error of the last one, the load's own database, is reported
        return self._connect_to(self._databases[-1])

    def _connect_to(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        target = replace(self._target, database=database, application_name=APPLICATION_NAME)
        own = _OF_START if self._within else {}  # set at the start: a SET would be rolled back, or be a commit
        connection = connect(target, timeout_s=_CONNECT_TIMEOUT_S, unconverted=True, own=own)
        self.shares_database = not self._within and database == self._target.database
        return connection

    def _begin(self, connection: psycopg.Connection[tuple[Any, ...]]) -> Traits:
        major = connection.info.server_version // 10_000
        extensions: dict[str, Extension] = {}
        if self._within:
            connection.execute("BEGIN")
        else:
            own = _OWN_SETTINGS | (_OWN_SETTINGS_SINCE_15 if major >= 15 else {})
            for name, value in own.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        shown = "SELECT name, current_setting(name, true) FROM unnest(%s::text[]) AS name"
        settings = dict(connection.execute(shown, (list(SHOWN_SETTINGS),)).fetchall())
        if self._within:
            extensions = find_statements(connection, ours=self._ours)
            connection.execute("ROLLBACK")
        self.backend_pid = connection.info.backend_pid
        self._codec = text_codec(connection.pgconn)
        return Traits(major, settings, extensions)

    def _rolled_back(self, wire: pq.abc.PGconn, sql: str) -> pq.abc.PGresult:
        self._check(wire.exec_(b"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"))
        try:
            return self._execute(wire, sql)
        finally:
            if self._connection is not None:
                self._check(wire.exec_(b"ROLLBACK"))

    def _execute(self, wire: pq.abc.PGconn, sql: str) -> pq.abc.PGresult:
        return self._check(wire.exec_prepared(self._name_of(wire, sql), self._parameters(sql)))

    def _at_once(self, wire: pq.abc.PGconn, queries: Sequence[str]) -> dict[str, "list[Row] | Unreadable"]:
        """Return results by libpq's pipeline up to the first failure, without those of queries that cannot be prepared."""
        names = {sql: name for sql in queries if (name := self._prepared_name(wire, sql)) is not None}
        wire.enter_pipeline_mode()
        try:
            for sql, name in names.items():
                wire.send_query_prepared(name, self._parameters(sql))
            wire.pipeline_sync()
            results = self._results(wire)
        finally:
            if wire.status == pq.ConnStatus.OK:
                wire.exit_pipeline_mode()
        answered = itertools.takewhile(
            lambda pair: pair[1].status == pq.ExecStatus.TUPLES_OK, zip(names, results, strict=False)
        )
        return {sql: rows_of(result, self._codec) for sql, result in answered}

    def _results(self, wire: pq.abc.PGconn) -> list[pq.abc.PGresult]:
        """Return the results up to the end of the pipeline. Waits in poll(2): libpq's own wait would block all other threads."""
        results: list[pq.abc.PGresult] = []
        arrived = select.poll()
        arrived.register(wire.socket, select.POLLIN)
        while True:
            while wire.is_busy():
                arrived.poll()
                wire.consume_input()
            result = wire.get_result()
            if result is not None and result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            if result is not None:
                results.append(result)
            elif wire.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError(wire.get_error_message())

    def _prepared_name(self, wire: pq.abc.PGconn, sql: str) -> bytes | None:
        try:
            return self._name_of(wire, sql)
        except Unreadable:
            return None  # execute it separately to get the error

    def _name_of(self, wire: pq.abc.PGconn, sql: str) -> bytes:
        name = self._prepared.get(sql)
        if name is None:
            name = b"q%d" % len(self._prepared)
            self._check(wire.prepare(name, sql.encode(self._codec, errors="surrogateescape")))
            self._prepared[sql] = name
        return name

    def _parameters(self, sql: str) -> Sequence[bytes]:
        return [self._target.database.encode()] if "$1" in sql else []

    def _note_cost_now_and_then(self) -> None:
        if time.monotonic_ns() - self._cost_noted_ns > _COST_EVERY_NS:
            self.note_cost()

    def _check(self, result: pq.abc.PGresult) -> pq.abc.PGresult:
        assert self._connection is not None
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            return result
        reported = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message.partition(b"\n")[0]
        reason = reported.decode(errors="replace").strip()
        if self._connection.pgconn.status == pq.ConnStatus.BAD:
            raise self._lost(reason)
        raise Unreadable(reason)

    def _lost(self, reason: str) -> Unreadable:
        self._failure = (time.monotonic_ns(), reason)
        self.close()
        return Unreadable(reason)


def _databases(of_load: str, ours: bool) -> tuple[str, ...]:
    others = ("postgres", "template1") if ours else ("postgres",)
    return (*(name for name in others if name != of_load), of_load)


def rows_of(result: Answer, codec: str = "utf-8") -> list[Row]:
    """Return all rows of a result as text; bytes that are not valid in it are shown as \\x."""
    columns = range(result.nfields)
    return [tuple(_text(result.get_value(row, column), codec) for column in columns) for row in range(result.ntuples)]


def _text(value: bytes | None, codec: str) -> str | None:
    return None if value is None else value.decode(codec, errors="backslashreplace")


def first_line(error: psycopg.Error) -> str:
    """Return what the server said, or the first line of libpq's message."""
    return error.diag.message_primary or str(error).strip().partition("\n")[0] or type(error).__name__
