"""Waits for a write of pg_control, by which a checkpoint becomes the one that recovery begins at."""

import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.errors import RunError
from plinth.system import cancel
from plinth.system.regular_file import open_regular_file, read_small_file

_POLL_S = 0.001  # how soon after its write it is seen
_TIMEOUT_S = 60.0


class ControlFileWatch(Protocol):
    """Sees the next write of pg_control in a data directory."""

    @abstractmethod
    def await_write(self, is_done: Callable[[], bool] = lambda: False) -> int:
        """Wait until it is written; returns CLOCK_MONOTONIC in ns of just before. Its flush follows the write.

        `is_done`: whether that by which it is written has ended. Raises RunError when it has not been written then.
        """


@complete
class LocalControlFileWatch(ControlFileWatch):
    """Reads pg_control again and again."""

    def __init__(self, data_directory: Path) -> None:
        self._path = data_directory / "global" / "pg_control"
        self._before = read_small_file(self._path)

    @override
    def await_write(self, is_done: Callable[[], bool] = lambda: False) -> int:
        deadline = time.monotonic() + _TIMEOUT_S
        with open_regular_file(self._path) as file:
            while True:
                looked_ns, has_ended = time.monotonic_ns(), is_done()
                file.seek(0)
                if file.read() != self._before:
                    return looked_ns
                if has_ended or time.monotonic() > deadline:
                    raise RunError("pg_control was not written by the checkpoint", where=str(self._path))
                cancel.sleep(_POLL_S)
