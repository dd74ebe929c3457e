"""Why Patroni cannot conduct the failovers of an experiment."""

from collections.abc import Iterator, Mapping
from itertools import chain

from plinth.model.errors import PlinthError, Problem
from plinth.model.experiment import MeasureSpec
from plinth.model.facts import Installation
from plinth.model.fault import FailoverAction, KillAction, server_actions
from plinth.model.patroni import etcd_machines
from plinth.model.plan import Variant
from plinth.model.server_spec import ServerSpec
from plinth.model.standby import PRIMARY
from plinth.plan import Expanded
from plinth.run.checks.hosts import hosts_of_nodes
from plinth.run.host import Hosts

KEY = "server.failover"


def patroni_problems(measure: MeasureSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield the problems, each at the key to change; none where no variant has Patroni."""
    conducted = [variant for variant in expanded.variants if variant.patroni is not None]
    if not conducted:
        return
    clusters = {cluster.id: cluster.server for cluster in expanded.clusters}
    yield from _of_actions(measure)
    for variant in conducted:
        yield from _of_servers(variant, clusters[variant.cluster])


def patroni_errors(
    expanded: Expanded,
    installations: Mapping[str, Installation],
    of_nodes: Mapping[tuple[str, str], Installation],
    hosts: Hosts,
) -> list[PlinthError]:
    """Return what each machine lacks for the variants that have Patroni; `of_nodes` are installations by cluster and node."""
    conducted = {variant.cluster for variant in expanded.variants if variant.patroni is not None}
    needed: dict[str | None, list[Installation]] = {}
    for key in expanded.clusters:
        if key.id not in conducted:
            continue
        machines = hosts_of_nodes(key, expanded.storages)
        for machine in etcd_machines(machines.values()):
            needed.setdefault(machine, [])
        for node, machine in machines.items():
            installation = of_nodes.get((key.id, node), installations.get(key.id))
            needed[machine] += [] if installation is None else [installation]
    return list(chain.from_iterable(hosts[name].patroni_errors(found) for name, found in needed.items()))


def _of_actions(measure: MeasureSpec) -> Iterator[Problem]:
    if not any(isinstance(action, FailoverAction) for action in measure.actions):
        yield Problem(
            "there is no failover that Patroni could conduct",
            path=["server", "failover"],
            hint='add an action with do = "failover"',
        )
    actions = server_actions(measure.actions)
    for number, action in enumerate(measure.actions):
        path: list[str | int] = ["measure", "action", number]
        if action in actions and not isinstance(action, KillAction | FailoverAction):
            yield Problem(
                f"{action.what()}: Patroni alone starts and stops the servers",
                path=path,
                hint='with Patroni, the faults are do = "kill", and that with machine = true',
            )
        if isinstance(action, FailoverAction) and action.to is not None:
            yield Problem("Patroni alone chooses the standby", path=path, hint="leave `to` out")


def _of_servers(variant: Variant, server: ServerSpec) -> Iterator[Problem]:
    if server.listen != "tcp" and variant.network is None:
        yield Problem(
            "Patroni's members reach one another's servers by TCP", path=["server", "listen"], hint='set listen = "tcp"'
        )
    if variant.network is not None:
        yield Problem(
            "Patroni is not in the emulated network, where its servers would be",
            path=["network"],
            hint='leave [network] out, or take failover = "plinth"',
        )
    if server.tablespaces or any(one.wal_storage is not None for one in (server, *server.standby.values())):
        yield Problem(
            "Patroni would make a server again without its own places for WAL and tablespaces",
            path=["server", "failover"],
            hint="leave wal_storage, also of standbys, and server.tablespaces out",
        )
    for name, standby in server.standby.items():
        if standby.upstream not in (None, PRIMARY):
            yield Problem(
                f"standby {name} streams from {standby.upstream}; Patroni has all of them stream from the leader",
                path=["server", "standby", name, "upstream"],
                hint="leave upstream out",
            )
