"""What the agents of a fleet do together, from their start to their end."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Generic, Protocol, TypeVar

from plinth.fleet.asking import ask_all
from plinth.fleet.executors.executor import Executor, Started
from plinth.fleet.protocol import Done, Request
from plinth.model.errors import RunError
from plinth.system import cancel

POLL_S = 0.2
"""From one look at all agents to the next."""
_MOST_CONNECTING_S = 600.0
"""For all clients of an agent to connect; an agent that always says that they are about to would hold up the run."""
_Result = TypeVar("_Result")


class Machine(Protocol):
    """One agent as the coordinator sees it."""

    started: Started

    @property
    def has_ended(self) -> bool:
        """Whether it has done its part."""
        ...


_Machine = TypeVar("_Machine", bound=Machine)


class FleetTask(ABC, Generic[_Machine]):
    """Agents run from `_open` until all have ended, something fails, or `close`; they are asked at intervals how far they are."""

    def __init__(self, executor: Executor) -> None:
        self._machines: list[_Machine] = []
        self._is_open = False
        self._is_stopping = False
        self._next_poll_at = 0.0
        self._executor = executor
        self._stack = ExitStack()

    @abstractmethod
    def _look(self) -> None:
        """Ask all agents that have not ended how far they are. Raises RunError if one is lost or has failed."""

    @abstractmethod
    def _finish(self) -> None:
        """Collect what agents have that have all ended, before they are closed."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end for at most `timeout_s` seconds; return whether it has come. Raises RunError if an agent is lost."""
        deadline = time.monotonic() + timeout_s
        while self._is_open:
            left_s = deadline - time.monotonic()
            due_s = self._next_poll_at - time.monotonic()
            if due_s > left_s:
                cancel.sleep(max(left_s, 0))
                return False
            cancel.sleep(max(due_s, 0))
            self._guarded(self._poll)
            if all(one.has_ended for one in self._machines):
                self._guarded(self._finish)
                self.close()
        return True

    def close(self) -> None:
        """End the agents, even if they still work. Those of a task that has ended have ended."""
        self._is_open = False
        with cancel.masked():
            self._stack.close()

    def _open(self) -> list[Started]:
        """Start the agents. Raises RunError when one cannot be started."""
        self._is_open = True
        return self._stack.enter_context(self._executor.agents())

    def _wait_for_connections(self, is_connecting: Callable[[_Machine], bool]) -> None:
        """Look at the agents until none is connecting. Raises RunError with the machines that are after 10 min."""
        deadline = time.monotonic() + _MOST_CONNECTING_S
        while True:
            self._poll()
            if not (late := [one.started.name for one in self._machines if is_connecting(one)]):
                return
            if time.monotonic() > deadline:
                raise RunError(f"not connected after {_MOST_CONNECTING_S:,.0f} s", where=f"machine {', '.join(late)}")
            cancel.sleep(POLL_S / 4)

    def _poll(self) -> None:
        self._next_poll_at = time.monotonic() + POLL_S
        self._look()

    def _ask_to_stop(self) -> None:
        self._is_stopping = True
        ask_all([one.started for one in self._machines if not one.has_ended], Request(kind="stop"), Done)

    def _guarded(self, act: Callable[[], _Result]) -> _Result:
        """Do it; any failure ends all agents, whose work would be without a result."""
        try:
            return act()
        except BaseException:
            self.close()
            raise
