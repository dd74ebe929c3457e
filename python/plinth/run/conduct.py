"""The run: provision, trials, undo."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from plinth import __version__
from plinth.bundle import BundleFolder, BundleWriter, read_cuts, read_wear
from plinth.load import LoadDriver, make_load
from plinth.model.contents import TrialContents
from plinth.model.errors import Interrupted, PlinthError, RunError
from plinth.model.load_config import LoadConfig
from plinth.model.plan import Plan
from plinth.model.workload import Driver
from plinth.run.checks.destroy import check_destroy
from plinth.run.checks.obstacles import Obstacles, find_obstacles
from plinth.run.command_log import CommandLog
from plinth.run.context import RunContext
from plinth.run.fleet import check_machines, fleet_load
from plinth.run.interrupt import InterruptGuard
from plinth.run.listener import Listener
from plinth.run.live_log import LiveLog
from plinth.run.power_cuts.power_cuts import PowerCuts
from plinth.run.provision.provision import Provision
from plinth.run.resume import left_behind
from plinth.run.resume.discard import discard_if_unused, missing_folders, remove_empty
from plinth.run.trial.clock import SystemClock
from plinth.run.trial.trial import TrialRunner
from plinth.run.trial.trials_end import TrialsEndRule
from plinth.run.undo import UNDO_HANDLERS
from plinth.run.write_budget import WriteBudget
from plinth.system import cancel
from plinth.system.directory import for_owner_only
from plinth.system.journal import Journal
from plinth.system.lock import DirectoryLock
from plinth.system.owner import server_owner
from plinth.system.run_key import create_key, forget_key
from plinth.system.runner import Runner


@dataclass(frozen=True)
class RunStatus:
    """The outcome of a run."""

    failed_trials: int
    bundle: Path
    """Where the bundle is now."""
    error: PlinthError | None = None
    """The error of the first storage, cluster or variant that failed, where the rest of the run continued."""


def run_plan(
    plan: Plan,
    experiment_toml: str,
    bundle: Path,
    listener: Listener,
    destroy: Collection[str] = (),
    connections: Mapping[str, str] | None = None,
    ssh_config: Path | None = None,
) -> RunStatus:
    """Do what the plan says and write it to `bundle`; `destroy` are the confirmations by which disks may be
    destroyed.

    `connections` has connection strings with their secrets, by what the plan has of them; it is not kept. `ssh_config` is the
    configuration of ssh that the command line names, for the machines of a fleet.

    Raises PlinthError when it cannot be done, and Interrupted on Ctrl-C; finished trials are in the bundle then, and
    everything that was made is undone. A run that failed before it could measure anything leaves a bundle only where that has logs.
    """
    check_destroy(plan.destructive_targets, destroy)
    obstacles = find_obstacles(plan, bundle, connections or {}, destroy)
    obstacles.check()
    made = missing_folders(bundle)
    folder = BundleFolder.made(bundle)
    try:
        return _run_in(
            folder, plan, experiment_toml, bundle, listener, destroy, connections or {}, obstacles, ssh_config
        )
    except PlinthError:
        remove_empty(made)
        raise


def _run_in(
    folder: BundleFolder,
    plan: Plan,
    experiment_toml: str,
    bundle: Path,
    listener: Listener,
    destroy: Collection[str],
    connections: Mapping[str, str],
    obstacles: Obstacles,
    ssh_config: Path | None,
) -> RunStatus:
    whole = {**connections, **obstacles.connections}
    with (
        DirectoryLock(bundle, folder.descriptor),
        owner_only_if_external(folder, plan),
        InterruptGuard(listener.note) as guard,
    ):
        key = create_key(plan.run_id)
        try:
            writer = BundleWriter.create(folder, plan, experiment_toml, __version__, key)
        except BaseException:
            forget_key(plan.run_id)
            raise
        try:
            return conduct(plan, writer, frozenset(), listener, guard, destroy, whole, obstacles, ssh_config=ssh_config)
        except PlinthError as error:
            with guard.shielded():
                discard_if_unused(folder, plan.run_id, error)
            raise


def owner_only_if_external(folder: BundleFolder, plan: Plan) -> AbstractContextManager[None]:
    """Facts about an external server and its host can be read by the owner of the bundle only."""
    return for_owner_only(folder.descriptor if plan.is_external else None)


def conduct(
    plan: Plan,
    writer: BundleWriter,
    done: frozenset[int],
    listener: Listener,
    guard: InterruptGuard,
    destroy: Collection[str],
    connections: Mapping[str, str] | None = None,
    obstacles: Obstacles | None = None,
    *,
    ssh_config: Path | None = None,
    resuming: bool = False,
    earlier: Sequence[TrialContents] = (),
    last_block: int | None = None,
) -> RunStatus:
    """Run the trials of `plan` that are not `done`, undo what was made for them, and close the bundle of `writer`.

    `earlier` are the trials that are done, for the live display. `last_block`: of an experiment with measure.target, run
    up to this block, whatever its budget. `obstacles` are lost from the beginning.

    `resuming`: what a killed run left behind is used or undone.
    """
    owner = server_owner()
    listener = live = LiveLog(writer.folder, plan, listener, earlier)
    context = RunContext.of(
        plan.storages,
        plan.run_id,
        plan.host,
        owner,
        writer.path,
        destroy,
        writer.folder,
        plan.networked,
        plan.experiment.measure.seed,
    )
    context = replace(context, ssh_config=ssh_config)
    if not owner.is_current_user:
        listener.note(owner.reason)
    runner = Runner(CommandLog(writer.log("commands.jsonl"), listener.note).record)
    journal = (
        left_behind.resume(plan, context, runner, listener) if resuming else Journal.create(plan.run_id, UNDO_HANDLERS)
    )
    begun_at = writer.path
    budget = WriteBudget.of(plan.experiment.measure, guard.stop, runner, read_wear(writer.folder))
    provision = Provision(plan, context, runner, journal, listener, budget, connections or {}, obstacles or Obstacles())

    def end(status: Literal["complete", "interrupted", "failed"], reason: str | None = None) -> None:
        _undo(provision, journal, listener)
        if writer.path != begun_at:
            listener.note(f"the bundle was moved while it was written: it is {writer.path} now")
        writer.write_wear(budget.result())
        live.close()
        writer.finish(status, reason, provision.failures.recorded())

    try:
        with budget:
            rule = TrialsEndRule(plan, [one.trial for one in earlier], SystemClock(), listener.note, last_block)
            failed = _run_trials(plan, provision, writer, done, listener, rule)
    except Interrupted as error:
        with guard.shielded():
            end("interrupted", error.message)
        error.hint = error.hint or f"finished trials are kept: `plinth resume {writer.path}` finishes the run"
        raise error from None
    except BaseException as error:
        with guard.shielded():
            end("failed", str(error))
        raise
    with guard.shielded():
        end("complete")
    return RunStatus(failed, writer.path, provision.failures.error())


def _run_trials(
    plan: Plan,
    provision: Provision,
    writer: BundleWriter,
    done: frozenset[int],
    listener: Listener,
    end_rule: TrialsEndRule,
) -> int:
    fleet, context = plan.experiment.fleet, provision.context
    if fleet is not None:
        check_machines(fleet, provision.runner, context.log("fleet.log"), listener, context.ssh_config)
    storages = provision.prepare(writer)

    def load(driver: Driver, config: LoadConfig) -> LoadDriver:
        if fleet is not None:
            log = context.log("fleet.log")
            return fleet_load(fleet, driver, config, provision.runner, log, context.ssh_config)
        return make_load(driver, config, provision.runner, context.log("drivers.log"))

    trials = TrialRunner(plan, provision, storages, listener, load, SystemClock(), writer.make_ledger)
    variants = {variant.id: variant for variant in plan.variants}
    described: set[str] = set()
    failed = 0
    for planned in plan.trials:
        if planned.number in done:
            continue
        if end := end_rule.before(planned):
            writer.end_trials(end)
            break
        variant = variants[planned.variant]
        listener.trial_started(planned, variant, len(plan.trials))
        output = trials.run(planned, variant)
        if output.server is not None and variant.id not in described:
            writer.write_server(variant.id, output.server)
            for node, facts in output.standbys.items():
                writer.write_standby(variant.id, node, facts)
            described.add(variant.id)
        writer.write_trial(output.trial, output.load, output.samples, output.events)
        listener.trial_ended(output.trial, output.load)
        end_rule.add(output.trial)
        if output.trial.status == "failed":
            failed += 1
            if plan.experiment.measure.stop_on_failure:
                raise RunError(
                    f"trial {planned.number} failed: {output.trial.failure}", where=f"variant {variant.label}"
                )
    provision.probe_io("measured", storages, writer)
    PowerCuts(plan, provision, writer, listener, load).run(read_cuts(writer.folder))
    cancel.check()
    return failed


def _undo(provision: Provision, journal: Journal, listener: Listener) -> None:
    kept = provision.close()
    journal.close()
    for item in kept:
        listener.note(f"{item}; `plinth clean` tries again")
