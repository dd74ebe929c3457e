"""Ctrl-C, SIGTERM and SIGHUP cancel the work, which ends where it waits or checks for it (`system.cancel`)."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from plinth.model.errors import Interrupted
from plinth.system import cancel

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptGuard:
    """While it is entered, the first signal cancels the work with Interrupted; `held_back` is told of later ones.

    The journal is written before each step, so that work may end at any of its waits. What was made is undone within
    `shielded`, where nothing is cancelled. Other threads end all work by `stop`, and another calls `held_back`.
    """

    def __init__(self, held_back: Callable[[str], None]) -> None:
        self._held_back = held_back
        self._is_shielded = False
        self._left = ExitStack()
        self._telling: list[threading.Thread] = []

    def __enter__(self) -> "InterruptGuard":
        self._token = self._left.enter_context(cancel.scope())
        if threading.current_thread() is threading.main_thread():
            before = signal.set_wakeup_fd(self._token.wakeup, warn_on_full_buffer=False)
            self._left.callback(signal.set_wakeup_fd, before)
            for number in _SIGNALS:
                if not _is_for_nohup(number):
                    self._left.callback(signal.signal, number, signal.signal(number, self._on_signal))
        return self

    def __exit__(self, *raised: object) -> bool | None:
        for thread in self._telling:
            thread.join()
        return self._left.__exit__(*raised)  # type: ignore[arg-type]

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Hold signals back, because what is being done must be done to its end."""
        before, self._is_shielded = self._is_shielded, True
        try:
            with cancel.masked():
                yield
        finally:
            self._is_shielded = before

    def stop(self, reason: Interrupted) -> None:
        """End the work for `reason`, as a signal would; nothing where things are being undone already."""
        if not self._is_shielded:
            self._token.cancel(reason)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._is_shielded or self._token.is_cancelled:
            text = f"{name}: still undoing what this run made; `plinth clean` would have to do it otherwise"
            # By another thread: this one may be writing to the same stream, which cannot be entered twice.
            self._telling.append(threading.Thread(target=self._held_back, args=[text]))
            self._telling[-1].start()
        else:
            self._token.cancel(Interrupted(f"interrupted by {name}"))


def _is_for_nohup(number: signal.Signals) -> bool:
    """Return whether SIGHUP is ignored, as nohup(1) arranges it."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN
