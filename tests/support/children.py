"""Forked children, for what must be killed, run as another user, or be alone in a namespace."""

import gc
import os
import pickle
import pwd
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple


class ChildResult(NamedTuple):
    """How a child ended: killed by `signal`, or with what its function returned."""

    signal: int | None
    value: Any


def run_in_child(function: Callable[[], Any], user: str | None = None) -> ChildResult:
    """Run `function` in a forked child, for good as `user` when one is given. What it raises fails the test."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        gc.disable()  # the parent's garbage is the parent's: DuckDB's, which has threads, crashes where there are none
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(_outcome(function, user), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return ChildResult(os.WTERMSIG(status), None)
    assert answer, "the child gave no answer"
    value, failure = pickle.loads(answer)
    assert failure is None, f"in the child:\n{failure}"
    return ChildResult(None, value)


def _outcome(function: Callable[[], Any], user: str | None) -> tuple[Any, str | None]:
    try:
        if user is not None:
            found = pwd.getpwnam(user)
            os.setgroups([])
            os.setresgid(found.pw_gid, found.pw_gid, found.pw_gid)
            os.setresuid(found.pw_uid, found.pw_uid, found.pw_uid)
        return function(), None
    except BaseException:  # noqa: BLE001 - of any kind: the parent must be told
        return None, traceback.format_exc()
