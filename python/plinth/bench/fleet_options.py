"""The options --fleet and --fleet-command of `plinth bench`: the machines that drive the load, and what they cannot do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure
from plinth.bench.numbers import option_int

if TYPE_CHECKING:
    from plinth.bench.options import BenchOptions
    from plinth.model.fleet import FleetSpec


def complete_fleet(asked: "BenchOptions") -> None:
    """Read the fleet of the options. Raises BenchFailure for one that is wrong, and for what no fleet does: before
    anything connects."""
    if asked.fleet_machines is None:
        if asked.fleet_command is not None:
            raise BenchFailure("--fleet-command is allowed only under --fleet")
        return
    asked.fleet = fleet = _fleet_of(asked.fleet_machines, asked.fleet_command)
    if fleet.is_remote:
        _require_ssh()
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
    """Its machines, for messages."""
    if not fleet.is_remote:
        return f"{fleet.number_of_machines} processes of this machine"
    return ", ".join(fleet.hosts)


def _fleet_of(machines: str, command: str | None) -> "FleetSpec":
    """ "3" is as many processes of this machine, everything else a list of hosts."""
    from pydantic import ValidationError

    from plinth.model.fleet import MAX_MACHINES, FleetSpec

    is_number = machines.strip().lstrip("+-").isdecimal()
    if is_number and command is not None:
        raise BenchFailure(
            "--fleet-command is the command on the hosts of --fleet, and processes of this machine have none",
            hint="Leave it out, or name hosts: --fleet=client1,client2.",
        )
    given: dict[str, object] = {"address": "local"} if is_number else {"address": "ssh", "hosts": machines.split(",")}
    if is_number:
        given["machines"] = option_int(machines, "--fleet", 1, MAX_MACHINES)
    if command is not None:
        given["command"] = command
    try:
        return FleetSpec.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--fleet-command" if "command" in first["loc"] else "--fleet"
        raise BenchFailure(
            f"{option}: {first['msg'].removeprefix('Value error, ')}",
            hint="--fleet=3 is three processes of this machine; --fleet=client1,bench@client2 are hosts, by ssh.",
        ) from error


def _require_ssh() -> None:
    from plinth.model.errors import MissingCapability
    from plinth.model.extras import require_package

    try:
        require_package("asyncssh", "--fleet with hosts")
    except MissingCapability as error:
        raise BenchFailure(error.message, hint=error.hint) from error


def _not_unicode(asked: "BenchOptions") -> Iterator[str]:
    for script in asked.scripts:
        if not _is_unicode(script.source + script.description):
            yield f'script "{script.description}"'
    for name, value in asked.variables.items():
        if not _is_unicode(name + value):
            yield f"-D {name}"


def _is_unicode(text: str) -> bool:
    """Whether no byte of it is a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
