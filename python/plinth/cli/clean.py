"""The command clean."""

from typing import Annotated

from cyclopts import Parameter

from plinth.cli.options import DryRun
from plinth.cli.printing import print_plain, print_steps

Forget = Annotated[
    bool,
    Parameter(name="--forget", help="Remove the key of RUN-ID too: its bundle can then not be resumed any more."),
]


def clean(
    run_id: Annotated[
        str | None, Parameter(help="Id of the run, as in its plan. Default: every run that is not alive.")
    ] = None,
    /,
    *,
    forget: Forget = False,
    dry_run: DryRun = False,
) -> int:
    """Remove what a killed run left behind: mounts, servers, directories.

    Only what a journal names and what still has Plinth's label is touched. Safe to run twice; --dry-run only shows what would be done.
    Journals are in /var/lib/plinth for root, in ~/.local/state/plinth for others, or in PLINTH_STATE_DIR: clean as the user whose
    run it was.

    Keys of runs, by which `plinth resume` knows a bundle as one that was begun here, stay: what was cleaned can be resumed,
    and a complete run can be given more trials. --forget removes the key of the run that is named.

      plinth clean --dry-run
      plinth clean
      plinth clean 3f2a9c1e --forget
    """
    from plinth.model.errors import UsageError
    from plinth.run.undo import UNDO_HANDLERS
    from plinth.system.clean import clean as clean_runs
    from plinth.system.clean import left_behind
    from plinth.system.paths import journal_dir
    from plinth.system.run_key import forget_key
    from plinth.tasks.standalone import storage_name

    if forget and run_id is None:
        raise UsageError("--forget goes with the id of one run", hint="a bundle's manifest.json has it as run_id")
    if forget and dry_run:
        raise UsageError("--dry-run and --forget exclude each other", hint="leave one of them out")
    if dry_run:
        result = left_behind(UNDO_HANDLERS, run_id)
        for run in result.runs:
            print_steps(f"To undo run {run.run_id}", run.undoing)
    else:
        result = clean_runs(UNDO_HANDLERS, run_id)
        for run in result.runs:
            print_plain(f"run {run.run_id}: {len(run.undone)} steps undone")
            for step in run.undone:
                print_plain(f"  undone: {step.title}")
    for kept in result.kept_runs:
        name = storage_name(kept.run_id)
        print_plain(f"left in place on purpose: {kept.what}; `plinth storage teardown {name}` undoes it")
    for alive in result.alive:
        print_plain(f"run {alive.run_id}: still running (pid {alive.pid}), not cleaned")
    if not result.runs and not result.alive and not result.kept_runs:
        print_plain(f"nothing to clean: no journal in {journal_dir()}")
    if error := result.error():
        raise error
    if forget and run_id is not None:
        print_plain(f"run {run_id}: " + ("its key is removed" if forget_key(run_id) else "it has no key"))
    return 0
