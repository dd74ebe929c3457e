"""What tests of fleets share."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plinth.fleet import FleetLoad
from plinth.load import LoadConfig

HOSTS = ("client1", "client2", "client3")
LOCAL_FIRST = ["local", *(pytest.param(executor, marks=pytest.mark.long) for executor in ("ssh", "ray"))]
"""For `spec`: what takes a while is done by the other executors among the long tests only."""
MakeFleet = Callable[..., FleetLoad]
MakeConfig = Callable[..., LoadConfig]


def running_agents() -> set[int]:
    """The pids of all agents of this installation; not of the shells and ssh sessions around them."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"agent" in words[1:5] and words[0].startswith(bytes(Path(sys.executable).parent)):
                found.add(int(process.name))
    return found
