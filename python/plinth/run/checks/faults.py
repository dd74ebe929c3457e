"""Why the faults of an experiment's actions cannot be made on what it measures, or would show nothing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from plinth.common.nearest import nearest
from plinth.model.action import Action, DiskAction
from plinth.model.action_base import TimedAction
from plinth.model.errors import Problem
from plinth.model.fault import (
    ContinueAction,
    FailoverAction,
    FillAction,
    FreeAction,
    PauseAction,
    PowerAction,
    PromoteAction,
    ServerAction,
)
from plinth.model.server_spec import ServerSpec
from plinth.model.standby import PRIMARY
from plinth.model.storage import FilledStorage
from plinth.model.workload import WorkloadSpec
from plinth.plan import Expanded
from plinth.run.context import RunContext

_RESTORE = ["measure", "restore"]


def fault_problems(
    actions: Sequence[Action], restore: str, context: RunContext, expanded: Expanded
) -> Iterator[Problem]:
    """Yield the problems, each at the key to change; none when every variant can have these faults."""
    faults: dict[int, ServerAction] = {
        number: action for number, action in enumerate(actions) if isinstance(action, ServerAction)
    }
    changes_of_disks = {number: action for number, action in enumerate(actions) if isinstance(action, DiskAction)}
    if faults and restore == "none":
        yield Problem(
            "after a fault the servers are not what they were: their files have to be restored before the next trial",
            path=_RESTORE,
            hint='add restore = "auto"',
        )
    if len(changes := [n for n, action in faults.items() if isinstance(action, FailoverAction | PromoteAction)]) > 1:
        path = ["measure", "action", changes[1]]
        yield Problem("only one standby is promoted in a trial", path=path, hint="leave one of them out")
    clusters = {cluster.id: cluster.server for cluster in expanded.clusters}
    for variant in expanded.variants:
        server = clusters[variant.cluster]
        if faults:
            yield from _of_workload(variant.workload)
        yield from _of_servers(server, faults, context)
        yield from _of_disks(server, changes_of_disks, context)
    yield from _of_endings(faults)


def _of_workload(workload: WorkloadSpec) -> Iterator[Problem]:
    if workload.driver != "plinth":
        yield Problem(
            f"clients of {workload.driver} do not connect again after a fault of their server",
            path=["workload", "driver"],
            hint='use driver = "plinth"',
        )
    if not workload.keeps_ledger:
        yield Problem(
            "with faults of servers, a commit ledger is needed: it says for how long none was acknowledged, and which are lost",
            path=["workload"],
            hint='set workload.ledger = true, or workload.builtin = "ledger"',
        )


def _of_servers(server: ServerSpec, faults: dict[int, ServerAction], context: RunContext) -> Iterator[Problem]:
    if server.connection is not None and faults:
        yield Problem(
            "an external server is not ours to stop or promote",
            path=["measure", "action", next(iter(faults))],
            hint="take a managed server: [storage.NAME] instead of server.connection",
        )
        return
    for number, action in faults.items():
        path: list[str | int] = ["measure", "action", number]
        yield from _of_nodes(server, action, action.nodes(), path)
        promoted = action.nodes() if isinstance(action, FailoverAction | PromoteAction) else ()
        if PRIMARY in promoted:
            yield Problem("the primary takes writes already: a standby is promoted", path=path)
        if isinstance(action, FailoverAction) and not server.standby:
            hint = "add [server.standby.NAME]"
            yield Problem("there is no standby that could be promoted", path=path, hint=hint)
        if isinstance(action, PowerAction):
            yield from _of_power(server, action, path, context)
        if isinstance(action, FillAction):
            yield from _of_filling(server, action, path, context)


def _of_nodes(
    server: ServerSpec, action: TimedAction, named: Iterable[str], path: list[str | int]
) -> Iterator[Problem]:
    nodes = [PRIMARY, *server.standby]
    for node in named:
        if node not in nodes:
            yield Problem(
                f"{action.what()}: {node!r} is not one of: {', '.join(nodes)}",
                path=path,
                hint=nearest(node, nodes) or "describe it as [server.standby.NAME]",
            )


def _of_endings(faults: dict[int, ServerAction]) -> Iterator[Problem]:
    """Check that what ends something has something to end."""
    for number, action in faults.items():
        if not isinstance(action, ContinueAction | FreeAction):
            continue
        needed, begins = ("pause", PauseAction) if isinstance(action, ContinueAction) else ("fill", FillAction)
        before = (other for other in faults.values() if isinstance(other, begins) and other.at_s <= action.at_s)
        if not any(one.node == action.node for one in before):
            yield Problem(
                f"{action.title()}: no action before it does that to {action.node}",
                path=["measure", "action", number],
                hint=f'add an action with do = "{needed}" before it, or leave this one out',
            )


def _of_disks(server: ServerSpec, changes: dict[int, DiskAction], context: RunContext) -> Iterator[Problem]:
    """Check that the disks that change are emulated, can be as is asked, and are used by no other node."""
    if not changes:
        return
    from plinth.storage.kinds.emulated import Emulated  # a kind that few experiments have

    for number, action in changes.items():
        path: list[str | int] = ["measure", "action", number]
        if server.connection is not None:
            yield Problem("the disks of an external server are not emulated by this run", path=path)
            continue
        yield from _of_nodes(server, action, (action.node,), path)
        below = _below(server, context, action.holds)
        found = [name for name in sorted(below.get(action.node, ())) if context.storages[name].disks()]
        if action.node in below and not found:
            where = ", ".join(sorted(_used(server, action.holds)[action.node]))
            yield Problem(
                f"{action.what()}: there is no emulated disk below storage {where}",
                path=path,
                hint='use kind = "emulated"',
            )
        for name in found:
            disk = context.storages[name]
            if isinstance(disk, Emulated) and (complaint := disk.complaint_about(action.physics)):
                yield Problem(f"{action.what()}: of storage {name}: {complaint}", path=[*path, "physics"])
        yield from _of_sharing(action, [action.node], _below(server, context), set(found), path, "changes with them")


def _of_filling(
    server: ServerSpec, action: FillAction, path: list[str | int], context: RunContext
) -> Iterator[Problem]:
    """Check that what is filled is a separate file system in which no other node is stored."""
    used = _used(server, action.holds).get(action.node, set())
    for name in sorted(used):
        if not isinstance(context.storages[name].spec, FilledStorage):
            yield Problem(
                f"{action.what()}: {name} is a directory, which shares its file system with all else that is there",
                path=["storage", name],
                hint='use kind = "loop", which is a separate file system in a file',
            )
    yield from _of_sharing(action, [action.node], _used(server), used, path, "would be full")


def _used(server: ServerSpec, holds: Literal["data", "wal"] | None = None) -> dict[str, set[str]]:
    """Return the storages of each node: all of them, or that of its data directory, or of its WAL."""

    def of(data: str | None, wal: str | None, others: Iterable[str] = ()) -> set[str]:
        chosen = {"data": [data], "wal": [wal or data], None: [data, wal, *others]}[holds]
        return {name for name in chosen if name}

    used = {PRIMARY: of(server.storage, server.wal_storage, server.tablespaces.values())}
    return used | {name: of(standby.storage, standby.wal_storage) for name, standby in server.standby.items()}


def _below(server: ServerSpec, context: RunContext, holds: Literal["data", "wal"] | None = None) -> dict[str, set[str]]:
    """Return the same as `_used`, with all that these storages are built on."""
    return {node: {one.name for one in context.closure(tuple(names))} for node, names in _used(server, holds).items()}


def _of_sharing(
    action: TimedAction,
    nodes: Sequence[str],
    of_nodes: dict[str, set[str]],
    struck: set[str],
    path: list[str | int],
    what: str,
) -> Iterator[Problem]:
    """Check that no other node than `nodes` is stored on what is `struck`."""
    for other in sorted(of_nodes.keys() - set(nodes)):
        if shared := struck & of_nodes[other]:
            yield Problem(
                f"{action.what()}: {other} is stored on {', '.join(sorted(shared))}, too, and {what}",
                path=path,
                hint="give each node separate storages",
            )


def _of_power(server: ServerSpec, action: PowerAction, path: list[str | int], context: RunContext) -> Iterator[Problem]:
    """Check that the disks of a node whose power is cut are emulated and used by no other node."""
    used, below = _used(server), _below(server, context)
    for node in action.node:
        for name in sorted(used.get(node, ())):
            if refusal := context.storages[name].power_cut_refusal():
                yield Problem(
                    f"the power of {node} cannot be cut: {refusal}",
                    path=["storage", name],
                    hint='use kind = "emulated"',
                )
        yield from _of_sharing(action, action.node, below, below.get(node, set()), path, "keeps its power")
