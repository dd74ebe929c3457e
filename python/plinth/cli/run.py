"""The command run."""

import shlex
import sys
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth import exit_codes
from plinth.cli.gate import FailOnObjectives, ObjectiveFinding, gated_objectives, require_objectives
from plinth.cli.options import (
    AllowWrites,
    AsJson,
    Clients,
    Destroy,
    Duration,
    Full,
    Overrides,
    Repeats,
    ScaleToFit,
    SshConfig,
    Yes,
    checked_ssh_config,
    with_shortcuts,
)
from plinth.cli.output_file import Junit, check_folder
from plinth.cli.printing import print_plain
from plinth.model.errors import RunError, UsageError

if TYPE_CHECKING:
    from plinth.cli.results import Results
    from plinth.run.conduct import RunStatus
    from plinth.run.listener import Listener

BundlePath = Annotated[
    Path | None, Parameter(name="--bundle", help="Folder to write the results to. Default: bundles/NAME-TIME.")
]
RunPlots = Annotated[
    bool, Parameter(name="--plots", help="Draw charts below the table, as `plinth report --plots` does.")
]
Quiet = Annotated[bool, Parameter(name="--quiet", help="No progress; errors and results only.")]


def run(
    file: Annotated[Path, Parameter(help="Experiment file, or a bundle, whose experiment is repeated.")],
    /,
    *,
    overrides: Overrides = (),
    repeats: Repeats = None,
    duration: Duration = None,
    clients: Clients = None,
    full: Full = False,
    scale_to_fit: ScaleToFit = False,
    bundle: BundlePath = None,
    destroy: Destroy = (),
    allow_writes: AllowWrites = False,
    ssh_config: SshConfig = None,
    yes: Yes = False,
    as_json: AsJson = False,
    plots: RunPlots = False,
    quiet: Quiet = False,
    fail_on: FailOnObjectives = (),
    junit: Junit = None,
) -> int:
    """Run an experiment: make its storages, start PostgreSQL, load, measure, compare, report.

    Everything that is made is undone at the end, also after an error or Ctrl-C; after a kill, `plinth clean` does it
    and `plinth resume` finishes the run. The bundle keeps every trial.

      plinth run mine.toml
      plinth run mine.toml --repeats 3 --bundle results/nvme
      nohup plinth run mine.toml > run.log 2>&1 &
      plinth run bundles/ramdisk-20261122-091717

    The experiment of a bundle, which may come from another user, is shown whole and runs when that is confirmed.

    Exit code 0 when the question is answered, 3 when it was measured but could not be decided, 99 for a finding of --fail-on;
    for others see `plinth --help`.
    """
    from plinth.cli.bundle_experiment import bundle_of, confirm, overrides_of
    from plinth.cli.live import open_listener
    from plinth.cli.plan_view import full_size_sentence
    from plinth.cli.replay_view import reading_log
    from plinth.experiment import read_experiment
    from plinth.report import check_viewer
    from plinth.run.conduct import Given, run_plan
    from plinth.run.hosts.connect import connected_hosts
    from plinth.run.planning.make_plan import make_plan

    check_forms(as_json, plots)
    check_folder(junit, "--junit")
    overrides = with_shortcuts(overrides, repeats, duration, clients)
    shared = bundle_of(file)
    if shared is None:
        loaded = read_experiment(file, overrides, full)
    else:
        loaded = read_experiment(shared / "experiment.toml", (*overrides_of(shared), *overrides), full)
        confirm(loaded, shared, yes)
    require_objectives(loaded.experiment.objectives, fail_on, junit)
    ssh_config = checked_ssh_config(ssh_config, loaded.experiment)
    check_viewer()
    folder = bundle or Path("bundles") / f"{loaded.experiment.name}-{datetime.now():%Y%m%d-%H%M%S}"
    with connected_hosts(loaded.experiment.used_hosts, ssh_config) as hosts:
        made = make_plan(
            loaded,
            run_id=token_hex(4),
            bundle=folder,
            fit=scale_to_fit,
            destroy=destroy,
            allow_writes=allow_writes,
            reading=reading_log(quiet),
            hosts=hosts,
        )
        if full:
            print_plain(full_size_sentence(made), file=sys.stderr)
        with open_listener(quiet) as listener:
            given = Given(destroy, loaded.connections, ssh_config, hosts)
            status = run_plan(made, loaded.kept_text, folder, listener, given)
            results = results_of(status.bundle, listener)
    return conclude(results, status, as_json, plots, fail_on, junit)


def check_forms(as_json: bool, plots: bool) -> None:
    """Reject incompatible output options before the run starts."""
    if as_json and plots:
        raise UsageError("give one of --json and --plots")


def results_of(folder: Path, listener: "Listener") -> "Results":
    """Analyse the bundle and, unless nothing was measured, write its HTML report; the listener shows both phases, since they may take
    seconds.
    """
    from plinth.cli.results import Results, write_html
    from plinth.tasks.analysis import analyse_bundle

    listener.phase("analyse the bundle")
    contents, analysis = analyse_bundle(folder, checked=True)  # sealed just now
    results = Results(contents, analysis, folder)
    if results.has_figures:
        listener.phase("write the report")
        write_html(results)
    return results


def conclude(
    results: "Results",
    status: "RunStatus",
    as_json: bool,
    plots: bool,
    fail_on: tuple[ObjectiveFinding, ...] = (),
    junit: Path | None = None,
) -> int:
    """Show the results of a bundle and return the exit code. Raises the error that ended a part of the run."""
    from plinth.cli.results import show_results

    if results.has_figures or as_json:
        show_results(results, as_json, plots)
    failed_gate = gated_objectives(results.analysis, fail_on, junit)
    if status.error is not None:
        raise status.error
    if not results.has_figures:
        raise _nothing_measured(results)
    if status.failed_trials:
        return exit_codes.FAILED
    if failed_gate:
        return failed_gate
    undecided = any(comparison.is_undecided for comparison in results.analysis.comparisons)
    # A variant whose power cuts say nothing is not one that was tested.
    untested = any(one.durability is not None and not one.durability.made for one in results.analysis.variants)
    return exit_codes.UNDECIDED if undecided or untested else 0


def _nothing_measured(results: "Results") -> RunError:
    """The error of a run of which every trial failed, with the reason of the first of each variant."""
    from plinth.model.units import format_count

    failures: dict[str, str] = {}
    for one in results.contents.trials:
        failures.setdefault(one.trial.variant, f"trial {one.trial.number}, {one.trial.variant}: {one.trial.failure}")
    return RunError(
        f"nothing was measured: {format_count(len(results.contents.trials), 'trial')} failed",
        where=str(results.bundle),
        hint=f"logs are in {results.bundle}/logs; `plinth report {shlex.quote(str(results.bundle))} --full` shows every failure",
        details=list(failures.values()),
    )
