"""What keeps a plan, or a part of it, from being carried out, as far as it can be seen before anything is made.

`plinth plan` shows this list, and `plinth run` begins with it: what is on it is not tried.
"""

import math
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, UsageError, together
from plinth.model.plan import Need, Plan, PlannedCluster, Variant
from plinth.run.checks.destroy import destroy_error
from plinth.run.context import RunContext
from plinth.run.failures import Failures, lacking_variants
from plinth.run.host import Hosts
from plinth.run.interrupt import InterruptGuard
from plinth.run.local_host import ONLY_THIS
from plinth.server.external.external_server import check_external, check_options
from plinth.storage.preflight import check_reachable, nearest_existing
from plinth.system.owner import Owner
from plinth.system.paths import ensure, state_dir
from plinth.system.runner import Runner


@dataclass
class Obstacles(Failures):
    """Storages, clusters and variants that are lost before anything is made, by name, each with its reason."""

    of_all: list[PlinthError] = field(default_factory=list)
    """What keeps everything from being measured."""
    connections: dict[str, str] = field(default_factory=dict, repr=False)
    """Where each connection string of the plan leads, with its secrets: not to be shown or kept."""

    @property
    def errors(self) -> tuple[PlinthError, ...]:
        """All of them, in the order in which the run reports them: the first decides how it ends."""
        found = (*self.of_all, *self.storages.values(), *self.clusters.values(), *self.variants.values())
        return tuple({id(error): error for error in found}.values())

    def error(self) -> PlinthError | None:
        """Return all of them as one; None where there are none."""
        return together("the plan cannot be carried out, or not all of it", self.errors) if self.errors else None

    def check(self) -> None:
        """Raise all of them where nothing could be measured, or where one is for the user to correct."""
        if self.of_all or any(isinstance(error, UsageError) for error in self.errors):
            raise together("the plan cannot be carried out", self.errors)


def find_obstacles(
    plan: Plan,
    bundle: Path,
    connections: Mapping[str, str],
    destroy: Collection[str] | None = None,
    hosts: Hosts = ONLY_THIS,
) -> Obstacles:
    """Look for everything that keeps `plan` from being carried out on its `hosts`. Nothing is changed. Interrupted on Ctrl-C.

    `connections` has connection strings with their secrets, by what the plan has of them. `destroy` are the confirmations by which
    disks may be destroyed; None: they are not given yet.
    """
    with InterruptGuard(lambda _: None):
        refused = None if destroy is None else destroy_error(plan.destructive_targets, destroy)
        confirmed = () if refused else destroy or ()  # the disks are then examined as if all were confirmed
        context = RunContext.of(plan.storages, plan.run_id, plan.facts_by_host, bundle, tuple(confirmed), hosts=hosts)
        return _found(plan, context, connections, [refused] if refused else [])


def _found(plan: Plan, context: RunContext, connections: Mapping[str, str], of_all: Sequence[PlinthError]) -> Obstacles:
    runner = Runner()
    found = Obstacles(variants=lacking_variants(plan), of_all=list(of_all))
    lacking, for_all = lacking_storages(plan)
    found.of_all += for_all
    found.of_all += filter(None, (_error_of(check) for check in _checks_of_places(plan, context, runner)))
    for storage in context.used_storages(plan.clusters):
        error, need = storage.obstacle(runner), lacking.get(storage.name)
        if error is not None and need is not None:
            error.details += need.details
        if error := error or need:
            found.storages[storage.name] = error
    for cluster in plan.clusters:
        if cluster.installation is None:  # it is external, or none of its version was found
            continue
        if error := _error_of(lambda cluster=cluster: _check_places(context, cluster)):
            found.clusters[cluster.id] = error
    _connect(plan, connections, found)
    clusters = {cluster.id: cluster for cluster in plan.clusters}
    if not found.of_all and all(_is_lost(context, variant, clusters, found) for variant in plan.variants):
        found.of_all += found.errors[:1]
    return found


def lacking_storages(plan: Plan) -> tuple[dict[str, MissingCapability], list[MissingCapability]]:
    """Return the storages that lack what they need, each with what it lacks; and what keeps everything from being measured.

    That is so when no cluster has what it needs, and of the published size, which takes hours, when any lacks something.
    """
    unmet = [need for need in plan.needs if need.met is False]
    lacking = {name: _lacking(plan, [need]) for need in unmet for name in need.storages}
    hopeless = plan.clusters and all(lacking.keys() & set(cluster.bytes_by_storage) for cluster in plan.clusters)
    if hopeless or any(not need.storages for need in unmet) or (plan.full and unmet):
        return {}, [_lacking(plan, unmet)]
    return lacking, []


