"""The run: provision, trials, undo; and its continuation after it was cut short."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plinth import __version__
from plinth.bundle import (
    REPEAT_HINT,
    BundleFolder,
    BundleWriter,
    read_authentic_plan,
    read_bundle,
    read_manifest,
    read_wear,
    verify_bundle,
)
from plinth.model.errors import Interrupted, PlinthError, Refused, RunError, UsageError
from plinth.model.facts import HostFacts
from plinth.model.manifest import Manifest
from plinth.model.plan import Plan
from plinth.model.units import format_size
from plinth.observe import host_facts
from plinth.run.budget import WriteBudget
from plinth.run.command_log import CommandLog
from plinth.run.destroy import check_destroy
from plinth.run.interrupt import InterruptGuard
from plinth.run.listener import Listener
from plinth.run.losses import error_of
from plinth.run.provision import Provision, check_needs
from plinth.run.site import Site
from plinth.run.survivors import take_up
from plinth.run.trial import TrialRunner
from plinth.run.undo import UNDO_HANDLERS
from plinth.system import cancel
from plinth.system.clean import clean
from plinth.system.journal import Journal
from plinth.system.lock import DirectoryLock
from plinth.system.owner import server_owner
from plinth.system.owners_only import for_owner_only
from plinth.system.run_key import NoKey, RunKey, create_key, forget_key, read_key
from plinth.system.runner import Runner


@dataclass(frozen=True)
class RunStatus:
    """How a run went."""

    failed_trials: int
    bundle: Path
    """Where the bundle stands now."""
    error: PlinthError | None = None
    """What the first storage or cluster was lost by, where the rest of the run went on."""


def run_plan(
    plan: Plan,
    experiment_toml: str,
    bundle: Path,
    listener: Listener,
    destroy: Collection[str] = (),
    connections: Mapping[str, str] | None = None,
) -> RunStatus:
    """Do what the plan says and write it to `bundle`; `destroy` are the words by which disks may be destroyed.

    `connections` has connection strings with their secrets, by what the plan has of them; it is not kept.

    Raises PlinthError when it cannot be done, and Interrupted on Ctrl-C; finished trials are in the bundle then, and
    everything that was made is undone.
    """
    check_destroy(plan.doomed, destroy)
    check_needs(plan)
    folder = BundleFolder.made(bundle)
    with (
        DirectoryLock(bundle, folder.descriptor),
        _for_owner_only(folder, plan),
        InterruptGuard(listener.note) as guard,
    ):
        key = create_key(plan.run_id)
        try:
            writer = BundleWriter.create(folder, plan, experiment_toml, __version__, key)
        except BaseException:
            forget_key(plan.run_id)
            raise
        return _conduct(plan, writer, frozenset(), listener, guard, destroy, connections)


def resume_bundle(bundle: Path, listener: Listener, destroy: Collection[str] = ()) -> RunStatus:
    """Finish the run of `bundle`: go on with what it left standing, make the rest, and run the trials that are missing.

    Nothing in the bundle is believed before the key of its run, which is outside of it, shows that its plan is ours:
    a plan names commands, which run as whoever resumes. Raises Refused otherwise.
    """
    folder = BundleFolder(bundle)
    key = _key_of(bundle, read_manifest(folder))
    with DirectoryLock(bundle, folder.descriptor), ExitStack() as stack, InterruptGuard(listener.note) as guard:
        manifest = read_manifest(folder)
        plan = read_authentic_plan(folder, manifest, key)
        stack.enter_context(_for_owner_only(folder, plan))
        trials = read_bundle(folder).trials
        done = frozenset(contents.trial.number for contents in trials)
        lost_before = error_of(manifest.losses, bundle)
        failed = sum(contents.trial.status == "failed" for contents in trials)
        if done.issuperset(trial.number for trial in plan.trials):
            if manifest.status != "complete":
                BundleWriter.reopen(folder, manifest).finish("complete")
            verify_bundle(folder)
            listener.note("all trials are in the bundle: nothing to resume")
            with guard.shielded():
                _clean_up(plan.run_id, listener)
            return RunStatus(failed, folder.path, lost_before)
        check_destroy(plan.doomed, destroy)
        _check_same_makers(plan.host, manifest.plinth_version)
        check_needs(plan)
        status = _conduct(plan, BundleWriter.reopen(folder, manifest), done, listener, guard, destroy, goes_on=True)
        return RunStatus(status.failed_trials + failed, status.bundle, lost_before or status.error)


def _for_owner_only(folder: BundleFolder, plan: Plan) -> AbstractContextManager[None]:
    """What a server of somebody else's says of itself and of its host is nobody's but the owner's of the bundle."""
    return for_owner_only(folder.descriptor if plan.is_external else None)


