"""How long a session on a standby waits to see what was committed before: WAIT FOR LSN, which PostgreSQL has since 19."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg

from plinth.model.connection import Connection
from plinth.observe.session import APPLICATION_NAME, Session, first_line, interrupt_wait, rows_of
from plinth.observe.source import Reading, Readout, Unreadable
from plinth.system.database import connect

SOURCE = "read_your_writes"
_SINCE = 19
_TIMEOUT_MS = 1500
"""Less than what the observer waits for its last reading."""
_CONNECT_TIMEOUT_S = 2
_STATUS = {
    "timeout": f"what was committed was not replayed within {_TIMEOUT_MS / 1000} s",
    "not in recovery": "it is not a standby",
}


class ReadYourWrites:
    """Waits on each standby, one after the other, for what the primary has flushed at that moment.

    No acknowledged commit lies behind that position. What is measured is `wait_s`, which has one round trip to the standby.
    `session` is of the primary; it is closed with the others.
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
        readings: list[Reading] = []
        missing: dict[str, str] = {}
        for name in self._standbys:
            try:
                readings.append(Reading(name, "wait_s", self._wait_s(name)))
            except Unreadable as reason:
                missing[name] = str(reason)
            except psycopg.Error as error:
                self._forget(name)
                missing[name] = first_line(error)
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

    def _wait_s(self, standby: str) -> float:
        connection = self._connected(standby)
        ((lsn,),) = rows_of(self._session.answer("SELECT pg_current_wal_flush_lsn()"))
        began_ns = time.monotonic_ns()
        # The position is the server's reply, and becomes a part of a statement for another server.
        wait = f"WAIT FOR LSN '{_checked(lsn)}' WITH (MODE 'standby_replay', TIMEOUT '{_TIMEOUT_MS}ms', NO_THROW)"
        status = connection.execute(wait.encode()).fetchone()
        waited_ns = time.monotonic_ns() - began_ns
        if status != ("success",):
            said = "" if status is None else str(status[0])
            raise Unreadable(_STATUS.get(said, said))
        return waited_ns / 1e9

    def _connected(self, standby: str) -> psycopg.Connection[tuple[Any, ...]]:
        if self._interrupted:
            raise Unreadable("the observer was stopped")
        if standby not in self._connections:
            to = replace(self._standbys[standby], application_name=APPLICATION_NAME)
            self._connections[standby] = connect(to, timeout_s=_CONNECT_TIMEOUT_S)
        return self._connections[standby]

    def _forget(self, standby: str) -> None:
        if (connection := self._connections.pop(standby, None)) is not None:
            connection.close()


def _checked(lsn: str | None) -> str:
    if lsn is None or re.fullmatch("[0-9A-F]{1,8}/[0-9A-F]{1,8}", lsn) is None:
        raise Unreadable(f"the primary's position is {lsn!r}")
    return lsn
