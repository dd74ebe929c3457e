"""Agents as processes on this machine: the simplest fleet, for trying one out and for measuring what a fleet costs."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from plinth.fleet.executors import Started
from plinth.fleet.executors.ending import end_children
from plinth.fleet.link import Link
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner

_MOST_BYTES = 64 * 1024


class LocalExecutor:
    """Starts `machines` agents. They need not be in the journal: each ends when nobody holds the other end of its connection."""

    def __init__(self, machines: int, runner: Runner, log: LogFile) -> None:
        self._machines = machines
        self._runner = runner
        self._log = log

    @contextmanager
    def agents(self) -> Iterator[list[Started]]:
        """While it is entered, the agents run; those that do not end with their connections are killed."""
        started: list[Started] = []
        children: list[Child] = []
        said = partial(self._log.tail, _MOST_BYTES, self._log.size_bytes())
        try:
            for number in range(1, self._machines + 1):
                ours, theirs = socket.socketpair()
                started.append(Started(f"local-{number}", Link(ours), said))
                with theirs:
                    argv = [sys.executable, "-m", "plinth", "agent", "--descriptor", str(theirs.fileno())]
                    children.append(self._runner.spawn(argv, log=self._log, pass_fds=[theirs.fileno()]))
            yield started
        finally:
            for one in started:
                one.link.close()
            end_children(children)
