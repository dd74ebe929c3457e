"""Cleans up after runs that ended without doing so, by a crash, kill -9 or a power cut."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import PlinthError, Refused, RunError
from plinth.model.progress import Report
from plinth.model.step import Step
from plinth.system.failures import from_os_error
from plinth.system.journal import EndedRun, Journal, NotUndone, StillRunning, journal_path, read_ended
from plinth.system.paths import journal_dir
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandlers, undo_step


class CleanedRun(NamedTuple):
    """The result of cleaning up after one run. `given_up` are steps that were not undone, as asked, and will not be."""

    run_id: str
    undone: tuple[Step, ...]
    kept: tuple[NotUndone, ...]
    given_up: tuple[Step, ...] = ()


class KeptRun(NamedTuple):
    """A run that has ended and intentionally left its storages in place; `what` describes them for people."""

    run_id: str
    what: str
    steps: tuple[Step, ...]


class KeptRuns(NamedTuple):
    """All runs with storages that were intentionally left in place; `unreadable` are journals that may name more."""

    runs: tuple[KeptRun, ...]
    unreadable: tuple[PlinthError, ...]


class CleanResult(NamedTuple):
    """What `clean` did. `alive` are runs that are still going, and `kept_runs` those whose work is meant to stay: left alone."""

    runs: tuple[CleanedRun, ...]
    alive: tuple[StillRunning, ...] = ()
    kept_runs: tuple[KeptRun, ...] = ()
    unreadable: tuple[PlinthError, ...] = ()

    def error(self) -> PlinthError | None:
        """Return the error to report and to exit with if something could not be cleaned."""
        return _error([kept.error for run in self.runs for kept in run.kept] + list(self.unreadable))


class RunToClean(NamedTuple):
    """What cleaning up after one run would do, in order, and the steps that this Plinth does not know how to undo, or would give up."""

    run_id: str
    undoing: tuple[Step, ...]
    kept: tuple[NotUndone, ...]
    given_up: tuple[Step, ...] = ()


class CleanOptions(NamedTuple):
    """What a user says about runs that are cleaned."""

    give_up: Collection[str] = ()
    """Ids of steps that are not undone any more."""
    container_ended: bool = False
    """The container that the run was in has ended, though that cannot be seen: see `namespaces.check_reachable`."""


_NO_OPTIONS = CleanOptions()


class LeftBehind(NamedTuple):
    """What `clean` would do; as in `CleanResult`."""

    runs: tuple[RunToClean, ...]
    alive: tuple[StillRunning, ...]
    kept_runs: tuple[KeptRun, ...]
    unreadable: tuple[PlinthError, ...]

    def error(self) -> PlinthError | None:
        """Return the error to report and to exit with if something could not be cleaned, as far as journals tell."""
        return _error([kept.error for run in self.runs for kept in run.kept] + list(self.unreadable))


def pending_journals() -> tuple[Path, ...]:
    """Return the journals of all runs, alive or not; each is named after its run."""
    folder = journal_dir()
    try:
        return tuple(sorted(path for path in folder.iterdir() if path.suffix == ".jsonl"))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise from_os_error(
            error, "look for journals", folder, hint="clean as the user whose runs they were"
        ) from error


def clean(
    handlers: UndoHandlers,
    run_id: str | None = None,
    report: Report | None = None,
    runner: Runner | None = None,
    options: CleanOptions = _NO_OPTIONS,
) -> CleanResult:
    """Undo what dead runs left behind: the run `run_id`, or all of them. What was cleaned before is no error.

    Only what a journal names and what still has its label is touched. What is meant to stay is only named: see
    `take_down`. StillRunning when the run named is alive.
    """
    runner = runner or Runner()  # the same for all, by which a host that did not answer is not waited for again
    if run_id is not None:
        path = journal_path(run_id)
        if path not in pending_journals():
            return _result([])
        return _result([_clean_one(path, handlers, runner, report, options)])
    done: list[CleanedRun | KeptRun | None] = []
    alive: list[StillRunning] = []
    unreadable: list[PlinthError] = []
    for path in pending_journals():
        try:
            done.append(_clean_one(path, handlers, runner, report, options))
        except StillRunning as run:
            alive.append(run)
        except PlinthError as error:
            unreadable.append(error)
    return _result(done)._replace(alive=tuple(alive), unreadable=tuple(unreadable))


def left_behind(handlers: UndoHandlers, run_id: str | None = None, options: CleanOptions = _NO_OPTIONS) -> LeftBehind:
    """Return what `clean` would do for the run `run_id`, or for all runs, by their journals; nothing is changed.

    StillRunning when the run named is alive; what else is wrong with the journal of one that is named is raised too.
    """
    named = None if run_id is None else journal_path(run_id)
    ended: list[EndedRun] = []
    alive: list[StillRunning] = []
    unreadable: list[PlinthError] = []
    for path in pending_journals():
        if named not in (None, path):
            continue
        try:
            run = read_ended(path, container_ended=options.container_ended)
        except PlinthError as error:
            if named is not None:
                raise
            alive.append(error) if isinstance(error, StillRunning) else unreadable.append(error)
        else:
            ended += [run] if run is not None else []
    return LeftBehind(
        runs=tuple(_to_clean(run, handlers, options.give_up) for run in ended if run.kept is None),
        alive=tuple(alive),
        kept_runs=tuple(KeptRun(run.run_id, run.kept, run.steps) for run in ended if run.kept is not None),
        unreadable=tuple(unreadable),
    )


def take_down(
    handlers: UndoHandlers, run_id: str, report: Report | None = None, runner: Runner | None = None
) -> CleanResult:
    """Undo a run that has ended, even if its storages were left in place. Raises StillRunning if it is alive."""
    done = _clean_one(journal_path(run_id), handlers, runner or Runner(), report, _NO_OPTIONS, kept_too=True)
    return _result([done])


def kept_runs() -> KeptRuns:
    """Return the runs that have ended and whose storages were intentionally left in place, by their journals."""
    found = left_behind({})  # how the others would be undone is of no interest
    return KeptRuns(found.kept_runs, found.unreadable)


def _result(done: list[CleanedRun | KeptRun | None]) -> CleanResult:
    return CleanResult(
        runs=tuple(run for run in done if isinstance(run, CleanedRun)),
        kept_runs=tuple(run for run in done if isinstance(run, KeptRun)),
    )


def _clean_one(
    path: Path,
    handlers: UndoHandlers,
    runner: Runner,
    report: Report | None,
    options: CleanOptions,
    *,
    kept_too: bool = False,
) -> CleanedRun | KeptRun | None:
    journal = Journal.take_over(path, handlers, container_ended=options.container_ended)
    if journal is None:
        return None
    try:
        if journal.kept is not None and not kept_too:
            return _kept(journal)
        given_up = [entry for entry in journal.entries if entry.step.id in options.give_up]
        for entry in given_up:
            journal.give_up(entry)
        found = journal.entries
        kept = journal.undo_all(runner, report)
    finally:
        journal.close()
    left = {entry.number for entry in journal.entries}
    undone = tuple(entry.step for entry in found if entry.number not in left)
    return CleanedRun(journal.run_id, undone, kept, tuple(entry.step for entry in given_up))


def _to_clean(run: EndedRun, handlers: UndoHandlers, give_up: Collection[str]) -> RunToClean:
    undoing: list[Step] = []
    kept: list[NotUndone] = []
    for step in reversed(run.steps):
        if step.id in give_up:
            continue
        try:
            undo = undo_step(step, handlers)
        except PlinthError as error:
            kept.append(NotUndone(step, error))
        else:
            undoing += [undo] if undo is not None else []
    given_up = tuple(step for step in run.steps if step.id in give_up)
    return RunToClean(run.run_id, tuple(undoing), tuple(kept), given_up)


def _error(problems: Sequence[PlinthError]) -> PlinthError | None:
    if not problems:
        return None
    kind = Refused if all(isinstance(problem, Refused) for problem in problems) else RunError
    return kind(
        f"{len(problems)} {'thing' if len(problems) == 1 else 'things'} could not be cleaned up",
        where=str(journal_dir()),
        hint="correct what is named above, then run plinth clean again",
        details=[line for problem in problems for line in _lines(problem)],
    )


def _lines(problem: PlinthError) -> list[str]:
    hint = [] if problem.hint is None else [f"  hint: {problem.hint}"]
    return [f"{problem.where}: {problem.message}", *hint]


def _kept(journal: Journal) -> KeptRun:
    return KeptRun(journal.run_id, journal.kept or "", tuple(entry.step for entry in journal.entries))
