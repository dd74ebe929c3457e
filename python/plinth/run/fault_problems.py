"""Why the faults of an experiment's actions cannot be made on what it measures, or would show nothing."""

from collections.abc import Iterator, Sequence

from plinth.model.action import Action
from plinth.model.errors import Problem
from plinth.model.experiment import ServerSpec
from plinth.model.fault import FailoverAction, PowerAction, PromoteAction, ServerAction
from plinth.model.nearest import nearest
from plinth.model.standby import PRIMARY
from plinth.model.workload import WorkloadSpec
from plinth.plan import Expanded
from plinth.run.context import RunContext

_RESTORE = ["measure", "restore"]


def fault_problems(actions: Sequence[Action], restore: str, context: RunContext, expanded: Expanded) -> list[Problem]:
    """The problems, each at the key to change; none when every variant can have these faults."""
    faults: dict[int, ServerAction] = {
        number: action for number, action in enumerate(actions) if isinstance(action, ServerAction)
    }
    if not faults:
        return []
    found: dict[str, Problem] = {}
    if restore == "none":
        problem = Problem(
            "after a fault the servers are not what they were: their files have to be restored before the next trial",
            path=_RESTORE,
            hint='add restore = "auto"',
        )
        found[problem.message] = problem
    if len(changes := [n for n, action in faults.items() if isinstance(action, FailoverAction | PromoteAction)]) > 1:
        message = "only one standby is promoted in a trial"
        found[message] = Problem(message, path=["measure", "action", changes[1]], hint="leave one of them out")
    clusters = {cluster.id: cluster.server for cluster in expanded.clusters}
    for variant in expanded.variants:
        for problem in (
            *_of_workload(variant.workload),
            *_of_servers(clusters[variant.cluster], faults, context),
        ):
            found.setdefault(problem.message, problem)
    return list(found.values())


def _of_workload(workload: WorkloadSpec) -> Iterator[Problem]:
    if workload.driver != "plinth":
        yield Problem(
            f"clients of {workload.driver} do not connect again after a fault of their server",
            path=["workload", "driver"],
            hint='use driver = "plinth"',
        )
    if not workload.keeps_ledger:
        yield Problem(
            "with faults of servers, a ledger of commits is needed: it says for how long none was acknowledged, and which are lost",
            path=["workload"],
            hint='set workload.ledger = true, or workload.builtin = "ledger"',
        )


def _of_servers(server: ServerSpec, faults: dict[int, ServerAction], context: RunContext) -> Iterator[Problem]:
    if server.connection is not None:
        yield Problem(
            "an external server is not ours to stop or promote",
            path=["measure", "action", next(iter(faults))],
            hint="take a managed server: [storage.NAME] instead of server.connection",
        )
        return
    nodes = [PRIMARY, *server.standby]
    for number, action in faults.items():
        path: list[str | int] = ["measure", "action", number]
        for node in action.nodes():
            if node not in nodes:
                yield Problem(
                    f"{action.what()}: {node!r} is not one of: {', '.join(nodes)}",
                    path=path,
                    hint=nearest(node, nodes) or "describe it as [server.standby.NAME]",
                )
        promoted = action.nodes() if isinstance(action, FailoverAction | PromoteAction) else ()
        if PRIMARY in promoted:
            yield Problem("the primary takes writes already: a standby is promoted", path=path)
        if isinstance(action, FailoverAction) and not server.standby:
            hint = "add [server.standby.NAME]"
            yield Problem("there is no standby that could be promoted", path=path, hint=hint)
        if isinstance(action, PowerAction):
            yield from _of_power(server, action, path, context)


def _of_power(server: ServerSpec, action: PowerAction, path: list[str | int], context: RunContext) -> Iterator[Problem]:
    """The disks of a node whose power is cut are emulated, and no other node uses them."""
    used = {PRIMARY: {name for name in (server.storage, server.wal_storage, *server.tablespaces.values()) if name}}
    for name, standby in server.standby.items():
        used[name] = {one for one in (standby.storage, standby.wal_storage) if one}
    below = {node: {one.name for one in context.closure(tuple(names))} for node, names in used.items()}
    for node in action.node:
        for name in sorted(used.get(node, ())):
            if refusal := context.storages[name].power_cut_refusal():
                yield Problem(
                    f"the power of {node} cannot be cut: {refusal}",
                    path=["storage", name],
                    hint='use kind = "emulated"',
                )
        for other in below.keys() - set(action.node):
            if node in below and (shared := below[node] & below[other]):
                yield Problem(
                    f"{action.what()}: {other} is stored on {', '.join(sorted(shared))}, too, and keeps its power",
                    path=path,
                    hint="give each node storages of its own",
                )
