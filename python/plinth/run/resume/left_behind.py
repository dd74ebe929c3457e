"""What a run that was killed has left behind: kept for the resumed run where it can be used, else undone."""

from collections.abc import Sequence

from plinth.model.errors import PlinthError
from plinth.model.plan import Plan
from plinth.run.context import RunContext
from plinth.run.listener import Listener
from plinth.run.power_cuts.recorded_disks import undo_left_images
from plinth.run.provision.provisioner import NETWORK_STEPS
from plinth.run.provision.restoring import restoring_of
from plinth.run.trial.snapshots import remove_left_snapshots
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.copies.loaded_copy import CopySteps, remove_copies_command, remove_snapshot
from plinth.server.external.external_server import external_step
from plinth.server.layout import MEMORY, ServerLayout
from plinth.server.processes import serving
from plinth.server.replication.patroni_machine import PATRONI_STEPS
from plinth.storage.protocol import LocalStorage
from plinth.system.clean import CleanedRun, CleanResult, pending_journals
from plinth.system.directory import found_label
from plinth.system.failures import from_os_error
from plinth.system.journal import Journal, NotUndone, journal_path
from plinth.system.runner import Runner
from plinth.workload import is_resumable


def resume(plan: Plan, context: RunContext, runner: Runner, listener: Listener) -> Journal:
    """Return the journal of a resumed run; what is in it still exists, and is whole where a mark says so.

    All or nothing: where one storage does not serve any more, all is undone. Servers are ended, since they were the
    children of the run that was killed. Raises PlinthError when something cannot be undone.
    """
    path = journal_path(plan.run_id)
    journal = Journal.take_over(path, UNDO_HANDLERS) if path in pending_journals() else None
    if journal is None:
        return Journal.create(plan.run_id, UNDO_HANDLERS)
    journal.own()
    with journal.ending_hung_daemons():
        marked = [
            storage
            for storage in context.used_storages(plan.clusters)
            if isinstance(storage, LocalStorage) and journal.has(storage.step_id("made"))
        ]
        reason = next((why for storage in marked if (why := _why_not(storage, runner))), None)
        if reason is not None:
            listener.note(f"everything is made again: {reason}")
        kept = (
            list(journal.undo_all(runner)) if reason is not None else _undo_unfinished(plan, context, journal, runner)
        )
    if kept:
        journal.close()
        error = CleanResult((CleanedRun(plan.run_id, (), tuple(kept)),)).error()
        assert error is not None, "something was kept"
        raise error
    return journal


def _why_not(storage: LocalStorage, runner: Runner) -> str | None:
    """Return why a storage that was made cannot be used any more; None when it can."""
    try:
        failure = storage.failure() or (None if storage.is_raw else storage.write_failure(runner))
        if failure is None:
            storage.confirm()
            if not storage.is_raw and found_label(storage.mount_point) != storage.label:
                failure = f"{storage.mount_point} does not have our label any more"
    except PlinthError as error:
        failure = error.message
    except OSError as error:
        failure = from_os_error(error, f"look at storage {storage.name}", storage.mount_point).message
    return None if failure is None else f"storage {storage.name}: {failure}"


def _undo_unfinished(plan: Plan, context: RunContext, journal: Journal, runner: Runner) -> list[NotUndone]:
    """End the servers; undo clusters and storages that were not whole yet."""
    managed = [cluster for cluster in plan.clusters if not cluster.is_external]
    kept: list[NotUndone] = list(journal.undo_steps(PATRONI_STEPS, runner))  # they would start the servers again
    made = [storage for storage in context.used_storages(plan.clusters) if journal.has(storage.step_id("made"))]
    here = [
        context.layout(one, node) for one in managed for node in one.nodes if context.host_of(node).stays_after_kill
    ]
    kept += undo_left_images(made, here, journal, runner)
    for cluster in reversed(managed):
        for node in reversed(cluster.nodes):
            if not context.host_of(node).stays_after_kill:
                continue  # its agent has undone it
            layout = context.layout(cluster, node)
            for step in (layout.start_step().id, layout.step_id(MEMORY), layout.sockets_step().id):
                kept += journal.undo_steps(step, runner)
            if not kept and node is cluster.primary:
                remove_left_snapshots(context, cluster, plan.experiment.measure.actions, journal, runner)
            if not kept and not (journal.has(layout.whole_step().id) and is_resumable(cluster.dataset)):
                kept += journal.undo_steps(layout.step_id(""), runner)
                ways = restoring_of(plan, context).ways(cluster, node)
                _remove_unfinished(CopySteps(layout, ways), runner)
            elif not kept:
                _remove_lock(layout, runner)
    for cluster in plan.clusters:
        if cluster.is_external and not is_resumable(cluster.dataset):
            kept += journal.undo_steps(external_step(plan.run_id, cluster.id_of(cluster.primary)).id, runner)
    kept += journal.undo_steps(NETWORK_STEPS, runner)  # it is made again, as the servers are started again
    for storage in reversed(context.used_storages(plan.clusters)):
        if not journal.has(storage.step_id("made")):
            kept += journal.undo_steps(storage.step_id(""), runner)
    return kept


def _remove_lock(layout: ServerLayout, runner: Runner) -> None:
    """Remove the lock file of a server that was killed: no server starts while a zombie or another process has its pid."""
    if not serving(layout.data_directory):
        runner.run(("rm", "-f", "--", str(layout.data_directory / "postmaster.pid")), owner=layout.owner)


def _remove_unfinished(copy: CopySteps, runner: Runner) -> None:
    """Remove what initdb or pg_basebackup had begun, and copies of it: as the user whose it is, who can remove nothing else; as ourselves
    what had begun to be copied of a backup, whose files are still of those who own the original."""
    layout = copy.layout
    made = (layout.data_directory, layout.wal_directory, *(layout.tablespaces.values() if layout.upstream else ()))
    paths: Sequence[str] = [str(path) for path in made if path is not None]
    owner = layout.owner if layout.backup is None else None
    runner.run(("rm", "-rf", "--one-file-system", "--", *paths), owner=owner)
    runner.run(remove_copies_command(layout), owner=layout.owner)
    for snapshot in copy.snapshots:
        remove_snapshot(snapshot, runner)
