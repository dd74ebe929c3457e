"""A load that makes no progress says so, and what it waits for; otherwise a lock of somebody else's looks like a slow disk."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from plinth.model.connection import Connection
from plinth.model.progress import Progress, Report
from plinth.model.units import format_duration

if TYPE_CHECKING:
    from plinth.observe.session import Session

STALLED_S = 60.0
"""So long nothing ends until it is said for the first time; until each further time it takes twice as long."""
_JOIN_TIMEOUT_S = 10.0


class StallWatch:
    """Tells, while its block runs, when nothing of `task` has ended for long, and what its sessions wait for.

    By a thread and a session of its own: what it looks after may itself wait for the server. `target` is where the
    sessions of the task connect; `local`: the server is Plinth's own.
    """

    def __init__(
        self, task: str, target: Connection, note: Callable[[str], None], *, local: bool, after_s: float | None = None
    ) -> None:
        self._task = task
        self._target = target
        self._note = note
        self._local = local
        self._due_s = STALLED_S if after_s is None else after_s
        self._heard_at_s = time.monotonic()
        self._last: Progress | None = None
        self._session: Session | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stall watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        if (session := self._session) is not None:
            session.interrupt()
        self._thread.join(_JOIN_TIMEOUT_S)

    def note_progress(self) -> None:
        """Something has ended: a row is there, a transaction is done or has failed."""
        self._heard_at_s = time.monotonic()

    def passing_on(self, report: Report) -> Report:
        """`report`, with every progress noticed that differs from the one before."""

        def report_and_note(progress: Progress) -> None:
            if self._last is None or progress[:5] != self._last[:5]:  # rate and bytes_per_s change by themselves
                self.note_progress()
            self._last = progress
            report(progress)

        return report_and_note

    def _run(self) -> None:
        left_s = self._due_s
        while not self._ending.wait(left_s):
            silent_s = time.monotonic() - self._heard_at_s
            if silent_s >= self._due_s:
                self._report(silent_s)
                self._due_s *= 2
            left_s = max(0.0, self._heard_at_s + self._due_s - time.monotonic())

    def _report(self, silent_s: float) -> None:
        # psycopg takes long to import, and most loads never stall.
        from plinth.observe.session import Session
        from plinth.observe.session_waits import session_waits
        from plinth.observe.source import Unreadable

        self._session = session = Session(self._target, local=self._local)
        try:
            if self._ending.is_set():
                return
            waits = session_waits(session, self._target.application_name)
        except Unreadable as reason:
            waits = f"what it waits for cannot be read: {reason}"
        finally:
            session.close()
        if not self._ending.is_set():
            step = f" ({self._last.task})" if self._last is not None else ""
            self._note(f"{self._task}{step}: no progress for {format_duration(silent_s)}: {waits}")
