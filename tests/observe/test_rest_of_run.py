"""The run's own processes that are neither the server's nor the load engine's: those of other nodes, as they come and go."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from plinth.observe.processes import Processes, RunProcesses
from waiting import wait_until

PARENT = """
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    subprocess.Popen(["sleep", "60"])
"""


@pytest.fixture
def postmaster() -> Iterator[subprocess.Popen[str]]:
    """A process that starts a child for each line that it gets."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        subprocess.run(["pkill", "-P", str(process.pid)], check=False)
        process.kill()
        process.wait()


def test_sessions_that_another_node_opens_later_are_the_runs_own(postmaster: subprocess.Popen[str]) -> None:
    """As those of a standby are when it is promoted."""
    processes = Processes(RunProcesses(None, other_servers=(postmaster.pid,)))
    before = {member.pid for member in processes.rest_of_run()}
    assert postmaster.pid in before and os.getpid() not in before
    assert postmaster.stdin is not None
    postmaster.stdin.write("one\n")
    postmaster.stdin.flush()
    (new,) = wait_until(lambda: {member.pid for member in processes.rest_of_run()} - before)
    subprocess.run(["kill", str(new)], check=True)
    wait_until(lambda: new not in {member.pid for member in processes.rest_of_run()})
