"""The command plan."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.cli.options import (
    AllowWrites,
    AsJson,
    Clients,
    Duration,
    Full,
    Overrides,
    Repeats,
    ScaleToFit,
    SshConfig,
    checked_ssh_config,
    with_shortcuts,
)
from plinth.cli.printing import print_result


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
    allow_writes: AllowWrites = False,
    ssh_config: SshConfig = None,
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
    from plinth.cli.replay_view import reading_log
    from plinth.experiment import read_experiment
    from plinth.report import check_viewer
    from plinth.run.checks.obstacles import find_obstacles
    from plinth.run.hosts.connect import connected_hosts
    from plinth.run.planning.make_plan import make_plan

    loaded = read_experiment(file, with_shortcuts(overrides, repeats, duration, clients), full)
    check_viewer()
    bundle = Path("bundles/RUN")
    with connected_hosts(loaded.experiment.used_hosts, checked_ssh_config(ssh_config, loaded.experiment)) as hosts:
        made = make_plan(
            loaded,
            run_id="RUN",
            bundle=bundle,
            fit=scale_to_fit,
            allow_writes=allow_writes,
            reading=reading_log(False),
            hosts=hosts,
        )
        error = find_obstacles(made, bundle, loaded.connections, hosts=hosts).error()
    print_result(made, as_json, show_plan)
    if error is None:
        return 0
    show_error(error)
    return error.exit_code
