"""Cooperative cancellation: work stops where it waits, or where it asks; nothing is raised into arbitrary code.

A `CancelToken` is an event with a file descriptor. Code that wants work to end (a signal's handler, a thread that watches a
storage) cancels the token. Code that waits (for a process, a socket, some time) waits for the token, too, by `sleep` and `poll`
of this module, and long work that does not wait calls `check` now and then. The reason is raised there. While that exception is
propagated or handled nothing is raised: the way out may wait itself. Work that caught it as if it were an error of what it
tried, and continues, is ended at its next wait.

The token that applies is a matter of the thread: a thread has none until it enters `scope`, so that threads which observe or
clean up end in another way.
"""

import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import ceil
from time import monotonic

from plinth.model.errors import Reported


class CancelToken:
    """A request to end work, with its reason. `cancel` may be called by any thread and by a signal handler.

    What cancels the token `within` that it was made in cancels it, too.
    """

    def __init__(self, within: "CancelToken | None" = None) -> None:
        self._within = within
        self._event, self.wakeup = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        """`wakeup` is for signal.set_wakeup_fd: the handler that is to cancel may run only once a wait has returned."""
        # Appending to a list needs no lock, which a signal handler could not take.
        self._reasons: list[Reported] = []

    def __del__(self) -> None:
        os.close(self._event)
        os.close(self.wakeup)

    def cancel(self, reason: Reported) -> None:
        """Have `reason` raised where the work next waits or checks. Only the first reason counts."""
        self._reasons.append(reason)
        with suppress(BlockingIOError):  # full, and therefore readable
            os.write(self.wakeup, b"x")

    @property
    def is_cancelled(self) -> bool:
        """Whether the token was cancelled, even if the reason was already raised."""
        return bool(self._reasons) or (self._within is not None and self._within.is_cancelled)

    def check(self) -> None:
        """Raise the reason if the token was cancelled, unless that is what is being handled already."""
        if self.is_pending:
            raise self._reasons[0]
        if self._within is not None:
            self._within.check()

    def drain(self) -> None:
        """Drain bytes of signals that did not cancel the token, so that the next wait blocks."""
        with suppress(BlockingIOError):
            os.read(self._event, select.PIPE_BUF)
        if self._within is not None:
            self._within.drain()

    def descriptors(self) -> list[int]:
        """Return the descriptors that become readable on cancellation, except of tokens whose reason is being handled."""
        outer = [] if self._within is None else self._within.descriptors()
        return outer if self._reasons and not self.is_pending else [self._event, *outer]

    @property
    def is_pending(self) -> bool:
        """Whether the token has a reason that is still to be raised here."""
        return bool(self._reasons) and not _is_handled(self._reasons[0])


def _is_handled(reason: Reported) -> bool:
    """Return whether this thread is in an `except`, `finally` or `__exit__` on account of `reason`, or of an error that came of it."""
    error = sys.exception()
    while error is not None and error is not reason:
        error = error.__context__
    return error is reason


_current: ContextVar[CancelToken | None] = ContextVar("cancel token", default=None)


@contextmanager
def scope() -> Iterator[CancelToken]:
    """Run a piece of work that can be cancelled by the token, or with the work around it. A reason that comes as it ends is
    raised, too."""
    token = CancelToken(_current.get())
    before = _current.set(token)
    try:
        yield token
    finally:
        _current.reset(before)
    if token.is_pending:
        token.check()


@contextmanager
def masked() -> Iterator[None]:
    """Run work that must not be cancelled, such as undoing steps."""
    before = _current.set(None)
    try:
        yield
    finally:
        _current.reset(before)


def check() -> None:
    """Raise the reason if this work was cancelled: for long work without waits, and for callers that wait in native code."""
    token = _current.get()
    if token is not None:
        token.check()


def sleep(duration_s: float) -> None:
    """Wait for `duration_s` seconds. Raises the reason if the work is cancelled."""
    deadline = monotonic() + duration_s
    while (left_s := deadline - monotonic()) > 0:
        poll({}, left_s)


def poll(events: Mapping[int, int], timeout_s: float | None) -> dict[int, int]:
    """Return, by poll(2), the events that came of each file descriptor; nothing when `timeout_s` passed before, or when a
    signal came that cancels nothing. None waits forever.

    Raises the reason when the work is to end.
    """
    check()
    token = _current.get()
    asked = select.poll()
    for descriptor, mask in events.items():
        asked.register(descriptor, mask)
    for descriptor in [] if token is None else token.descriptors():
        asked.register(descriptor, select.POLLIN)
    came = dict(asked.poll(None if timeout_s is None else max(0, ceil(timeout_s * 1000))))
    check()
    if token is not None and not came.keys() <= events.keys():
        token.drain()
    return {descriptor: mask for descriptor, mask in came.items() if descriptor in events}
