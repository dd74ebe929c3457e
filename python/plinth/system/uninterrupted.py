"""Work that a signal must not cut in two, such as starting a command: nobody would know the process, or end it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_of_thread = threading.local()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """While it is entered, a signal that would raise here raises a moment after it (`run.interrupt`). For short work only."""
    _of_thread.depth = getattr(_of_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _of_thread.depth -= 1


def is_uninterrupted() -> bool:
    """Whether this thread is in `uninterrupted`."""
    return getattr(_of_thread, "depth", 0) > 0
