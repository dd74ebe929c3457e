"""The run: provision, trials, undo."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from plinth.bundle import BundleFolder, BundleWriter, read_cuts, read_io_errors, read_wear
from plinth.load import LoadDriver, make_load
from plinth.model.contents import TrialContents
from plinth.model.errors import Interrupted, PlinthError, RunError
from plinth.model.load_config import LoadConfig
from plinth.model.plan import Plan
from plinth.model.trial import Trial
from plinth.model.workload import Driver
from plinth.run.checks.obstacles import Obstacles, find_obstacles
from plinth.run.context import RunContext, network_layout
from plinth.run.fleet import check_machines, fleet_load
from plinth.run.host import Hosts
from plinth.run.hosts.undo import host_step
from plinth.run.interrupt import InterruptGuard
from plinth.run.io_errors import make_io_errors
from plinth.run.listener import Listener
from plinth.run.live_log import LiveLog
from plinth.run.local_host import ONLY_THIS
from plinth.run.power_cuts.after_trials import AfterTrials
from plinth.run.power_cuts.power_cuts import make_power_cuts
from plinth.run.provision.provisioner import Provisioner
from plinth.run.run_bundle import (
    CommandLog,
    discard_if_unused,
    missing_folders,
    new_bundle,
    owner_only_if_external,
    remove_empty,
)
from plinth.run.trial.trial import Clock, TrialRunner
from plinth.run.trial.trials_end import TrialsEndRule
from plinth.run.undo import UNDO_HANDLERS
from plinth.run.write_budget import WriteBudget
from plinth.system import cancel
from plinth.system.journal import Journal
from plinth.system.lock import DirectoryLock
from plinth.system.runner import Runner


@dataclass(frozen=True)
class RunStatus:
    """How a run ended."""

    failed_trials: int
    bundle: Path
    """Where the bundle is now."""
    error: PlinthError | None = None
    """The error of the first storage, cluster or variant that failed, where the rest of the run continued."""


@dataclass(frozen=True)
class Given:
    """What the command line gives to a run."""

    destroy: Collection[str] = ()
    """The confirmations by which disks may be destroyed."""
    connections: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Connection strings with their secrets, by what the plan has of them; not kept."""
    ssh_config: Path | None = None
    """The configuration of ssh for the machines of a fleet. None: the user's default."""
    hosts: Hosts = field(default_factory=lambda: ONLY_THIS)
    """The machines of the plan's storages."""


@dataclass(frozen=True)
class Continued:
    """What there is of a run that is resumed: the numbers of the trials that are done, and their contents for the live display.

    `last_block`: of an experiment with measure.target, run up to this block, without regard to its budget. `journal` returns the journal
    of the run, what is left of which is undone or to be used.
    """

    done: frozenset[int] = frozenset()
    earlier: Sequence[TrialContents] = ()
    last_block: int | None = None
    journal: Callable[[Plan, RunContext, Runner, Listener], Journal] = lambda plan, *_: Journal.create(
        plan.run_id, UNDO_HANDLERS
    )


def run_plan(
    plan: Plan, experiment_toml: str, bundle: Path, listener: Listener, given: Given | None = None
) -> RunStatus:
    """Do what the plan says and write it to `bundle`.

    Raises PlinthError when it cannot be done, and Interrupted on Ctrl-C; finished trials are in the bundle then, and
    everything that was made is undone. A run that failed before it could measure anything leaves a bundle only where that has logs.
    """
    given = given or Given()
    obstacles = find_obstacles(plan, bundle, given.connections, given.destroy, given.hosts)
    obstacles.check()
    given = replace(given, connections={**given.connections, **obstacles.connections})
    made = missing_folders(bundle)
    folder = BundleFolder.made(bundle)
    try:
        with (
            DirectoryLock(bundle, folder.descriptor),
            owner_only_if_external(folder, plan),
            InterruptGuard(listener.note) as guard,
        ):
            writer = new_bundle(folder, plan, experiment_toml)
            try:
                return conduct(plan, writer, listener, guard, given, obstacles)
            except PlinthError as error:
                with guard.shielded():
                    discard_if_unused(folder, plan.run_id, error)
                raise
    except PlinthError:
        remove_empty(made)
        raise


