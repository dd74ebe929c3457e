"""The commands for a fleet of load machines."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from plinth.cli.console import output_console, plain_table
from plinth.cli.options import AsJson, Overrides, SshConfig, Yes, checked_ssh_config
from plinth.cli.printing import print_errors, print_json, print_plain

if TYPE_CHECKING:
    from plinth.fleet.check import MachineCheck
    from plinth.tasks.fleet import FleetFound

_LACKING, _NOT_STARTED = 5, 1
_EXAMPLE = """
In an experiment:

  [fleet]
  executor = "ssh"
  hosts = ["client1", "client2", "bench@client3"]
  command = "/opt/plinth/bin/plinth"

or, with a Ray cluster that this machine belongs to:

  [fleet]
  executor = "ray"
  machines = 3
"""

fleet = App(
    name="fleet",
    help="Drive a load from several machines: check that they can.",
    help_epilogue=_EXAMPLE,
    help_format="plaintext",
)


@fleet.command
def check(
    file: Annotated[Path, Parameter(help="Experiment file with a [fleet].")],
    /,
    *,
    overrides: Overrides = (),
    server: Annotated[
        str | None,
        Parameter(
            name="--server",
            help="Connection string of a server that each machine has to reach. Default: the experiment's external server.",
        ),
    ] = None,
    ssh_config: SshConfig = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Look at each machine of an experiment's fleet: versions, clock, cores, and whether it reaches the server.

    An agent is started on each machine, as a trial does it, asked, and ended. Each finding says what to do about it.
    The experiment of a bundle, which another user may have written, is shown first and must be confirmed.

    Exit code 0 when all machines can drive a load together, 5 when one cannot, 1 when one cannot be reached at all.

      plinth fleet check mine.toml
      plinth fleet check mine.toml --server "host=db1 dbname=bench"
    """
    from plinth.cli.bundle_experiment import confirm_if_shared
    from plinth.experiment import read_experiment
    from plinth.system.log_file import LogFile
    from plinth.tasks.fleet import check_machines

    loaded = read_experiment(file, overrides)
    confirm_if_shared(loaded, file, yes)
    ssh_config = checked_ssh_config(ssh_config, loaded.experiment)
    with tempfile.TemporaryDirectory(prefix="plinth-fleet-") as folder:
        found = check_machines(loaded, server, LogFile(Path(folder) / "agents.log"), ssh_config)
    if as_json:
        ended = [_not_started_as_json(name, str(error)) for name, error in found.not_started.items()]
        print_json(json.dumps([*(_as_json(one) for one in found.machines), *ended], indent=1))
    else:
        _show(found)
    if found.not_started:
        return _NOT_STARTED
    return _LACKING if any(one.problems for one in found.machines) else 0


def _as_json(one: "MachineCheck") -> dict[str, object]:
    return {
        "name": one.name,
        "agent": one.hello.model_dump(mode="json", exclude={"refused"}),
        "clock_offset_ns": one.clock.offset_ns,
        "clock_error_ns": one.clock.error_ns,
        "wall_clock_offset_ns": one.wall_clock_offset_ns,
        "reached": None if one.reached is None else one.reached.model_dump(mode="json", exclude={"refused"}),
        "problems": list(one.problems),
    }


def _not_started_as_json(name: str, problem: str) -> dict[str, object]:
    nothing = dict.fromkeys(("agent", "clock_offset_ns", "clock_error_ns", "wall_clock_offset_ns", "reached"))
    return {"name": name, **nothing, "problems": [problem]}


def _show(found: "FleetFound") -> None:
    from rich.text import Text

    titles = ("machine", "host", "cores", "plinth", "Python", "clock known to", "wall clock", "server")
    table = plain_table(*titles, dim=True)
    for one in found.machines:
        hello = one.hello
        table.add_row(
            Text(one.name),
            Text(hello.host),
            str(hello.cores),
            Text(hello.plinth),
            Text(hello.python),
            f"{one.clock.error_ns / 1e3:.0f} us",
            f"{one.wall_clock_offset_ns / 1e6:+.0f} ms",
            Text(_reached(one)),
        )
    output_console().print(table)
    for one in found.machines:
        for problem in one.problems:
            print_plain(f"{one.name}: {problem}")
    print_errors(found.not_started)
    well = sum(not one.problems for one in found.machines)
    print_plain(f"{well} of {len(found.machines) + len(found.not_started)} machines can drive a load together")


def _reached(one: "MachineCheck") -> str:
    if one.reached is None:
        return "not asked"
    if one.reached.round_trip_ns is None:
        return "not reached"
    return f"{one.reached.server_version}, {one.reached.round_trip_ns / 1e3:.0f} us"
