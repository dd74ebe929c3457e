"""Reports a load that makes no progress and what it waits for; otherwise a lock of another client looks like a slow disk."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from plinth.load import LoadConfig
from plinth.model.connection import Connection
from plinth.model.experiment import MeasureSpec
from plinth.model.progress import Progress, Report
from plinth.model.units import format_duration

if TYPE_CHECKING:
    from plinth.observe.session import Session

STALLED_S = 60.0
"""So long nothing ends until it is said for the first time; until each further time it takes twice as long."""
_JOIN_TIMEOUT_S = 10.0
_MANY_DUE = 30
"""So many arrivals are due in measure.stall_limit where it can only be a stall that none ends."""


class StallWatch:
    """Tells, while its block runs, when nothing of `task` has ended for long, and what its sessions wait for.

    It has a separate thread and session: what it looks after may itself wait for the server. `target` is where the
    sessions of the task connect; `local`: the server is Plinth's own; `stopped` says which of its processes are stopped.
    """

    def __init__(
        self,
        task: str,
        target: Connection,
        note: Callable[[str], None],
        *,
        local: bool,
        after_s: float | None = None,
        stopped: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._task = task
        self._target = target
        self._note = note
        self._local = local
        self._stopped = stopped
        self._waits: str | None = None
        self._first_due_s = STALLED_S if after_s is None else after_s
        self._due_s = self._first_due_s
        self._heard_at_s = time.monotonic()
        self._last: Progress | None = None
        self._session: Session | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stall watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        if (session := self._session) is not None:
            session.interrupt()
        self._thread.join(_JOIN_TIMEOUT_S)

    def begin(self) -> None:
        """Forget what was silent before: what the task prepares has ended, and its own work begins."""
        self.note_progress()
        self._due_s = self._first_due_s

    def note_progress(self) -> None:
        """Note that something has ended: a row is there, a transaction is done or has failed."""
        self._heard_at_s = time.monotonic()
        self._waits = None

    def exceeds(self, measure: MeasureSpec, config: LoadConfig, over_s: float) -> str | None:
        """Return why the load of a trial has to be given up, if nothing of it has ended for `measure.stall_limit`.

        `over_s` is how long ago it should have ended; below 0 before that.
        """
        silent_s = time.monotonic() - self._heard_at_s
        if _may_be_silent(measure, config):
            silent_s = min(silent_s, over_s)
        if silent_s < measure.stall_limit_s:
            return None
        waits = self._stopped() or self._waits
        reason = f"no transaction has ended for {format_duration(silent_s)} (measure.stall_limit)"
        return reason if waits is None else f"{reason}: {waits}"

    def passing_on(self, report: Report) -> Report:
        """Wrap `report`, so that every progress is noticed that differs from the one before."""

        def report_and_note(progress: Progress) -> None:
            if self._last is None or progress[:5] != self._last[:5]:  # rate and bytes_per_s always change
                self.note_progress()
            self._last = progress
            report(progress)

        return report_and_note

    def _run(self) -> None:
        left_s = self._due_s
        while not self._ending.wait(min(left_s, self._first_due_s)):
            silent_s = time.monotonic() - self._heard_at_s
            if silent_s >= self._due_s:
                self._report(silent_s)
                self._due_s *= 2
            left_s = max(0.0, self._heard_at_s + self._due_s - time.monotonic())

    def _report(self, silent_s: float) -> None:
        waits = self._stopped() or self._session_waits()
        self._waits = waits
        if not self._ending.is_set():
            step = f" ({self._last.task})" if self._last is not None else ""
            self._note(f"{self._task}{step}: no progress for {format_duration(silent_s)}: {waits}")

    def _session_waits(self) -> str:
        # psycopg takes long to import, and most loads never stall.
        from plinth.observe.session import Session
        from plinth.observe.source import Unreadable
        from plinth.observe.wait_events import session_waits

        self._session = session = Session(self._target, local=False, ours=self._local)
        try:
            if self._ending.is_set():
                return "it ends"
            return session_waits(session, self._target.application_name)
        except Unreadable as reason:
            return f"what it waits for cannot be read: {reason}"
        finally:
            session.close()


def _may_be_silent(measure: MeasureSpec, config: LoadConfig) -> bool:
    """Return whether actions, a low rate or a quiet recording may let nothing end for `measure.stall_limit`."""
    if config.replay is not None and config.replay.speed is not None:
        return True
    stages = () if config.rate is None else config.rate.stages
    lowest_tps = min((tps for stage in stages for tps in (stage.from_tps, stage.to_tps)), default=None)
    return bool(measure.actions) or (lowest_tps is not None and lowest_tps * measure.stall_limit_s < _MANY_DUE)
