"""`plinth storage`: standalone storages, which are prepared outside of any run, left in place, and taken down again."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from plinth.common.nearest import nearest
from plinth.experiment import ParsedExperiment
from plinth.model.errors import UsageError, together
from plinth.model.facts import StorageFacts
from plinth.model.step import Step
from plinth.observe.facts import host_facts
from plinth.run.checks.destroy import check_destroy, destructive_targets
from plinth.run.interrupt import InterruptGuard
from plinth.run.undo import UNDO_HANDLERS, undo_step
from plinth.storage import hanging_places, make
from plinth.storage.protocol import LocalStorage
from plinth.system import cancel
from plinth.system.clean import CleanedRun, KeptRun, kept_runs, take_down
from plinth.system.journal import Journal
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir
from plinth.system.runner import Runner

_RUN_PREFIX = "standalone-"
Tell = Callable[[Step], None]


class Prepared(NamedTuple):
    """A standalone storage, and all that it is built on."""

    run_id: str
    storage: LocalStorage[Any]
    facts: StorageFacts


def run_id_of(name: str) -> str:
    """Return the run that a standalone storage belongs to: always the same, so that its paths and commands are known before."""
    return f"{_RUN_PREFIX}{name}"


def storage_name(run_id: str) -> str:
    """Return the name of the standalone storage whose run is `run_id`."""
    return run_id.removeprefix(_RUN_PREFIX)


def storages_of(loaded: ParsedExperiment) -> dict[str, LocalStorage[Any]]:
    """Return every storage of an experiment, each after what it is built on, as a run would make them. Nothing is touched."""
    return _make(loaded, "RUN")


def standalone_storages(
    loaded: ParsedExperiment, name: str, destroy: Collection[str] = ()
) -> dict[str, LocalStorage[Any]]:
    """Return the storage `name` of an experiment and those that it is built on, each after what it is built on."""
    specs = loaded.experiment.storage
    if name not in specs:
        raise UsageError(
            f"the experiment has no storage {name!r}; it has {', '.join(specs) or 'none'}",
            where=loaded.file,
            hint=nearest(name, specs),
        )
    return _with_its_layers(_make(loaded, run_id_of(name), destroy), name)


def standalone_steps(storages: Mapping[str, LocalStorage[Any]]) -> tuple[list[Step], list[Step]]:
    """Return the steps that make these storages, and those that undo them; every command exactly as it will run."""
    steps = [step for storage in storages.values() for step in storage.steps()]
    undoing = (undo_step(step) for step in reversed(steps))
    return steps, [step for step in undoing if step is not None]


def prepare_standalone(
    loaded: ParsedExperiment,
    name: str,
    destroy: Collection[str],
    runner: Runner,
    tell: Tell,
    note: Callable[[str], None],
) -> Prepared:
    """Make a storage and leave it; `tell` is called with each step that is about to be done.

    When it cannot be made, or is interrupted, what was made of it is undone; `note` is called with what could not be.
    """
    storages = standalone_storages(loaded, name, destroy)
    check_destroy(destructive_targets(storages.values(), runner), destroy)
    run_id = run_id_of(name)
    with InterruptGuard(note) as guard:
        journal = Journal.create(run_id, UNDO_HANDLERS)
        facts: dict[str, StorageFacts] = {}
        try:
            for storage in storages.values():
                facts[storage.name] = storage.prepare(runner, journal, tell)
            cancel.check()
            journal.keep(f"storage {name} of {loaded.file}, in {storages[name].mount_point}")
            return Prepared(run_id, storages[name], facts[name])
        except BaseException:
            with guard.shielded():
                for kept in journal.undo_all(runner):
                    note(f"{kept}; `plinth clean` tries again")
            raise
        finally:
            journal.close()


def kept_run(name: str) -> KeptRun:
    """Return the standalone storage of this name or run. Raises UsageError, which lists those that exist, for another name."""
    there, unreadable = kept_runs()
    for run in there:
        if name in (run.run_id, storage_name(run.run_id)):
            return run
    raise UsageError(
        f"there is no standalone storage {name!r}",
        hint="there is " + (", ".join(storage_name(run.run_id) for run in there) or "none at all"),
        details=[f"{error.where}: {error.message}" for error in unreadable],
    )


def teardown_standalone(run: KeptRun, runner: Runner) -> CleanedRun:
    """Undo a standalone storage. Raises the first error; what is left stays in the journal."""
    result = take_down(UNDO_HANDLERS, run.run_id, runner=runner)
    if error := result.error():
        raise error
    return result.runs[0]


def _make(loaded: ParsedExperiment, run_id: str, destroy: Collection[str] = ()) -> dict[str, LocalStorage[Any]]:
    specs = loaded.experiment.storage
    if hanging := hanging_places(specs):
        raise together("the storages cannot be made here", hanging)
    return make(specs, run_id=run_id, host=host_facts(), owner=server_owner(), work_root=work_dir(), destroy=destroy)


def _with_its_layers(storages: Mapping[str, LocalStorage[Any]], name: str) -> dict[str, LocalStorage[Any]]:
    needed = {name}
    for other in reversed(list(storages)):  # each comes after what it is built on
        if other in needed:
            needed.update(storages[other].requires())
    return {other: storages[other] for other in storages if other in needed}