def _lacking(plan: Plan, needs: Sequence[Need]) -> MissingCapability:
    hosts = {plan.storages[name].host for need in needs for name in need.storages}
    message = "this machine lacks what the plan needs"
    if hosts - {None}:
        machines = ["this machine" if host is None else f"host {host}" for host in sorted(hosts, key=str)]
        message = f"{' and '.join(machines)} {'lacks' if len(hosts) == 1 else 'lack'} what the plan needs"
    hint = "--scale-to-fit cuts the dataset; --set dataset.scale=N (or rows) sets its size"
    if sizes := [size for need in needs if (size := _large_enough(plan, need))]:
        hint = f"{' '.join(sizes)} makes room; {hint}"
    return MissingCapability(message, details=[need.sentence for need in needs], hint=hint)


def _large_enough(plan: Plan, need: Need) -> str | None:
    """Return the option that makes a storage large enough, with a twentieth to spare; None where size is not what it lacks."""
    (name,) = need.storages if len(need.storages) == 1 else (None,)
    size_bytes = getattr(plan.experiment.storage.get(name or ""), "size_bytes", None)
    if name is None or need.where != f"storage.{name}" or size_bytes is None or not need.available_bytes:
        return None
    needed_gib = math.ceil(1.05 * size_bytes * need.needed_bytes / need.available_bytes / 2**30)
    return f"--set storage.{name}.size={needed_gib}GiB"


def _checks_of_places(plan: Plan, context: RunContext, runner: Runner) -> Iterator[Callable[[], object]]:
    """Yield the checks of Plinth's own folders: its state, and, of servers, the temporary directory that has their sockets."""
    yield _check_state_directory
    if any(not cluster.is_external for cluster in plan.clusters):
        yield lambda: _check_temporary_directory(context.owner, runner)


def _check_temporary_directory(owner: Owner, runner: Runner) -> None:
    folder = tempfile.gettempdir()
    try:
        check_reachable(Path(folder), owner, runner)
    except MissingCapability as error:
        raise MissingCapability(
            f"user {owner.name}, who runs the server, may not enter {error.where}, and so not the directory of its socket",
            where=folder,
            hint=f"set TMPDIR to a directory that user {owner.name} can enter",
        ) from error


def _check_state_directory() -> None:
    """Raise a PlinthError where the journal could not be written; nothing is made."""
    folder = state_dir()
    if folder.exists():
        ensure(folder)
    above = nearest_existing(folder)
    if not os.access(above, os.W_OK | os.X_OK):
        raise MissingCapability(
            "we may not write to Plinth's state directory, where the journal of a run is",
            where=str(folder),
            hint="set PLINTH_STATE_DIR to a directory of yours",
        )


def _is_lost(context: RunContext, variant: Variant, clusters: Mapping[str, PlannedCluster], found: Obstacles) -> bool:
    below = {storage.name for storage in context.closure(clusters[variant.cluster].storages)}
    return variant.id in found.variants or found.of_cluster(variant.cluster, below) is not None


def _connect(plan: Plan, connections: Mapping[str, str], found: Obstacles) -> None:
    """Connect to each external server."""
    strings = {cluster.id: cluster.primary.server.connection for cluster in plan.clusters}
    whole = {one: connections.get(one, one) for one in strings.values() if one is not None}
    if not whole:
        return
    errors: dict[str, PlinthError] = {}
    for shown, string in whole.items():
        try:
            found.connections[shown] = check_external(string)
        except PlinthError as error:
            errors[shown] = error
    found.clusters |= {name: errors[one] for name, one in strings.items() if one in errors}
    for variant in plan.variants:
        leads_to_one = found.connections.get(strings[variant.cluster] or "")
        if variant.connection_options and leads_to_one is not None:
            options = variant.connection_options
            if error := _error_of(lambda to=leads_to_one, options=options: check_options(to, options)):
                found.variants[variant.id] = error


def _check_places(context: RunContext, cluster: PlannedCluster) -> None:
    """Raise a PlinthError where a node could not listen, or its memory not be limited."""
    for node in cluster.nodes:
        context.host_of(node).check_node(context.layout(cluster, node), cluster, node)


def _error_of(check: Callable[[], object]) -> PlinthError | None:
    try:
        check()
    except PlinthError as error:
        return error
    return None
