"""Commands about experiment files: plan and schema, and the options that others share."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.console import output_console
from plinth.cli.printing import print_json
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.fleet import FleetSpec

_WHOLE = re.compile(r"\s*-?\d+\s*")
Overrides = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        negative="",
        help="Replace one key, as in --set measure.repeats=3; a factor's key replaces its levels, a table's name the whole "
        "table. May be repeated.",
    ),
]
ScaleToFit = Annotated[
    bool,
    Parameter(
        name="--scale-to-fit",
        negative="",
        help="Cut the dataset (its scale, its rows) until the experiment fits this machine.",
    ),
]
Repeats = Annotated[int | None, Parameter(name="--repeats", help="Short for --set measure.repeats=N.")]
Duration = Annotated[
    str | None, Parameter(name="--duration", help="Short for --set measure.duration=TIME, such as 30s or 5min.")
]
Clients = Annotated[
    str | None,
    Parameter(
        name="--clients",
        help="Short for --set workload.clients=N; several, as in 1,4,16, are the levels of a factor.",
    ),
]
Full = Annotated[
    bool,
    Parameter(
        name="--full",
        negative="",
        help="Ask for the published size, by the experiment's own [full]; says first what hours and space that takes.",
    ),
]
Destroy = Annotated[
    tuple[str, ...],
    Parameter(
        name="--destroy",
        negative="",
        help="The last six characters of the serial number of a disk whose content may be destroyed. May be repeated. "
        "Nothing else takes its place: no file, no environment variable.",
    ),
]
SshConfig = Annotated[
    Path | None,
    Parameter(
        name="--ssh-config",
        help="Configuration file of OpenSSH for the hosts of a fleet. Default: ~/.ssh/config. It may start commands, so that no "
        "experiment can name one.",
    ),
]
Yes = Annotated[
    bool, Parameter(name="--yes", negative="", help="Take the experiment of a bundle without asking; for scripts.")
]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON on stdout.")]


def with_shortcuts(
    overrides: tuple[str, ...], repeats: int | None, duration: str | None, clients: str | None
) -> tuple[str, ...]:
    """Return the overrides of --set, followed by those of --repeats, --duration and --clients."""
    short = [] if repeats is None else [f"measure.repeats={repeats}"]
    if duration is not None:
        short.append(f"measure.duration={duration}")
    if clients is not None:
        if "," in clients and (wrong := [one for one in clients.split(",") if not _WHOLE.fullmatch(one)]):
            raise UsageError(
                f"--clients {clients}: got {wrong[0]!r}; must be whole numbers with commas between them",
                hint="as in --clients 1,4,16",
            )
        several = "," in clients
        short.append(f"matrix.workload.clients=[{clients}]" if several else f"workload.clients={clients}")
    return (*overrides, *short)


def checked_ssh_config(ssh_config: Path | None, fleet: "FleetSpec | None") -> Path | None:
    """Return the absolute path of --ssh-config. Raises UsageError for what is no file, and where no fleet is reached by ssh."""
    if ssh_config is None:
        return None
    if fleet is None or fleet.address != "ssh":
        raise UsageError(
            "--ssh-config: the experiment has no fleet of hosts that are reached by ssh",
            hint='leave it out, or add [fleet] with address = "ssh" and hosts',
        )
    if not ssh_config.is_file():
        raise UsageError("--ssh-config: there is no such file", where=str(ssh_config))
    return ssh_config.absolute()


def plan(
    file: Annotated[Path, Parameter(help="Experiment file.")],
    /,
    *,
    overrides: Overrides = (),
    repeats: Repeats = None,
    duration: Duration = None,
    clients: Clients = None,
    full: Full = False,
    scale_to_fit: ScaleToFit = False,
    as_json: AsJson = False,
) -> int:
    """Show what a run will do: variants, trials in order, every command, the time and space that it needs.

    Nothing is changed. The run does exactly what is shown; RUN is a placeholder for the id that each run gets. What keeps the
    run from being carried out, or a part of it, is on stderr, and the exit code is then the one that the run would have.

      plinth plan mine.toml
      plinth plan mine.toml --duration 30s --clients 1,4,16 --set dataset.scale=100
    """
    from plinth.cli.app import show_error
    from plinth.cli.plan_view import show_plan
    from plinth.experiment import read_experiment
    from plinth.report import check_viewer
    from plinth.run import find_obstacles, make_plan

    loaded = read_experiment(file, with_shortcuts(overrides, repeats, duration, clients), full)
    check_viewer()
    bundle = Path("bundles/RUN")
    made = make_plan(loaded, run_id="RUN", bundle=bundle, fit=scale_to_fit)
    error = find_obstacles(made, bundle, loaded.connections).error()
    if as_json:
        print_json(made.model_dump_json(indent=1))
    else:
        show_plan(made, output_console())
    if error is None:
        return 0
    show_error(error)
    return error.exit_code


def schema() -> int:
    """Print the JSON Schema of experiment files, for editors.

    plinth schema > experiment.schema.json
    """
    from plinth.experiment import json_schema

    print_json(json.dumps(json_schema(), indent=2))
    return 0
