"""Whether the machines of a fleet can drive a load: versions, clocks, cores, and whether each reaches the server."""

import platform
import time
from collections.abc import Mapping
from typing import NamedTuple

from plinth import __version__
from plinth.fleet.asking import ClockOffset, ask_all, greet, measure_clocks
from plinth.fleet.executors.executor import Executor
from plinth.fleet.protocol import PROTOCOL_VERSION, Hello, Reached, Request
from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability
from plinth.model.load import MAX_CLOCK_ERROR_NS, MAX_SKEW_NS

_REACH_TIMEOUT_S = 10.0


class MachineCheck(NamedTuple):
    """What was found of one machine, and what is to be done about it."""

    name: str
    hello: Hello
    clock: ClockOffset
    wall_clock_offset_ns: int
    reached: Reached | None
    problems: tuple[str, ...]


def check_fleet(executor: Executor, connection: Connection | None) -> list[MachineCheck]:
    """Start an agent on each machine, ask it, and end it. `connection` is the server that it has to reach; None: not asked.

    Raises RunError where an agent cannot be started or does not answer.
    """
    with executor.agents() as agents:
        greet(agents)
        asked_ns = time.time_ns()
        hellos = ask_all(agents, Request(kind="hello"), Hello)
        clocks = measure_clocks(agents)
        reached: list[Reached | None] = [None] * len(agents)
        if connection is not None:
            request = Request(kind="reach", connection=connection)
            reached = [*ask_all(agents, request, Reached, _REACH_TIMEOUT_S)]
    different = version_problems({agent.name: hello for agent, hello in zip(agents, hellos, strict=True)})
    return [
        MachineCheck(
            agent.name,
            hello,
            clock,
            hello.wall_clock_ns - asked_ns,
            reach,
            tuple(_problems(different.get(agent.name), clock, reach)),
        )
        for agent, hello, clock, reach in zip(agents, hellos, clocks, reached, strict=True)
    ]


def _problems(versions: str | None, clock: ClockOffset, reached: Reached | None) -> list[str]:
    found = []
    if versions is not None:
        found.append(f"it has {versions}: install the same wheel under the same Python as here")
    if clock.error_ns > MAX_CLOCK_ERROR_NS:
        found.append(
            f"its clock is known to within {clock.error_ns / 1e6:.1f} ms only, of {MAX_SKEW_NS / 1e6:g} ms that are allowed between "
            "starts: the way to it is too slow, take a nearer coordinator"
        )
    if reached is not None and reached.error is not None:
        found.append(_unreached(reached.error))
    return found


def _unreached(error: str) -> str:
    if error.startswith("cannot log in"):
        return f"the server does not let it in ({error}): look at user, password and pg_hba.conf of the server"
    return f"it does not reach the server ({error}): look at listen_addresses and the firewall of the server"


def version_problems(hellos: Mapping[str, Hello]) -> dict[str, str]:
    """Return the machines, by name, whose versions differ from this one's, each with what it has."""
    ours = _versions(PROTOCOL_VERSION, __version__, platform.python_version())
    theirs = {name: _versions(one.protocol, one.plinth, one.python) for name, one in hellos.items()}
    return {name: versions for name, versions in theirs.items() if versions != ours}


def check_versions(hellos: Mapping[str, Hello]) -> None:
    """Raise MissingCapability, with the list, where a machine's versions differ from this one's."""
    if different := version_problems(hellos):
        raise MissingCapability(
            "the machines of the fleet have other versions than this one",
            where="fleet",
            details=[
                f"this machine: {_versions(PROTOCOL_VERSION, __version__, platform.python_version())}",
                *(f"{name}: {versions}" for name, versions in different.items()),
            ],
            hint="install the same wheel under the same Python everywhere; `plinth fleet check` shows all of them",
        )


def check_drivers(drivers: Mapping[str, str | None]) -> None:
    """Raise MissingCapability, with the list, where not all machines have the same versions of a driver's packages."""
    if len(set(drivers.values())) > 1:
        raise MissingCapability(
            "the machines of the fleet have different versions of the driver",
            where="workload.driver",
            details=[f"{name}: {driver}" for name, driver in drivers.items()],
            hint="install the same packages everywhere",
        )


def _versions(protocol: int, plinth: str, python: str) -> str:
    return f"plinth {plinth}, Python {python}" + ("" if protocol == PROTOCOL_VERSION else f", protocol {protocol}")
