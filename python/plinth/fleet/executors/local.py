"""Agents as processes on this machine: the simplest fleet, for trying one out and for measuring what a fleet costs."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from plinth.fleet.executors.executor import Started
from plinth.fleet.protocol import AGENT_END_TIMEOUT_S, Link
from plinth.system.log_file import LogFile
from plinth.system.process import Child, wait_or_kill
from plinth.system.runner import Runner

_MOST_BYTES = 64 * 1024


class LocalExecutor:
    """Starts `machines` agents. They need not be in the journal: each ends when the other end of its connection is closed."""

    def __init__(self, machines: int, runner: Runner, log: LogFile) -> None:
        self._machines = machines
        self._runner = runner
        self._log = log

    @contextmanager
    def agents(self) -> Iterator[list[Started]]:
        """Run the agents until the context ends; those that do not end with their connections are killed."""
        started: list[Started] = []
        children: list[Child] = []
        said = partial(self._log.tail, _MOST_BYTES, self._log.size_bytes())
        try:
            for number in range(1, self._machines + 1):
                ours, theirs = socket.socketpair()
                started.append(Started(f"local-{number}", Link(ours), said))
                with theirs:
                    argv = [sys.executable, "-m", "plinth", "agent"]
                    children.append(self._runner.spawn_connected(argv, theirs, log=self._log))
            yield started
        finally:
            for one in started:
                one.link.close()
            wait_or_kill(children, AGENT_END_TIMEOUT_S)
