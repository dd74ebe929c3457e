"""Agents as processes on this machine: the simplest fleet, for trying one out and for measuring what a fleet costs."""

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from plinth.fleet.executors import Started
from plinth.fleet.link import Link
from plinth.system import cancel
from plinth.system.log_file import LogFile
from plinth.system.process import Child, all_exit
from plinth.system.runner import Runner

_END_TIMEOUT_S = 3.0
"""An agent needs 2 s for a load that does not end."""
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
        said = partial(_said_since, self._log, _length(self._log))
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
            _end(children)


def _length(log: LogFile) -> int:
    """How much is in the log already."""
    file = log.to_read()
    if file is None:
        return 0
    with file:
        return file.seek(0, os.SEEK_END)


def _said_since(log: LogFile, offset: int) -> str:
    """The last that was added to the log: of all agents, which share it."""
    file = log.to_read()
    if file is None:
        return ""
    with file:
        file.seek(max(offset, file.seek(0, os.SEEK_END) - _MOST_BYTES))
        return file.read().decode(errors="replace")


def _end(children: list[Child]) -> None:
    """Wait for processes whose connections are closed, and kill those that do not end by themselves."""
    with cancel.masked(), contextlib.ExitStack() as stack:
        descriptors = [os.pidfd_open(child.pid) for child in children]
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        if not all_exit(descriptors, _END_TIMEOUT_S):
            for child, descriptor in zip(children, descriptors, strict=True):
                if not select.select([descriptor], [], [], 0)[0]:
                    os.kill(child.pid, signal.SIGKILL)  # a stopped one takes no other
        for child in children:
            child.wait()
