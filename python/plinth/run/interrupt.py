"""Ctrl-C and SIGTERM: raised as Interrupted where work may stop, held back where things are being undone."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from plinth.model.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN_AFTER_S = 0.02


class InterruptGuard:
    """While it is entered, the first signal raises Interrupted in the main thread, wherever that is.

    The journal is written before each step, so that work may end at any instant. Within `shielded` (undoing what
    was made) signals are only told to `held_back`. Python cannot pass on what is raised in some callbacks, those of
    fork among them; there it is raised again a moment later.
    """

    def __init__(self, held_back: Callable[[str], None]) -> None:
        self._held_back = held_back
        self._shielded = False
        self._previous: dict[signal.Signals, object] = {}
        self._lost: Interrupted | None = None

    def __enter__(self) -> "InterruptGuard":
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
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

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._shielded:
            self._held_back(f"{name}: still undoing what this run made; `plinth clean` would have to do it otherwise")
            return
        self._shielded = True  # what follows is the way out, until the guard is left
        raise Interrupted(f"interrupted by {name}")

    def _on_unraisable(self, unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, Interrupted):
            self._unraisable_hook(unraisable)
            return
        self._lost = unraisable.exc_value
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)

    def _raise_again(self, number: int, _: FrameType | None) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            raise lost
