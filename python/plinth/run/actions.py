"""Actions at set times beside the load: each is done in its turn by a thread, and becomes an event of the trial."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from plinth.model.action import Action, NetworkAction
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError, Reported
from plinth.model.fault import ServerAction
from plinth.model.trial import Event
from plinth.model.units import format_duration
from plinth.run.faults import ServerFaults
from plinth.system import cancel
from plinth.system.database import connect, database_errors

if TYPE_CHECKING:
    import psycopg

_CANCEL_TIMEOUT_S = 2.0
_JOIN_TIMEOUT_S = 10.0
_CANCEL_AGAIN_S = 0.1


class _ActionEvent(NamedTuple):
    monotonic_ns: int
    kind: str
    text: str


class ActionSchedule:
    """The actions of one trial. Leaving it ends them: what runs is cancelled, and what had not begun is an event, too.

    One that fails ends the schedule, and is why the trial fails: it was not measured as it was asked for. One session does
    all SQL, opened when the schedule is entered, so that its start disturbs nothing that is measured.

    `change_links` changes the emulated network; None where there are no standbys, which actions of it then say. `faults` does
    what is about servers. An action of it is brought to its end even if the load has ended before; and once `wait_s` has passed
    since the measured phase began, commits that wait for a standby are cancelled, so that the load can end.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        to: Connection,
        change_links: Callable[[NetworkAction], None] | None = None,
        faults: ServerFaults | None = None,
        wait_s: float = 0.0,
    ) -> None:
        self._faults = faults
        self._wait_s = wait_s
        self._token: cancel.CancelToken | None = None
        self._doing_fault = False
        self._change_links = change_links
        self._actions = sorted(actions, key=lambda action: action.at_s)
        self._to = to
        self._ended = threading.Event()
        self._action_events: list[_ActionEvent] = []
        self._failure: str | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._work, name="actions", daemon=True)
        self._measured_from_s: float | None = None

    def __enter__(self) -> Self:
        if self._actions:
            with database_errors("connect for the actions of the trial", "measure.action"):
                self._connection = connect(self._to)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Reported) and self._token is not None:
            self._token.cancel(error)
        self.end()

    def begin(self, measured_in_s: float) -> None:
        """It is known when the measured phase begins: in so many seconds, or before now. Later calls change nothing."""
        if self._measured_from_s is None:
            self._measured_from_s = time.monotonic() + measured_in_s
            if self._actions:
                self._thread.start()

    def end(self) -> None:
        """End the schedule, now that the load has ended."""
        import psycopg

        self._ended.set()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._thread.is_alive() and self._doing_fault:
            self._await_fault()
        if self._thread.is_alive():
            with contextlib.suppress(psycopg.Error):  # of a server that is gone nothing runs any more
                connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
            self._thread.join(_JOIN_TIMEOUT_S)
        connection.close()

    def _await_fault(self) -> None:
        """Wait for the end of what is done to servers, whose waits have timeouts; it is cancelled with the trial."""
        try:
            while self._doing_fault and self._thread.is_alive():
                self._thread.join(_CANCEL_AGAIN_S)
                cancel.check()
        except Reported as reason:
            if self._token is not None:
                self._token.cancel(reason)
            raise

    @property
    def failure(self) -> str | None:
        """Why the trial was not what was asked for: an action failed."""
        return self._failure

    def events(self, t0_monotonic_ns: int) -> list[Event]:
        """What was done, with times since the load's start, which was at `t0_monotonic_ns`."""
        return [
            Event(t_ns=one.monotonic_ns - t0_monotonic_ns, kind=one.kind, text=one.text) for one in self._action_events
        ]

    def _work(self) -> None:
        connection = self._connection
        assert connection is not None, "it is entered"
        left = list(self._actions)
        with contextlib.suppress(Reported), cancel.scope() as self._token:
            while left and self._is_due(left[0].at_s) and self._do(left.pop(0), connection):
                pass
            self._end_waits()
        why = "an action before it failed" if self._failure else "the load had ended"
        for action in left:
            self._note("action_missed", f"{action.title()}: not done, as {why}")

    def _end_waits(self) -> None:
        """Cancel commits that wait for a standby, from the end of the measured phase to that of the load."""
        if self._faults is not None and self._is_due(self._wait_s):
            while not self._ended.wait(_CANCEL_AGAIN_S):
                self._faults.cancel_waits()

    def _is_due(self, at_s: float) -> bool:
        """Wait for a time of the measured phase; whether that came before the end of the load."""
        assert self._measured_from_s is not None, "it has begun"
        due_s = self._measured_from_s + at_s
        return not self._ended.wait(max(0.0, due_s - time.monotonic()))

    def _do(self, action: Action, connection: "psycopg.Connection[Any]") -> bool:
        """Whether it was done, so that the next may follow."""
        if isinstance(action, NetworkAction) and self._change_links is None:
            self._note("action_missed", f"{action.title()}: not done, as there are no standbys")
            return True
        began_ns = self._note("action_start", action.what())
        failure = self._failure_of(action, connection)
        self._doing_fault = False
        took = format_duration(round((time.monotonic_ns() - began_ns) / 1e9, 3))
        if failure is None:
            self._note("action_end", f"{action.what()}: took {took}")
        elif self._ended.is_set() and not isinstance(action, ServerAction):
            self._note("action_end", f"{action.what()}: cancelled after {took}, as the load had ended")
        else:
            self._note("action_end", f"{action.what()}: failed after {took}: {failure}")
            self._failure = f"the action {action.title()} failed: {failure.splitlines()[0]}"
        return failure is None

    def _failure_of(self, action: Action, connection: "psycopg.Connection[Any]") -> str | None:
        """Do it; why it failed."""
        import psycopg

        try:
            if isinstance(action, NetworkAction):
                assert self._change_links is not None, "there are links"
                self._change_links(action)
            elif isinstance(action, ServerAction):
                assert self._faults is not None, "there are servers"
                self._doing_fault = True
                self._faults.do(action, self._ended)
            elif self._faults is not None:  # the primary may be another by now
                with connect(self._to) as fresh:
                    fresh.execute(action.statement().encode())
            else:
                connection.execute(action.statement().encode())
        except psycopg.Error as error:
            return str(error).strip() or type(error).__name__
        except PlinthError as error:
            return error.message
        return None

    def _note(self, kind: str, text: str) -> int:
        now_ns = time.monotonic_ns()
        self._action_events.append(_ActionEvent(now_ns, kind, text))
        return now_ns
