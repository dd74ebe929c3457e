"""Statements that run at the same time, each in a session of its own: keys of several tables, vacuum of partitions."""

import contextlib
import select
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.system import cancel
from plinth.system.database import connect_unpinned

if TYPE_CHECKING:
    import psycopg

_POLL_S = 0.2
_CANCEL_TIMEOUT_S = 2.0

Job = Sequence[str]
"""The statements that are sent to one session, one after the other. Several statements in one string are one
transaction."""


def run_parallel(
    target: Connection, jobs: Sequence[Job], *, sessions: int, on_poll: Callable[[int, list[int]], None]
) -> None:
    """Run all jobs, at most `sessions` at the same time, in their order. Raises psycopg.Error of the first that fails.

    `on_poll` is called at intervals with the number of completed jobs and the pids of the working backends.
    Anything raised, such as Interrupted by a signal, cancels the statements that are running. No threads: so that it
    is raised here.
    """
    open_sessions: list[_Session] = []
    waiting, ended = deque(jobs), 0
    try:
        while len(open_sessions) < min(sessions, len(jobs)):
            open_sessions.append(_Session(connect_unpinned(target)))
        while ended < len(jobs):
            for session in open_sessions:
                if session.is_idle and waiting:
                    session.begin(waiting.popleft())
            on_poll(ended, [session.pid for session in open_sessions if not session.is_idle])
            busy = {session.socket: session for session in open_sessions if not session.is_idle}
            for socket in _readable(busy):
                ended += busy[socket].advance()
    finally:
        for session in open_sessions:
            session.end()


def _readable(sockets: Iterable[int]) -> Iterable[int]:
    return cancel.poll(dict.fromkeys(sockets, select.POLLIN), _POLL_S)


class _Session:
    """A connection, and its remaining statements."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection
        self._wire = connection.pgconn
        self._queries: deque[str] = deque()
        self.is_idle = True
        self.pid = connection.info.backend_pid
        self.socket = connection.fileno()

    def begin(self, job: Job) -> None:
        """Send the first query of a job."""
        self._queries = deque(job)
        self.is_idle = False
        self._wire.send_query(self._queries.popleft().encode())

    def advance(self) -> bool:
        """Read the server's results; returns whether the job has ended. Raises psycopg.Error."""
        from psycopg import pq
        from psycopg.errors import error_from_result

        self._wire.consume_input()
        while not self._wire.is_busy():
            result = self._wire.get_result()
            if result is not None:
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    raise error_from_result(result, encoding="utf-8")
            elif self._queries:
                self._wire.send_query(self._queries.popleft().encode())
                return False
            else:
                self.is_idle = True
                return True
        return False

    def end(self) -> None:
        """Close the connection; a running statement is cancelled."""
        import psycopg

        if not self.is_idle:
            with contextlib.suppress(psycopg.Error):  # when the server is gone, no statement runs any more
                self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
        self._connection.close()
