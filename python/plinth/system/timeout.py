"""Calls to a file system with a timeout, since a file system whose disk or daemon hangs may never answer.

A process that waits in the kernel for such a disk receives no signal. So each call runs in a new thread, which is
abandoned when the timeout expires.
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

ANSWER_TIMEOUT_S = 30.0
"""Longer than a slow but sound disk takes to answer."""
_POLL_S = 0.05
T = TypeVar("T")


def call_with_timeout(function: Callable[[], T], path: Path, timeout_s: float | None = None) -> T:
    """Call `function`, which accesses `path`, and return its result or raise its exception.

    Raises TimeoutError, which is an OSError, when it has not returned within `timeout_s` (by default ANSWER_TIMEOUT_S).
    """
    timeout_s = ANSWER_TIMEOUT_S if timeout_s is None else timeout_s
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(function())
        except Exception as error:  # noqa: BLE001 - any error is the caller's
            answer.set_exception(error)

    threading.Thread(target=work, name=f"accesses {path}", daemon=True).start()
    deadline = monotonic() + timeout_s
    while not wait([answer], min(_POLL_S, max(0.0, deadline - monotonic()))).done:
        cancel.check()
        if monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {timeout_s:g} s", str(path))
    return answer.result()


def statvfs_with_timeout(path: Path, timeout_s: float | None = None) -> os.statvfs_result:
    """Return statvfs(3) of `path`, with the timeout of `call_with_timeout`."""
    return call_with_timeout(lambda: os.statvfs(path), path, timeout_s)
