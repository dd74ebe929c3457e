"""Work that goes on while a block runs, such as reporting how far the block is."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_JOIN_TIMEOUT_S = 5.0


@contextmanager
def in_background(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` in a thread of this name while the block runs; at its end the event is set, on which `work` has to return."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_JOIN_TIMEOUT_S)
