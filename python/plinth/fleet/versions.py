"""Plinth and Python must be the same on all machines of a fleet: otherwise they would not measure the same."""

import platform
from collections.abc import Mapping

from plinth import __version__
from plinth.fleet.protocol import PROTOCOL_VERSION, Hello
from plinth.model.errors import MissingCapability


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
