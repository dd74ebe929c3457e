"""Actions at set times of the load: each is done in its turn by a thread, and becomes an event of the trial."""

import bisect
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from plinth.model.action import Action, SqlAction, StatementAction
from plinth.model.action_base import LastingAction
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError, Reported
from plinth.model.fault import ContinueAction, FreeAction, ServerAction
from plinth.model.flashback import SnapshotAction
from plinth.model.trial import Event
from plinth.model.units import format_duration
from plinth.run.trial.effects import Effects
from plinth.system import cancel
from plinth.system.database import connect, connect_unpinned, database_errors

if TYPE_CHECKING:
    import psycopg

_CANCEL_TIMEOUT_S = 2.0
_JOIN_TIMEOUT_S = 10.0
_CANCEL_AGAIN_S = 0.1
_TOO_SHORT = "the load had ended when those before it were done: give measure.duration more time"


class _ActionEvent(NamedTuple):
    monotonic_ns: int
    kind: str
    text: str


class _Due(NamedTuple):
    """An action that begins at a time, or whose effect ends then."""

    at_s: float
    action: Action
    is_ending: bool = False


class ActionSchedule:
    """The actions of one trial. Leaving it ends them: what runs is cancelled, and what had not begun is an event, too.

    One that fails ends the schedule, and is why the trial fails: it was not measured as it was asked for. One session does
    all SQL, opened when the schedule is entered, so that its start disturbs nothing that is measured.

    `effects` does what is not SQL. What lasts is ended when its time is over, and everything once `wait_s` has passed since the
    measured phase began: clients that wait for a paused server, or a standby behind a partition, then end. An action of servers
    is brought to its end even if the load has ended before; and after `wait_s` commits that wait for a standby are
    cancelled, so that the load can end.
    """

    def __init__(
        self, actions: Sequence[Action], to: Connection, control: Connection, effects: Effects, wait_s: float = 0.0
    ) -> None:
        """`to`: where SQL of the experiment is run, as the load is; `control`: what is done by statements of Plinth itself."""
        self._effects = effects
        self._wait_s = wait_s
        self._token: cancel.CancelToken | None = None
        self._doing_fault = False
        self._actions = sorted(actions, key=lambda action: action.at_s)
        self._to, self._to_control = to, control
        self._ended = threading.Event()
        self._action_events: list[_ActionEvent] = []
        self._failure: str | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._control: psycopg.Connection[Any] | None = None
        self._executing: psycopg.Connection[Any] | None = None
        """By which a statement was last sent: where there are faults of servers, to the primary of that moment."""
        self._thread = threading.Thread(target=self._work, name="actions", daemon=True)
        self._measured_from_s: float | None = None

    def __enter__(self) -> Self:
        if self._actions:
            with database_errors("connect for the actions of the trial", "measure.action"):
                self._connection = connect_unpinned(self._to)
                if any(map(_is_by_control, self._actions)):
                    self._control = connect(self._to_control)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Reported) and self._token is not None:
            self._token.cancel(error)
        self.end()

    def begin(self, measured_in_s: float) -> None:
        """Say when the measured phase begins: in so many seconds, or before now. Later calls change nothing."""
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
                (self._executing or connection).cancel_safe(timeout=_CANCEL_TIMEOUT_S)
            self._thread.join(_JOIN_TIMEOUT_S)
        connection.close()
        if self._control is not None:
            self._control.close()

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
        """Return what was done, with times since the load's start, which was at `t0_monotonic_ns`."""
        return [
            Event(t_ns=one.monotonic_ns - t0_monotonic_ns, kind=one.kind, text=one.text) for one in self._action_events
        ]

    def _work(self) -> None:
        connection = self._connection
        assert connection is not None, "it is entered"
        left = [_Due(action.at_s, action) for action in self._actions]
        with contextlib.suppress(Reported), cancel.scope() as self._token:
            while left and self._failure is None and self._is_due(left[0].at_s):
                due = left.pop(0)
                if due.is_ending:
                    self._end_effect(due.action)
                elif self._do(due.action, connection) and (ending := self._ending_of(due.action)):
                    bisect.insort_right(left, ending, key=lambda due: due.at_s)
            if self._failure is None:
                self._is_due(self._wait_s)
            for action in self._effects.lasting():
                self._end_effect(action)
            self._cancel_waits()
        why = "an action before it failed" if self._failure else "the load had ended"
        for due in left:
            if not due.is_ending:
                self._note("action_missed", f"{due.action.title()}: not done, as {why}")
                if isinstance(due.action, ServerAction) and not isinstance(due.action, ContinueAction | FreeAction):
                    # Without it the trial was another than what was asked for. The others end with the measured time in any case.
                    self._failure = self._failure or f"the action {due.action.title()} was not done: {_TOO_SHORT}"

    def _cancel_waits(self) -> None:
        """Cancel commits that wait for a standby, from the end of the measured phase to that of the load."""
        if self._effects.faults is not None and self._is_due(self._wait_s):
            while not self._ended.wait(_CANCEL_AGAIN_S):
                self._effects.faults.cancel_waits()

    def _is_due(self, at_s: float) -> bool:
        """Wait for a time of the measured phase; whether that came before the end of the load."""
        assert self._measured_from_s is not None, "it has begun"
        due_s = self._measured_from_s + at_s
        return not self._ended.wait(max(0.0, due_s - time.monotonic()))

    def _ending_of(self, action: Action) -> _Due | None:
        """Return when the effect of an action that was just done ends, where that is said."""
        assert self._measured_from_s is not None, "it has begun"
        if not isinstance(action, LastingAction) or action.for_s is None:
            return None
        return _Due(time.monotonic() - self._measured_from_s + action.for_s, action, is_ending=True)

    def _do(self, action: Action, connection: "psycopg.Connection[Any]") -> bool:
        """Return whether it was done."""
        if reason := self._effects.lacks(action):
            self._note("action_missed", f"{action.title()}: not done, as {reason}")
            return False
        return self._timed(action, action.what(), lambda: self._work_on(action, connection))

    def _end_effect(self, action: Action) -> None:
        if isinstance(action, LastingAction) and self._effects.is_in_force(action):
            self._timed(action, action.ending(), lambda: self._effects.end(action))

    def _timed(self, action: Action, what: str, work: Callable[[], object]) -> bool:
        """Do something, between two events; whether that went well."""
        began_ns = self._note("action_start", what)
        self._doing_fault = not isinstance(action, StatementAction)
        failure = _failure_of(work)
        self._doing_fault = False
        took = format_duration(round((time.monotonic_ns() - began_ns) / 1e9, 3))
        if failure is None:
            self._note("action_end", f"{what}: took {took}")
        elif self._ended.is_set() and not isinstance(action, ServerAction | SnapshotAction):
            self._note("action_end", f"{what}: cancelled after {took}, as the load had ended")
        else:
            self._note("action_end", f"{what}: failed after {took}: {failure}")
            self._failure = f"the action {action.title()} failed: {failure.splitlines()[0]}"
        return failure is None

    def _work_on(self, action: Action, connection: "psycopg.Connection[Any]") -> None:
        if not isinstance(action, StatementAction):
            self._effects.do(action, self._ended)
        elif (faults := self._effects.faults) is not None:  # the primary may be another by now
            opened = connect(faults.control()) if _is_by_control(action) else connect_unpinned(self._to)
            with opened as self._executing:
                self._executing.execute(action.statement().encode())
        else:
            self._executing = self._control if self._control is not None and _is_by_control(action) else connection
            self._executing.execute(action.statement().encode())

    def _note(self, kind: str, text: str) -> int:
        now_ns = time.monotonic_ns()
        self._action_events.append(_ActionEvent(now_ns, kind, text))
        return now_ns


def _is_by_control(action: Action) -> bool:
    """Return whether an action is a statement of Plinth itself, and not SQL of the experiment."""
    return isinstance(action, StatementAction) and not isinstance(action, SqlAction)


def _failure_of(work: Callable[[], object]) -> str | None:
    """Do it; why it failed."""
    import psycopg

    try:
        work()
    except psycopg.Error as error:
        return str(error).strip() or type(error).__name__
    except PlinthError as error:
        return error.message
    return None
