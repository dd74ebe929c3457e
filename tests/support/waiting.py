"""Waiting for what sends no notification."""

import time
from collections.abc import Callable
from pathlib import Path


def until(happened: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Wait until `happened`; fails when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


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
