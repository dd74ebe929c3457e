"""What tests of fleets share."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plinth.fleet.load import FleetLoad
from plinth.load import LoadConfig

HOSTS = ("client1", "client2", "client3")
LOCAL_FIRST = ["local", *(pytest.param(executor, marks=pytest.mark.long) for executor in ("ssh", "ray"))]
"""For `spec`: what takes a while is done by the other executors among the long tests only."""
MakeFleet = Callable[..., FleetLoad]
MakeConfig = Callable[..., LoadConfig]


def running_agents() -> set[int]:
    """The pids of all agents of this installation; not of the shells and ssh sessions around them."""
    here = bytes(Path(sys.executable).parent)
    return _processes(lambda words: b"agent" in words[1:5] and words[0].startswith(here))


def driver_processes() -> set[int]:
    """The pids of all processes of drivers."""
    return _processes(lambda words: b"plinth.load.drivers" in words)


def _processes(wanted: Callable[[list[bytes]], bool]) -> set[int]:
    """The pids of processes by their words, but for those of other tests that run at the same time, below another pytest."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if wanted(_words(process)) and not _is_below_another_pytest(process):
                found.add(int(process.name))
    return found


def _is_below_another_pytest(process: Path) -> bool:
    ours = {os.getpid(), *_ancestors(os.getpid())}  # a test may run in a child of its pytest
    for pid in (int(process.name), *_ancestors(int(process.name))):
        if pid in ours:
            return False
        if any(word.endswith(b"/pytest") for word in _words(Path(f"/proc/{pid}"))[:2]):
            return True
    return False


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        _, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        pid = int(fields.split()[1])
        yield pid


def _words(process: Path) -> list[bytes]:
    return (process / "cmdline").read_bytes().split(b"\0")
