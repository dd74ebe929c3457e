"""Ends daemons of Plinth that hang, so that processes that wait for them get an error."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from plinth.model.errors import PlinthError
from plinth.model.step import Undo
from plinth.system.undo import UndoHandlers

_INTERVAL_S = 1.0


def abort_hung(what: Undo, handlers: UndoHandlers) -> None:
    """Called before any step is undone: ends hung daemons, so that users of their disks do not wait forever."""
    handler = handlers.get(what.kind)
    if handler is not None and handler.abort_hung is not None:
        handler.abort_hung(what)


@contextmanager
def ending_hung_daemons(made: Callable[[], Iterable[Undo]], handlers: UndoHandlers) -> Iterator[list[str]]:
    """While it is entered, a thread looks after the daemons of what is `made`, and ends each that hangs.

    A process that waits for it, in whatever call, then continues with an error. Yields what was ended and why, for people.
    """
    ended: list[str] = []
    left = threading.Event()

    def tell(reason: str) -> None:
        if reason not in ended:
            ended.append(reason)

    def look() -> None:
        while not left.wait(_INTERVAL_S):
            for what in made():
                try:
                    _end_hung(what, handlers, left, tell)
                except PlinthError as error:
                    tell(f"{error.message} ({error.where})")

    threading.Thread(target=look, name="looks for what hangs", daemon=True).start()
    try:
        yield ended
    finally:
        left.set()  # do not join the thread: it may be waiting for a daemon's answer


def _end_hung(what: Undo, handlers: UndoHandlers, left: threading.Event, tell: Callable[[str], None]) -> None:
    """End hung daemons unless that was stopped. Report them first, since waiting processes get their error at once."""
    handler = handlers.get(what.kind)
    hung = handler.find_hung(what) if handler is not None and handler.find_hung is not None else None
    if hung is not None and not left.is_set():
        tell(hung.reason)
        hung.end()
