"""Resuming a bundle: the trials that are missing, and more trials than were planned."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from plinth import __version__
from plinth.bundle import (
    REPEAT_HINT,
    BundleFolder,
    BundleWriter,
    is_sealed,
    read_authentic,
    read_bundle,
    read_manifest,
    verify_bundle,
)
from plinth.model.contents import BundleContents
from plinth.model.durability import cuts_left
from plinth.model.errors import MissingCapability, PlinthError, Refused, UsageError, together
from plinth.model.facts import ServerFacts
from plinth.model.manifest import Manifest, TrialsEnd
from plinth.model.plan import Plan
from plinth.model.units import format_duration, format_size
from plinth.plan import extended, plan_more
from plinth.run.checks.destroy import destroy_error
from plinth.run.checks.obstacles import Obstacles, lacking_storages
from plinth.run.conduct import Continued, Given, RunStatus, conduct
from plinth.run.context import RunContext, network_layout
from plinth.run.failures import error_of
from plinth.run.host import Hosts
from plinth.run.hosts.connect import connected_hosts
from plinth.run.interrupt import InterruptGuard
from plinth.run.listener import Listener
from plinth.run.planning.inputs import plan_inputs
from plinth.run.provision.restoring import restoring_of
from plinth.run.resume import left_behind
from plinth.run.run_bundle import owner_only_if_external
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.external.external_server import ExternalServer
from plinth.system.clean import clean
from plinth.system.lock import DirectoryLock
from plinth.system.run_key import NoKey, RunKey, read_key
from plinth.system.runner import Runner
from plinth.workload import dataset_of


def resume_bundle(
    bundle: Path,
    listener: Listener,
    destroy: Collection[str] = (),
    more: int | None = None,
    ssh_config: Path | None = None,
) -> RunStatus:
    """Finish the run of `bundle`: use what it left behind, make the rest, and run the trials that are missing.

    With `more`, add so many trials of each variant to a run that is complete, and run them. `ssh_config` as of `run_plan`.

    Nothing in the bundle is believed before the key of its run, which is outside of it, shows that its plan is ours:
    a plan names commands, which run with the rights of the user who resumes. Raises Refused otherwise.
    """
    folder = BundleFolder(bundle)
    key = key_of_bundle(bundle, read_manifest(folder))
    with DirectoryLock(bundle, folder.descriptor), ExitStack() as stack, InterruptGuard(listener.note) as guard:
        manifest = read_manifest(folder)
        authentic = read_authentic(folder, manifest, key)
        plan = authentic.plan
        stack.enter_context(owner_only_if_external(folder, plan))
        contents = read_bundle(folder)
        progress = _Progress.of(contents, manifest, bundle)
        if more is None and progress.has_all_trials:
            if not progress.has_cuts_left:
                return _nothing_missing(folder, manifest, plan, progress, listener, guard)
            if manifest.status == "complete":
                verify_bundle(folder)  # it has power cuts that could not be tested
        hosts = stack.enter_context(connected_hosts(plan.experiment.used_hosts, ssh_config))
        _check_same_makers(_makers(plan, manifest, hosts))
        connections: dict[str, str] = {}
        last_block = manifest.trials_end and manifest.trials_end.block
        if more is not None:
            _check_complete(folder, manifest, plan, progress)
            connections = _check_external_servers(plan, contents.servers)
            plan, last_block = _with_more(plan, manifest, more, folder.path, hosts)
        lacking = _check_feasible(plan, destroy)
        if more is not None:
            listener.note(_announced(plan, authentic.plan, more, progress))
            with guard.shielded():
                _clean_up(plan.run_id, listener)
        if plan is authentic.plan:
            writer = BundleWriter.reopen(folder, manifest)
        else:
            writer = BundleWriter.extend(folder, manifest, key, authentic, plan)
        status = conduct(
            plan,
            writer,
            listener,
            guard,
            Given(destroy, connections, ssh_config, hosts),
            Obstacles(storages=dict(lacking)),
            Continued(progress.done, contents.trials, last_block, left_behind.resume),
        )
        return RunStatus(
            status.failed_trials + progress.failed_trials, status.bundle, progress.failure_before or status.error
        )


@dataclass(frozen=True)
class _Progress:
    """How far a run has come: the numbers of its trials, how many of them failed, and the first error of its storages, clusters and variants."""

    done: frozenset[int]
    failed_trials: int
    failure_before: PlinthError | None
    has_all_trials: bool
    has_cuts_left: bool
    """Or errors of storages."""

    @classmethod
    def of(cls, contents: BundleContents, manifest: Manifest, bundle: Path) -> "_Progress":
        plan, done = contents.plan, frozenset(one.trial.number for one in contents.trials)
        durability = plan.experiment.durability
        tested = [cut for cut in contents.cuts if cut.was_tested]
        return cls(
            done,
            sum(one.trial.status == "failed" for one in contents.trials),
            error_of(manifest.failures, bundle),
            done.issuperset(trial.number for trial in contents.expected_trials),
            bool(cuts_left(plan.cuts, tested, durability.stop_after if durability else None))
            or len(plan.io_errors) > sum(one.was_tested for one in contents.io_errors),
        )


def _with_more(plan: Plan, manifest: Manifest, more: int, bundle: Path, hosts: Hosts) -> tuple[Plan, int | None]:
    """Return the plan with `more` trials of each variant, or, with measure.target, the block after which it now ends."""
    if plan.experiment.measure.target is None:
        return _extended_plan(plan, more, bundle, hosts), manifest.trials_end and manifest.trials_end.block
    return plan, _last_block_with_more(plan, manifest.trials_end, more)


def _extended_plan(plan: Plan, repeats: int, bundle: Path, hosts: Hosts) -> Plan:
    """Return `plan` with `repeats` further trials of each variant; nothing is changed by making it.

    Variants, clusters and scripts stay as planned. Space, memory and disks are checked again. Raises UsageError for a
    number that cannot be added.
    """
    context = RunContext.of(
        plan.storages,
        plan.run_id,
        {name: host.facts() for name, host in hosts.items()},
        bundle,
        network=network_layout(plan.run_id, plan.networked, plan.experiment.measure.seed),
        hosts=hosts,
    )
    installations = {cluster.id: cluster.installation for cluster in plan.clusters if cluster.installation is not None}
    datasets = partial(dataset_of, files=plan.dataset_files)
    inputs = plan_inputs(
        context,
        Runner(),
        datasets,
        installations,
        plan.experiment.measure,
        restoring_of(plan, context),
        plan.experiment.fleet,
    )
    more = plan_more(plan, repeats, inputs)
    return extended(plan, more, time.time_ns())


def _last_block_with_more(plan: Plan, end: TrialsEnd | None, more: int) -> int:
    """Return the block after which a run with measure.target ends when `more` of its planned blocks are run.

    Raises UsageError for a number that cannot be added: the share of false alarms is that of the most trials that were planned.
    """
    if end is None:
        raise UsageError(
            f"all {plan.experiment.measure.repeats} trials of each variant that measure.repeats allows were run",
            where="--more",
            hint="with measure.target, the share of false alarms holds for that many; begin a new run with a larger --repeats",
        )
    if end.reason == "decided":
        raise UsageError(
            f"every comparison was decided after block {end.block}",
            where="--more",
            hint="what was decided remains so in spite of later trials; for a narrower interval, begin a new run with a "
            "smaller measure.target or a fixed number of trials",
        )
    left = max(planned.block for planned in plan.trials) - end.block
    if not 1 <= more <= left:
        raise UsageError(
            f"cannot add {more} trials of each variant: allowed: 1 to {left}",
            where="--more",
            hint=f"measure.repeats = {plan.experiment.measure.repeats} is the most that was planned",
        )
    return end.block + more


def _check_feasible(plan: Plan, destroy: Collection[str]) -> dict[str, MissingCapability]:
    """Return the storages that lack what they need. Raises all that keeps everything from being measured."""
    refused = destroy_error(plan.destructive_targets, destroy)
    lacking, for_all = lacking_storages(plan)
    if errors := [*([refused] if refused else []), *for_all]:
        raise together("the plan cannot be carried out", errors)
    return lacking


def _nothing_missing(
    folder: BundleFolder, manifest: Manifest, plan: Plan, progress: _Progress, listener: Listener, guard: InterruptGuard
) -> RunStatus:
    """Close a bundle that has every trial, where its run could not, and undo what that has left."""
    if manifest.status != "complete" or not is_sealed(folder):  # it was killed before it had said so, or sealed it
        BundleWriter.reopen(folder, manifest).finish("complete")
    verify_bundle(folder)
    listener.note("all trials are in the bundle: nothing to resume; with --more N, N trials of each variant are added")
    with guard.shielded():
        _clean_up(plan.run_id, listener)
    return RunStatus(progress.failed_trials, folder.path, progress.failure_before)


def _check_complete(folder: BundleFolder, manifest: Manifest, plan: Plan, progress: _Progress) -> None:
    """Raise UsageError for a run that has trials to run yet, and RunError for a bundle that was changed since it was sealed."""
    if manifest.status != "complete":
        raise UsageError(
            f"trials are added to a complete run; this one is {manifest.status}: {len(progress.done)} of {len(plan.trials)} "
            "trials are in its bundle",
            where=str(folder.path),
            hint=f"finish it first: `plinth resume {folder.path}`",
        )
    verify_bundle(folder)


def key_of_bundle(bundle: Path, manifest: Manifest) -> RunKey:
    """Return the key of the run that a bundle is of. Raises Refused when this user did not begin it on this machine."""
    try:
        return read_key(manifest.run_id)
    except NoKey as error:
        raise Refused(
            f"run {manifest.run_id} was not begun here by this user, or its key was removed: a bundle from elsewhere is not "
            "resumed, since its plan could make this machine do anything",
            where=f"{bundle}; no {error.where}",
            hint=REPEAT_HINT.format(bundle=bundle),
        ) from error


def _announced(plan: Plan, before: Plan, more: int, progress: _Progress) -> str:
    """Return what is added, and how long it takes."""
    added = f"{more} more of each of {len(plan.variants)} variants"
    if plan is before:
        first = max(progress.done) + 1
        return f"at most {added}: trials {first} to {first - 1 + more * len(plan.variants)}; storages and data are made again"
    return (
        f"{added}: trials {plan.extensions[-1].first_trial} to {len(plan.trials)}; "
        f"about {format_duration(plan.estimated_s - before.estimated_s)}, since storages and data are made again; "
        f"{format_size(plan.estimated_written_bytes - before.estimated_written_bytes)} written by estimate"
    )


def _clean_up(run_id: str, listener: Listener) -> None:
    """Undo what a run left that was killed when all was measured and not yet all undone."""
    result = clean(UNDO_HANDLERS, run_id, listener.progress)
    if error := result.error():
        raise error
    for run in result.runs:
        for step in run.undone:
            listener.note(f"undone, of what the run had left: {step.title}")


_Maker = tuple[str, str, str]
"""Something that trials are made by, as it was when they began and as it is now."""


def _makers(plan: Plan, manifest: Manifest, hosts: Hosts) -> Iterator[_Maker]:
    """Yield the machines, Plinth, and each PostgreSQL that runs on them. Raises PlinthError where one does not run any more."""
    for name, before in plan.facts_by_host.items():
        now, of_host = hosts[name].facts(), "" if name is None else f" of host {name}"
        yield f"CPU{of_host}", before.cpu_model, now.cpu_model
        yield f"cores{of_host}", str(before.cores), str(now.cores)
        # As people read it: the kernel keeps a few kB more or less for itself at each boot.
        yield f"memory{of_host}", format_size(before.memory_total_bytes), format_size(now.memory_total_bytes)
        yield f"kernel{of_host}", before.kernel, now.kernel
    yield "Plinth", manifest.plinth_version, __version__
    seen: set[tuple[str | None, str]] = set()
    for cluster in plan.clusters:
        installation, storage = cluster.installation, cluster.primary.server.storage
        name = None if storage is None else plan.storages[storage].host
        if installation is not None and (name, installation.bindir) not in seen:
            seen.add((name, installation.bindir))
            version = hosts[name].version_of(installation)
            yield (
                f"PostgreSQL of {'' if name is None else f'{name}:'}{installation.bindir}",
                installation.version,
                version,
            )


def _check_external_servers(plan: Plan, servers: Mapping[str, ServerFacts]) -> dict[str, str]:
    """Raise PlinthError for an external server that cannot be reached or is of another version than it was.

    Returns where each connection string of the plan has led, so that all of the run goes to the same host.
    """
    connections: dict[str, str] = {}
    for cluster in plan.clusters:
        connection = cluster.primary.server.connection
        if connection is None:
            continue
        external = ExternalServer(connections.get(connection, connection), plan.run_id, cluster.id_of(cluster.primary))
        connections[connection] = external.whole_string
        facts = next(
            (servers[one.id] for one in plan.variants if one.cluster == cluster.id and one.id in servers), None
        )
        if facts is not None:
            _check_same_makers([(f"external server of {cluster.id}", facts.version, external.facts().version)])
    return connections


def _check_same_makers(makers: Iterable[_Maker]) -> None:
    """Raise UsageError where trials would be of two machines, two load engines or two servers: they are not of one experiment."""
    differing = [f"{what}: {then} then, {today} now" for what, then, today in makers if then != today]
    if differing:
        raise UsageError(
            "this machine, this Plinth or its PostgreSQL is not the one that the bundle's trials were measured with",
            details=differing,
            hint="begin a new run here: `plinth run BUNDLE` repeats its experiment",
        )
