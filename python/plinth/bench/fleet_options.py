"""The options --fleet and --fleet-command of `plinth bench`: the machines that drive the load, and what they cannot do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure
from plinth.bench.numbers import option_int
from plinth.bench.options import BenchOptions

if TYPE_CHECKING:
    from plinth.model.fleet import FleetSpec


def complete_fleet(asked: BenchOptions) -> None:
    """Read the fleet of the options. Raises BenchFailure for one that is wrong, and for what no fleet does: before
    anything connects."""
    if asked.fleet_machines is None:
        if asked.fleet_command is not None:
            raise BenchFailure("--fleet-command is allowed only under --fleet")
        return
    asked.fleet = fleet = _fleet_of(asked.fleet_machines, asked.fleet_command)
    if fleet.is_remote:
        _require_means(fleet)
    machines = fleet.number_of_machines
    if asked.clients < machines:
        raise BenchFailure(
            f"got {asked.clients} for -c/--client with a fleet of {machines} machines; each machine needs a client",
            hint=f"Give -c {machines} or more, or fewer machines.",
        )
    if asked.log:
        raise BenchFailure(
            "-l/--log cannot be used with --fleet: each machine would write log files of its own, in a folder there",
            hint="--json=FILE has the seconds and histograms of all machines together.",
        )
    for what in _not_unicode(asked):
        raise BenchFailure(
            f"{what} has bytes that are not UTF-8, which cannot be sent to the machines of a fleet",
            hint="Write it in UTF-8, and name that by PGCLIENTENCODING=UTF8: the server converts it.",
        )


def fleet_words(fleet: "FleetSpec") -> str:
    """Return the machines of the fleet, for messages."""
    from plinth.model.units import format_count

    if fleet.executor == "ray":
        which = "of this machine" if fleet.ray_address == "auto" else f"at {fleet.ray_address}"
        return f"{format_count(fleet.number_of_machines, 'machine')} of the Ray cluster {which}"
    if not fleet.is_remote:
        return f"{fleet.number_of_machines} processes of this machine"
    return ", ".join(fleet.hosts)


def _fleet_of(machines: str, command: str | None) -> "FleetSpec":
    """Read a fleet: "3" is three processes on this machine, "3@auto" three machines of a Ray cluster, all else a list of hosts."""
    from pydantic import ValidationError

    from plinth.model.fleet import FleetSpec

    given = _given(machines)
    if command is not None:
        if given["executor"] != "ssh":
            raise BenchFailure(
                "--fleet-command is the command on the hosts of --fleet, and "
                + (
                    "processes of this machine have"
                    if given["executor"] == "local"
                    else "machines of a Ray cluster need"
                )
                + " none",
                hint="Leave it out, or name hosts: --fleet=client1,client2.",
            )
        given["command"] = command
    try:
        return FleetSpec.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--fleet-command" if "command" in first["loc"] else "--fleet"
        raise BenchFailure(
            f"{option}: {first['msg'].removeprefix('Value error, ')}",
            hint="--fleet=3 is three processes of this machine; --fleet=client1,bench@client2 are hosts, by ssh; "
            "--fleet=3@auto is three machines of a Ray cluster.",
        ) from error


def _given(machines: str) -> dict[str, object]:
    """Return the keys of [fleet] that the option's value stands for."""
    from plinth.model.fleet import MAX_MACHINES, RAY_ADDRESS

    if machines.strip().lstrip("+-").isdecimal():
        return {"executor": "local", "machines": option_int(machines, "--fleet", 1, MAX_MACHINES)}
    number, at, address = machines.partition("@")
    if at and number.isdecimal() and RAY_ADDRESS.fullmatch(address):
        given = option_int(number, "--fleet", 1, MAX_MACHINES)
        return {"executor": "ray", "ray_address": address, "machines": given}
    if RAY_ADDRESS.fullmatch(machines):
        raise BenchFailure(
            f"--fleet={machines} does not say how many machines of the Ray cluster are to drive the load",
            hint=f"--fleet=3@{machines} is three of them.",
        )
    return {"executor": "ssh", "hosts": machines.split(",")}


def _require_means(fleet: "FleetSpec") -> None:
    from plinth.model.errors import MissingCapability
    from plinth.system.extras import require_package
    from plinth.system.runner import Runner

    try:
        if fleet.executor == "ray":
            require_package("ray", "--fleet on Ray")
        else:
            Runner().require("ssh")
    except MissingCapability as error:
        raise BenchFailure(error.message, hint=error.hint) from error


def _not_unicode(asked: BenchOptions) -> Iterator[str]:
    for script in asked.scripts:
        if not _is_unicode(script.source + script.description):
            yield f'script "{script.description}"'
    for name, value in asked.variables.items():
        if not _is_unicode(name + value):
            yield f"-D {name}"


def _is_unicode(text: str) -> bool:
    """Return whether no byte of it is a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
