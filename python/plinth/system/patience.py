"""Questions to a file system that may never answer, as when its disk or its daemon hangs: asked with patience, but not
for ever.

Who waits in the kernel for such a disk can be reached by no signal. So a thread of its own asks, which waits in vain.
"""

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from time import monotonic
from typing import TypeVar

from plinth.system import cancel

ANSWER_PATIENCE_S = 30.0
"""So long an answer may take that no slow but sound disk keeps back longer."""
_POLL_S = 0.05
T = TypeVar("T")


def in_time(ask: Callable[[], T], path: Path, patience_s: float | None = None) -> T:
    """What `ask` returns or raises, which looks at `path`; TimeoutError, which is an OSError, when it takes too long."""
    patience_s = ANSWER_PATIENCE_S if patience_s is None else patience_s
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where it was asked
            answer.set_exception(error)

    threading.Thread(target=work, name=f"asks {path}", daemon=True).start()
    deadline = monotonic() + patience_s
    while not wait([answer], min(_POLL_S, max(0.0, deadline - monotonic()))).done:
        cancel.check()
        if monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {patience_s:g} s", str(path))
    return answer.result()


def space_of(path: Path, patience_s: float | None = None) -> os.statvfs_result:
    """statvfs(3) of `path`, in time."""
    return in_time(lambda: os.statvfs(path), path, patience_s)
