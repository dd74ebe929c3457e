"""The command clean."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.options import DryRun
from plinth.cli.printing import print_plain, print_steps

if TYPE_CHECKING:
    from plinth.model.step import Step
    from plinth.system.clean import CleanResult, LeftBehind

Forget = Annotated[
    bool,
    Parameter(name="--forget", help="Remove the key of RUN-ID too: its bundle can then not be resumed any more."),
]


ForgetHost = Annotated[
    tuple[str, ...],
    Parameter(
        name="--forget-host",
        help="Give up what the run made on this host, by its name in the experiment: the host is gone. Repeatable.",
    ),
]
ContainerEnded = Annotated[
    bool,
    Parameter(
        name="--container-ended",
        help="The container that RUN-ID was started in has ended, which cannot be seen from here.",
    ),
]


def clean(
    run_id: Annotated[
        str | None, Parameter(help="Id of the run, as in its plan. Default: every run that is not alive.")
    ] = None,
    /,
    *,
    forget: Forget = False,
    forget_host: ForgetHost = (),
    container_ended: ContainerEnded = False,
    dry_run: DryRun = False,
) -> int:
    """Remove what a killed run left behind: mounts, servers, directories.

    Only what a journal names and what still has Plinth's label is touched. Safe to run twice; --dry-run only shows what would be done.
    Journals are in /var/lib/plinth for root, in ~/.local/state/plinth for others, or in PLINTH_STATE_DIR: clean as the user whose
    run it was.

    Keys of runs, by which `plinth resume` knows a bundle as one that was begun here, stay: what was cleaned can be resumed,
    and a complete run can be given more trials. --forget removes the key of the run that is named.

    What a run made on other hosts is undone there, through ssh or Ray. A host that does not answer is named, and all else is undone. If
    it never will, --forget-host gives up what is on it; RUN-ID is needed where several runs used a host of this name.

      plinth clean --dry-run
      plinth clean
      plinth clean 3f2a9c1e --forget
      plinth clean 3f2a9c1e --forget-host db2
    """
    from plinth.model.errors import UsageError
    from plinth.run.hosts.undo import given_up_hosts
    from plinth.run.undo import UNDO_HANDLERS
    from plinth.system.clean import CleanOptions, left_behind
    from plinth.system.clean import clean as clean_runs
    from plinth.system.run_key import forget_key

    for option, is_given in (("--forget", forget), ("--container-ended", container_ended)):
        if is_given and run_id is None:
            raise UsageError(f"{option} goes with the id of one run", hint="a bundle's manifest.json has it as run_id")
    if forget and dry_run:
        raise UsageError("--dry-run and --forget exclude each other", hint="leave one of them out")
    options = CleanOptions(container_ended=container_ended)
    if forget_host:
        options = options._replace(give_up=given_up_hosts(forget_host, run_id, options))
    if dry_run:
        found = left_behind(UNDO_HANDLERS, run_id, options)
        for run in found.runs:
            print_steps(f"To undo run {run.run_id}", run.undoing)
            _show_given_up(run.given_up, "# to give up")
    else:
        found = clean_runs(UNDO_HANDLERS, run_id, options=options)
        for run in found.runs:
            print_plain(f"run {run.run_id}: {len(run.undone)} steps undone")
            for step in run.undone:
                print_plain(f"  undone: {step.title}")
            _show_given_up(run.given_up, "  given up")
    _show_left(found)
    if error := found.error():
        raise error
    if forget and run_id is not None:
        print_plain(f"run {run_id}: " + ("its key is removed" if forget_key(run_id) else "it has no key"))
    return 0


def _show_given_up(steps: "Sequence[Step]", words: str) -> None:
    from plinth.run.hosts.undo import what_is_given_up

    for step in steps:
        print_plain(f"{words}: {what_is_given_up(step)}")


def _show_left(found: "CleanResult | LeftBehind") -> None:
    """Print what was not to be cleaned."""
    from plinth.system.paths import journal_dir
    from plinth.tasks.standalone import storage_name

    for kept in found.kept_runs:
        name = storage_name(kept.run_id)
        print_plain(f"left in place on purpose: {kept.what}; `plinth storage teardown {name}` undoes it")
    for alive in found.alive:
        who = f"still running (pid {alive.pid})" if alive.is_alive else "another process cleans up after it"
        print_plain(f"run {alive.run_id}: {who}, not cleaned")
    if not (found.runs or found.alive or found.kept_runs or found.unreadable):
        print_plain(f"nothing to clean: no journal in {journal_dir()}")
