"""The commands for the hosts of an experiment: other machines, on which its storages and servers are."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from plinth.cli.console import output_console, plain_table
from plinth.cli.options import AsJson, Full, Overrides, SshConfig, Yes, checked_ssh_config
from plinth.cli.printing import print_errors, print_json, print_plain

if TYPE_CHECKING:
    from plinth.tasks.hosts import HostFound, HostsFound

_NOT_STARTED = 1
_EXAMPLE = """
In an experiment:

  [host.db1]
  address = "ssh://bench@db1"
  command = "/opt/plinth/bin/plinth"

  [storage.nvme]
  host = "db1"
  kind = "directory"
  path = "/mnt/nvme"
"""

host = App(
    name="host",
    help="Make storages and start servers on other machines: check that they can.",
    help_epilogue=_EXAMPLE,
    help_format="plaintext",
)


@host.command
def check(
    file: Annotated[Path, Parameter(help="Experiment file with a [host.NAME].")],
    /,
    *,
    overrides: Overrides = (),
    full: Full = False,
    ssh_config: SshConfig = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Look at each host of an experiment: versions, rights, clock, whether its servers are reached, what the doctor finds of the machine, and
    what keeps the experiment from running there: programs, PostgreSQL, space, paths, settings.

    An agent is started on each host, as a run does it, asked, and ended. Nothing is changed there. The experiment of a
    bundle, which another user may have written, is shown first and must be confirmed.

    Exit code 0 when the experiment can run on its hosts, 1 when one cannot be reached, else that of what is in the way.

      plinth host check mine.toml
    """
    from plinth.cli.app import show_error
    from plinth.cli.bundle_experiment import confirm_if_shared
    from plinth.experiment import read_experiment
    from plinth.tasks.hosts import check_hosts

    loaded = read_experiment(file, overrides, full=full)
    confirm_if_shared(loaded, file, yes)
    found = check_hosts(loaded, Path("bundles/RUN"), checked_ssh_config(ssh_config, loaded.experiment))
    if as_json:
        lost = [{"name": name, "problem": str(error)} for name, error in found.not_started.items()]
        print_json(json.dumps([*map(_as_json, found.hosts), *lost], indent=1))
    else:
        _show(found)
    if found.error is not None:
        show_error(found.error)
        return found.error.exit_code
    return _NOT_STARTED if found.not_started else 0


def _as_json(one: "HostFound") -> dict[str, object]:
    return {
        "name": one.name,
        "agent": one.hello.model_dump(mode="json"),
        "facts": one.facts.model_dump(mode="json"),
        "servers_run_as": one.owner.name,
        "clock_offset_ns": one.clock.offset_ns,
        "clock_error_ns": one.clock.error_ns,
        "listen_address": one.listen_address,
        "notes": list(one.notes),
        "doctor": one.examination.model_dump(mode="json"),
    }


def _show(found: "HostsFound") -> None:
    from rich.text import Text

    from plinth.model.units import format_size

    titles = ("host", "machine", "cores", "memory", "servers run as", "servers at", "clock known to")
    table = plain_table(*titles, dim=True)
    for one in found.hosts:
        table.add_row(
            Text(one.name),
            Text(one.hello.host),
            str(one.facts.cores),
            format_size(one.facts.memory_total_bytes),
            Text(one.owner.name),
            Text(one.listen_address or "not known"),
            f"{one.clock.error_ns / 1e3:.0f} us",
        )
    output_console().print(table)
    for one in found.hosts:
        for note in one.notes:
            print_plain(f"{one.name}: {note}")
        for finding in one.examination.at_least("warning"):
            print_plain(f"{one.name}: {finding.severity}: {finding.saw}: {finding.why}")
    print_errors(found.not_started)
    print_plain(f"{len(found.hosts)} of {len(found.hosts) + len(found.not_started)} hosts were reached")
