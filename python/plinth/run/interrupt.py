"""Ctrl-C, SIGTERM, a terminal that goes: raised as Interrupted where work may stop, held back where things are being undone."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from plinth.model.errors import Interrupted, StorageBroken
from plinth.system.uninterrupted import is_uninterrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_AFTER_S = 0.02
_LONGEST_WAIT_S = 2.0


class InterruptGuard:
    """While it is entered, the first signal raises Interrupted in the main thread, wherever that is.

    The journal is written before each step, so that work may end at any instant. Within `shielded` (undoing what
    was made) signals are only told to `held_back`. Python cannot pass on what is raised in some callbacks, those of fork
    among them, a thread that is being started would fail of it, and some work must not be cut in two (`uninterrupted`):
    there it is raised a moment later. Other threads end all work by `stop`, and a piece of it by `call_off`.
    """

    def __init__(self, held_back: Callable[[str], None]) -> None:
        self._held_back = held_back
        self._shielded = False
        self._previous: dict[signal.Signals, object] = {}
        self._lost: Interrupted | None = None
        self._waits_since_s: float | None = None
        self._may_be_called_off = False
        self._called_off: StorageBroken | None = None

    def __enter__(self) -> "InterruptGuard":
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in _SIGNALS if not _is_for_nohup(number)]
            self._previous = {number: signal.signal(number, self._on_signal) for number in heard}
            self._previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._raise_again)
            self._unraisable_hook, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous:
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.unraisablehook = self._unraisable_hook
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Hold signals back, because what is being done must be done to its end."""
        before, self._shielded = self._shielded, True
        self._lost = None  # the way out is under way
        try:
            yield
        finally:
            self._shielded = before

    @contextmanager
    def callable_off(self) -> Iterator[None]:
        """What is done in it may be ended by `call_off`; what comes after it goes on."""
        self._called_off, self._may_be_called_off = None, True
        try:
            yield
        finally:
            self._may_be_called_off = False
        if self._called_off is not None:  # in this very moment: the signal is still on its way
            raise self._called_off

    def call_off(self, reason: StorageBroken) -> None:
        """Raise `reason` in the main thread, where it is in `callable_off`; called by another thread."""
        if self._may_be_called_off and self._previous:
            self._called_off = reason
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def stop(self, reason: Interrupted) -> None:
        """Raise `reason` in the main thread, as a signal would; nothing where things are being undone already."""
        if not self._shielded and self._previous:
            self._lost = reason
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._shielded:
            self._held_back(f"{name}: still undoing what this run made; `plinth clean` would have to do it otherwise")
            return
        self._shielded = True  # what follows is the way out, until the guard is left
        reason = Interrupted(f"interrupted by {name}")
        if self._must_wait(frame):
            self._lost = reason
        else:
            raise reason

    def _on_unraisable(self, unraisable: "sys.UnraisableHookArgs") -> None:
        match unraisable.exc_value:
            case Interrupted() as lost:
                self._lost = lost
            case StorageBroken() as called_off:
                self._called_off = called_off
            case _:
                self._unraisable_hook(unraisable)
                return
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)

    def _raise_again(self, number: int, frame: FrameType | None) -> None:
        if self._must_wait(frame):
            return
        called_off, self._called_off = self._called_off, None
        if called_off is not None and self._may_be_called_off:
            raise called_off
        lost, self._lost = self._lost, None
        if lost is not None:
            self._shielded = True
            raise lost

    def _must_wait(self, frame: FrameType | None) -> bool:
        """Whether nothing may be raised right here, so that it is tried again; not for long, for a start may hang, too."""
        now_s = time.monotonic()
        if not (is_uninterrupted() or _starts_a_thread(frame)):
            self._waits_since_s = None
            return False
        if self._waits_since_s is None:
            self._waits_since_s = now_s
        if now_s - self._waits_since_s > _LONGEST_WAIT_S:
            self._waits_since_s = None  # the next one may wait as long
            return False
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)
        return True


def _starts_a_thread(frame: FrameType | None) -> bool:
    """Whether a thread is being started: one that its starter has given up fails with a KeyError of Python's own."""
    while frame is not None:
        if frame.f_code is threading.Thread.start.__code__:
            return True
        frame = frame.f_back
    return False


def _is_for_nohup(number: signal.Signals) -> bool:
    """Whether nohup(1), or what does the same, asked that a terminal that goes is no reason to end."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN
