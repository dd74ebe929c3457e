"""How long a session on a standby waits to see what was committed before: WAIT FOR LSN, which PostgreSQL has since 19."""

import re
import select
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import pq

from plinth.model.connection import Connection
from plinth.model.standby import WAIT_TIMEOUT_S
from plinth.observe.session import APPLICATION_NAME, Session, first_line, interrupt_wait, rows_of
from plinth.observe.source import Reading, Readout, Unreadable
from plinth.system.database import connect

SOURCE = "read_your_writes"
_SINCE = 19
_CONNECT_TIMEOUT_S = 2
_ANSWER_TIMEOUT_S = WAIT_TIMEOUT_S + 0.5
"""After which a standby is taken for one that hangs."""


class ReadYourWrites:
    """Waits on all standbys at a time for what the primary has flushed at that moment.

    No acknowledged commit lies behind that position. What is measured is `wait_s`, which has one round trip to the standby. Of a wait that
    takes too long only that is known: `timed_out` is 1 then, else 0. `session` is of the primary; it is closed with the others.
    """

    name = SOURCE
    sparse = False

    def __init__(self, session: Session, standbys: Mapping[str, Connection]) -> None:
        self._session = session
        self._standbys = standbys
        self._connections: dict[str, psycopg.Connection[tuple[Any, ...]]] = {}
        self._interrupted = False
        self._lacking: str | None = None

    def read(self) -> Readout:
        """Wait on every standby. Raises Unreadable when none has answered."""
        if self._lacking is None and (major := self._session.connect().major) < _SINCE:
            self._lacking = f"PostgreSQL {major} does not have WAIT FOR LSN; {_SINCE} and later do"
            self._session.close()
        if self._lacking is not None:
            raise Unreadable(self._lacking)
        missing: dict[str, str] = {}
        for name in self._standbys:
            try:
                self._connect(name)
            except psycopg.Error as error:
                missing[name] = first_line(error)
        waits_s = self._wait(missing)
        readings: list[Reading] = []
        for name, wait_s in waits_s.items():
            readings.append(Reading(name, "timed_out", float(wait_s is None)))
            readings += [] if wait_s is None else [Reading(name, "wait_s", wait_s)]
        if missing and not readings:
            raise Unreadable("; ".join(f"{name}: {reason}" for name, reason in missing.items()))
        return Readout(readings, missing)

    def interrupt(self) -> None:
        """Interrupt a wait, from another thread, and allow no further connection."""
        self._interrupted = True
        self._session.interrupt()
        for connection in list(self._connections.values()):
            interrupt_wait(connection)

    def close(self) -> None:
        """Close the connections."""
        for name in list(self._connections):
            self._forget(name)
        self._session.close()

    def _wait(self, missing: dict[str, str]) -> dict[str, float | None]:
        """Return how long it took on each standby that is connected to, None where it took more than the timeout; add the others to
        `missing`."""
        statement = _wait_for(self._session)
        began_ns = time.monotonic_ns()
        waits_s: dict[str, float | None] = {}
        under_way = select.poll()
        waiting: dict[int, str] = {}
        for name, connection in list(self._connections.items()):
            try:
                connection.pgconn.send_query(statement)
            except psycopg.Error as error:
                missing[name] = self._lost(name, first_line(error))
            else:
                waiting[connection.fileno()] = name
                under_way.register(connection.fileno(), select.POLLIN)
        while waiting:
            left_s = _ANSWER_TIMEOUT_S - (time.monotonic_ns() - began_ns) / 1e9
            arrived = under_way.poll(max(0.0, left_s) * 1000)
            waited_s = (time.monotonic_ns() - began_ns) / 1e9
            if not arrived and left_s <= 0:
                missing |= {name: self._lost(name, "it does not answer") for name in waiting.values()}
                break
            for descriptor, _ in arrived:
                name = waiting[descriptor]
                try:
                    status = _answer(self._connections[name].pgconn)
                except psycopg.Error as error:
                    missing[name] = self._lost(name, first_line(error))
                else:
                    if status is None:  # not all of it has come
                        continue
                    if status in ("success", "timeout"):
                        waits_s[name] = waited_s if status == "success" else None
                    else:  # after a promotion: "not in recovery"
                        missing[name] = f"WAIT FOR LSN said {status!r}"
                under_way.unregister(descriptor)
                del waiting[descriptor]
        return waits_s

    def _connect(self, standby: str) -> None:
        if self._interrupted:
            raise Unreadable("the observer was stopped")
        if standby not in self._connections:
            to = replace(self._standbys[standby], application_name=APPLICATION_NAME)
            self._connections[standby] = connect(to, timeout_s=_CONNECT_TIMEOUT_S)

    def _lost(self, standby: str, reason: str) -> str:
        """Close a connection, for the next reading to make another; return the reason."""
        self._forget(standby)
        return reason

    def _forget(self, standby: str) -> None:
        if (connection := self._connections.pop(standby, None)) is not None:
            connection.close()


def _wait_for(primary: Session) -> bytes:
    """Return the statement that waits for what the primary has flushed. Raises Unreadable."""
    ((lsn,),) = rows_of(primary.answer("SELECT pg_current_wal_flush_lsn()"))
    # The reply of one server becomes a part of a statement for others.
    if lsn is None or re.fullmatch("[0-9A-F]{1,8}/[0-9A-F]{1,8}", lsn) is None:
        raise Unreadable(f"the primary's position is {lsn!r}")
    timeout_ms = round(WAIT_TIMEOUT_S * 1000)
    return f"WAIT FOR LSN '{lsn}' WITH (MODE 'standby_replay', TIMEOUT '{timeout_ms}ms', NO_THROW)".encode()


def _answer(wire: pq.abc.PGconn) -> str | None:
    """Return what WAIT FOR has returned; None while it has not come whole. Raises psycopg.Error."""
    wire.consume_input()
    if wire.is_busy():
        return None
    said = ""
    while (result := wire.get_result()) is not None:
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
        said = (result.get_value(0, 0) or b"").decode(errors="replace")
    return said