def _key_of(bundle: Path, manifest: Manifest) -> RunKey:
    try:
        return read_key(manifest.run_id)
    except NoKey as error:
        raise Refused(
            f"run {manifest.run_id} was not begun here by this user, or its key was removed: a bundle from elsewhere is not "
            "resumed, since its plan could make this machine do anything",
            where=f"{bundle}; no {error.where}",
            hint=REPEAT_HINT.format(bundle=bundle),
        ) from error


def _conduct(
    plan: Plan,
    writer: BundleWriter,
    done: frozenset[int],
    listener: Listener,
    guard: InterruptGuard,
    destroy: Collection[str],
    connections: Mapping[str, str] | None = None,
    *,
    goes_on: bool = False,
) -> RunStatus:
    owner = server_owner()
    site = Site.of(plan.storages, plan.run_id, plan.host, owner, writer.path, destroy, writer.folder)
    if not owner.is_us:
        listener.note(owner.reason)
    runner = Runner(CommandLog(writer.log("commands.jsonl"), listener.note).record)
    journal = take_up(plan, site, runner, listener) if goes_on else Journal.create(plan.run_id, UNDO_HANDLERS)
    begun_at = writer.path
    budget = WriteBudget.of(plan.experiment.measure, guard.stop, runner, read_wear(writer.folder))
    provision = Provision(plan, site, runner, journal, listener, budget, connections or {})

    def end(status: Literal["complete", "interrupted", "failed"], reason: str | None = None) -> None:
        _undo(provision, journal, listener)
        if writer.path != begun_at:
            listener.note(f"the bundle was moved while it was written: it is {writer.path} now")
        writer.write_wear(budget.result())
        writer.finish(status, reason, provision.losses.recorded())

    try:
        with budget:
            failed = _run_trials(plan, provision, writer, done, listener)
    except Interrupted as error:
        with guard.shielded():
            end("interrupted", error.message)
        error.hint = error.hint or f"finished trials are kept: `plinth resume {writer.path}` goes on"
        raise error from None
    except BaseException as error:
        with guard.shielded():
            end("failed", str(error))
        raise
    with guard.shielded():
        end("complete")
    return RunStatus(failed, writer.path, provision.losses.error())


def _run_trials(
    plan: Plan, provision: Provision, writer: BundleWriter, done: frozenset[int], listener: Listener
) -> int:
    storages = provision.prepare(writer)
    trials = TrialRunner(plan, provision, storages, listener)
    variants = {variant.id: variant for variant in plan.variants}
    described: set[str] = set()
    failed = 0
    for planned in plan.trials:
        if planned.number in done:
            continue
        variant = variants[planned.variant]
        listener.trial_started(planned, variant, len(plan.trials))
        output = trials.run(planned, variant)
        if output.trial.status == "failed" and provision.loss(variant) is None:
            # What the server says of it, an I/O error, is not yet why; that is written down with the trial.
            output.add_cause(provision.after_failure(variant))
        if output.server is not None and variant.id not in described:
            writer.write_server(variant.id, output.server)
            described.add(variant.id)
        writer.write_trial(output.trial, output.load, output.samples, output.events)
        listener.trial_ended(output.trial)
        if output.trial.status == "failed":
            failed += 1
            if plan.experiment.measure.stop_on_failure:
                raise RunError(
                    f"trial {planned.number} failed: {output.trial.failure}", where=f"variant {variant.label}"
                )
    provision.probe_io("measured", storages, writer)
    cancel.check()
    return failed


def _undo(provision: Provision, journal: Journal, listener: Listener) -> None:
    kept = provision.close()
    journal.close()
    for item in kept:
        listener.note(f"{item}; `plinth clean` tries again")


def _clean_up(run_id: str, listener: Listener) -> None:
    """Undo what a run left that was killed when all was measured and not yet all undone."""
    result = clean(UNDO_HANDLERS, run_id, listener.progress)
    if error := result.error():
        raise error
    for run in result.runs:
        for step in run.undone:
            listener.note(f"undone, of what the run had left: {step.title}")


def _check_same_makers(before: HostFacts, plinth_version: str) -> None:
    """Trials of two machines, or of two load engines, are not trials of one experiment."""
    now = host_facts()
    differing = [
        f"{what}: {then} then, {today} now"
        for what, then, today in (
            ("CPU", before.cpu_model, now.cpu_model),
            ("cores", before.cores, now.cores),
            # As people read it: the kernel keeps a few kB more or less for itself at each boot.
            ("memory", format_size(before.memory_total_bytes), format_size(now.memory_total_bytes)),
            ("kernel", before.kernel, now.kernel),
            ("Plinth", plinth_version, __version__),
        )
        if then != today
    ]
    if differing:
        raise UsageError(
            "this machine, or this Plinth, is not the one that the bundle's trials were measured with",
            details=differing,
            hint="begin a new run here: `plinth run BUNDLE` repeats its experiment",
        )
