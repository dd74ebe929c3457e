"""Waiting for what sends no notification."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_Value = TypeVar("_Value")
_LOOK_AGAIN_S = 0.01


def wait_until(condition: Callable[[], _Value], what: str = "the condition", timeout_s: float = 30.0) -> _Value:
    """Wait until `condition` is true, and return its value; fail after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not true after {timeout_s:g} s: {what}"
        time.sleep(_LOOK_AGAIN_S)
    return value


def runs(program: str, words: str) -> Callable[[], bool]:
    """Whether a command is under way, one of whose arguments has `words` in it."""

    def look() -> bool:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                argv = (process / "cmdline").read_text(errors="replace").split("\0")
            except OSError:
                continue  # it has ended
            if argv[0] == program and any(words in word for word in argv):
                return True
        return False

    return look