def conduct(
    plan: Plan,
    writer: BundleWriter,
    listener: Listener,
    guard: InterruptGuard,
    given: Given,
    obstacles: Obstacles,
    continued: Continued | None = None,
) -> RunStatus:
    """Run the trials of `plan`, undo what was made for them, and close the bundle of `writer`. `obstacles` are lost.

    `continued`: only the trials that are missing, and what a killed run left behind is used or undone.
    """
    before = continued or Continued()
    listener = live = LiveLog(writer.folder, plan, listener, before.earlier)
    context = _context(plan, writer, given)
    if not context.owner.is_current_user:
        listener.note(context.owner.reason)
    commands = CommandLog(writer.log("commands.jsonl"), listener.note)
    for host in given.hosts.values():
        host.log_commands(commands.record, listener.note)
    runner = Runner(commands.record)
    journal = before.journal(plan, context, runner, listener)
    for name, spec in plan.experiment.used_hosts.items():
        step = host_step(name, spec, plan.run_id, None if given.ssh_config is None else str(given.ssh_config))
        if not journal.has(step.id):
            journal.record(step)
    begun_at = writer.path
    budget = WriteBudget.of(plan.experiment.measure, guard.stop, runner, read_wear(writer.folder), given.hosts)
    provisioner = Provisioner(plan, context, runner, journal, listener, budget, given.connections)

    def end(status: Literal["complete", "interrupted", "failed"], reason: str | None = None) -> None:
        budget.leave_hosts()
        kept = provisioner.close()
        journal.close()
        for item in kept:
            listener.note(f"{item}; `plinth clean` tries again")
        if writer.path != begun_at:
            listener.note(f"the bundle was moved while it was written: it is {writer.path} now")
        writer.write_wear(budget.result())
        live.close()
        writer.finish(status, reason, provisioner.failures.recorded())

    try:
        with budget:
            earlier = [one.trial for one in before.earlier]
            rule = TrialsEndRule(plan, earlier, Clock(), listener.note, before.last_block)
            failed = _run_trials(provisioner, obstacles, writer, before.done, listener, rule)
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
    return RunStatus(failed, writer.path, provisioner.failures.first())


def _context(plan: Plan, writer: BundleWriter, given: Given) -> RunContext:
    context = RunContext.of(
        plan.storages,
        plan.run_id,
        plan.facts_by_host,
        writer.path,
        given.destroy,
        writer.folder,
        network_layout(plan.run_id, plan.networked, plan.experiment.measure.seed),
        given.hosts,
    )
    return replace(context, ssh_config=given.ssh_config)


def _run_trials(
    provisioner: Provisioner,
    obstacles: Obstacles,
    writer: BundleWriter,
    done: frozenset[int],
    listener: Listener,
    end_rule: TrialsEndRule,
) -> int:
    plan, context, runner = provisioner.plan, provisioner.context, provisioner.runner
    fleet = plan.experiment.fleet
    if fleet is not None:
        check_machines(fleet, runner, context.log("fleet.log"), listener, context)
    storages = provisioner.prepare(writer, obstacles)

    def load(driver: Driver, config: LoadConfig) -> LoadDriver:
        if fleet is not None:
            log = context.log("fleet.log")
            return fleet_load(fleet, driver, config, runner, log, context)
        return make_load(driver, config, runner, context.log("drivers.log"))

    trials = TrialRunner(plan, provisioner, storages, listener, load, Clock(), writer.make_ledger)
    variants = {variant.id: variant for variant in plan.variants}
    described: set[str] = set()
    bugs: set[str] = set()
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
        note_bugs(output.trial, bugs, listener.note)
        end_rule.add(output.trial)
        if output.trial.status == "failed":
            failed += 1
            if plan.experiment.measure.stop_on_failure:
                raise RunError(
                    f"trial {planned.number} failed: {output.trial.failure}", where=f"variant {variant.label}"
                )
    provisioner.probe_io("measured", storages, writer)
    after = AfterTrials(plan, provisioner, writer, listener, load)
    make_power_cuts(after, read_cuts(writer.folder))
    make_io_errors(after, read_io_errors(writer.folder))
    cancel.check()
    return failed


def note_bugs(trial: Trial, noted: set[str], note: Callable[[str], None]) -> None:
    """Note what a bug in Plinth left unread in this trial, each bug once: the run may be worth ending before hours are spent."""
    for gap in trial.gaps:
        if gap.is_bug and gap.reason not in noted:
            noted.add(gap.reason)
            note(f"{gap.what} could not be read: {gap.reason}; further trials will probably lack it too")
