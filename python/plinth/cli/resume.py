"""The command resume."""

from typing import Annotated

from cyclopts import Parameter

from plinth.cli.options import AsJson, Bundle, Destroy, SshConfig, checked_ssh_config
from plinth.cli.run import Quiet, RunPlots, check_forms, conclude, results_of

More = Annotated[
    int | None,
    Parameter(
        name="--more",
        help="Add N trials of each variant to a complete run, and run them, as when the report says that more trials would decide.",
    ),
]


def resume(
    bundle: Bundle,
    /,
    *,
    more: More = None,
    destroy: Destroy = (),
    ssh_config: SshConfig = None,
    as_json: AsJson = False,
    plots: RunPlots = False,
    quiet: Quiet = False,
) -> int:
    """Finish a run that was cut short: what it left behind is used or undone, and the trials that are missing are run.

    Trials that are in the bundle are kept. It must be the same machine. Power cuts that could not be tested are made
    again. A complete bundle has nothing else to resume, but --more adds trials to it: storages, servers and data are
    made again for them, and the results are those of all trials.

      plinth resume bundles/ramdisk-20261122-091717
      plinth resume bundles/ramdisk-20261122-091717 --more 15
    """
    from plinth.bundle import read_plan
    from plinth.cli.live import open_listener
    from plinth.report import check_viewer
    from plinth.run.resume.resume import resume_bundle

    check_forms(as_json, plots)
    check_viewer()
    if ssh_config is not None:
        ssh_config = checked_ssh_config(ssh_config, read_plan(bundle).experiment)
    with open_listener(quiet) as listener:
        status = resume_bundle(bundle, listener, destroy, more, ssh_config)
        results = results_of(status.bundle, listener)
    return conclude(results, status, as_json, plots)
