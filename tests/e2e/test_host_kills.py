"""Runs with a server on another host that are cut at instants of all kinds, on either side or in between: nothing is left on the host."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from hosts_here import host_here
from own_sshd import own_sshd
from plinth.observe.proc import PARENT, stat_fields
from waiting import wait_until

pytestmark = pytest.mark.long
EXPERIMENT = """\
spec = 1
name = "cut"
question = "What is left?"
[storage.far]
host = "db1"
kind = "loop"
size = "600MiB"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
[matrix]
storage = ["far"]
[measure]
warmup = "100ms"
duration = "1s"
repeats = 6
aa = false
probe = "10ms"
"""
LONGEST_S = 12.0
"""About as long as the run takes."""
INSTANTS = 10


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with own_sshd(tmp_path_factory.mktemp("sshd") / "own", ("db1",)) as running:
        yield running


def _ssh_of(coordinator: int) -> list[int]:
    """The clients of ssh that the coordinator has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text() == "ssh\n" and int(stat_fields(str(folder))[PARENT]) == coordinator:
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("cut", ["coordinator", "agent", "connection"])
@pytest.mark.parametrize("number", range(INSTANTS))
def test_nothing_is_left_of_a_run_that_is_cut(project, sshd, monkeypatch, nothing_left, cut, number):
    db1 = host_here("db1", sshd, project.folder)
    monkeypatch.setenv("PATH", db1.environment["PATH"])
    project.write(EXPERIMENT + db1.toml)
    running = project.start()
    time.sleep(random.Random(f"{cut} {number}").uniform(0, LONGEST_S))  # any instant will do
    match cut:
        case "coordinator":
            running.signal(signal.SIGKILL)
        case "agent":
            for pid in db1.agents():
                os.kill(pid, signal.SIGKILL)
        case _:
            for pid in _ssh_of(running.process.pid):
                os.kill(pid, signal.SIGSTOP)
    code, said = running.end(timeout_s=180)
    assert code in (-signal.SIGKILL, 0, 1, 3), said
    wait_until(lambda: not db1.agents(), timeout_s=90)
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    wait_until(lambda: not db1.left(), timeout_s=90)
    if (project.bundle / "plan.json").exists():
        assert all(trial["status"] in ("complete", "failed") for trial in project.trials())
    nothing_left()
