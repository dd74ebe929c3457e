"""Something that an agent starts in a separate thread, so that it answers meanwhile."""

import threading
from collections.abc import Callable

from plinth.model.errors import PlinthError


def in_one_line(error: PlinthError) -> str:
    """Return the error with the last of its further lines, in which a program that broke says why."""
    return "; ".join((str(error), *error.details[-1:]))


class Starting:
    """Runs `start`. `is_done` once it has returned; `failure` says why it has not."""

    def __init__(self, start: Callable[[], None]) -> None:
        self.is_done = False
        self.failure: str | None = None
        self._start = start
        threading.Thread(target=self._run, name="connect", daemon=True).start()

    def _run(self) -> None:
        try:
            self._start()
            self.is_done = True
        except PlinthError as error:
            self.failure = in_one_line(error)
        except Exception as error:  # noqa: BLE001 - what goes wrong in this thread is the coordinator's to hear
            self.failure = f"the agent broke: {type(error).__name__}: {error}"
