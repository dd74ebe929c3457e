"""Kills this process after its n-th call that changes something, so that every instant of a crash can be tried."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from plinth.system.runner import Runner

_CHANGES = ("mkdir", "open", "ftruncate", "fchmod", "fchown", "unlink", "rmdir", "replace")


def kill_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL right after call number `calls` that makes, changes or removes a file, or runs a command."""
    count = _counter(calls)

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            if function is not os_open or args[1] & os.O_CREAT:
                count()
            return result

        return call

    os_open = os.open
    for name in (*_CHANGES, "write"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))
    monkeypatch.setattr(Runner, "run", dying(Runner.run))


def kill_in_write(writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL in the middle of write number `writes`: half of it is in the file."""
    count = _counter(writes)
    write = os.write

    def torn(fd: int, data: bytes) -> int:
        half = len(data) // 2
        written = write(fd, data[:half])
        count()
        return written + write(fd, data[half:])

    monkeypatch.setattr(os, "write", torn)


def _counter(last: int) -> Callable[[], None]:
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)

    return count
