"""What an experiment asks of servers on other hosts that is done on the machine of the run only."""

from collections.abc import Collection, Iterator, Mapping

from plinth.common.nearest import nearest
from plinth.model.action import NetworkAction
from plinth.model.dataset import BackupDataset
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.model.network import LinkSettings
from plinth.model.patroni import etcd_machines
from plinth.model.standby import PRIMARY
from plinth.model.storage import StorageSpec
from plinth.plan import ClusterKey, Expanded
from plinth.run.host import Hosts


def host_of_server(key: ClusterKey, storages: Mapping[str, StorageSpec]) -> str | None:
    """Return the host of a cluster's primary, which is that of its data directory; None: this machine."""
    return None if key.server.storage is None else storages[key.server.storage].host


def hosts_of_nodes(key: ClusterKey, storages: Mapping[str, StorageSpec]) -> dict[str, str | None]:
    """Return the host of each managed node of a cluster; None: this machine."""
    standbys = {name: storages[standby.storage].host for name, standby in key.server.standby.items()}
    return {} if key.server.storage is None else {PRIMARY: host_of_server(key, storages), **standbys}


def same_machines(hosts: Hosts) -> list[str]:
    """Return a sentence for each host that is the same machine as another one, or as this one."""
    found: list[str] = []
    seen: dict[str, str] = {}
    for name, host in hosts.items():
        words = "this machine" if name is None else f"host {name}"
        if (other := seen.setdefault(host.boot_id(), words)) != words:
            found.append(f"{words} is the same machine as {other}: they share processors, memory and disks")
    return found


def on_hosts(expanded: Expanded, addresses: Mapping[str | None, str]) -> Expanded:
    """Have servers on other machines reached over TCP at the address of their host, without a network that changes nothing."""
    clusters, apart = [], set()
    for key in expanded.clusters:
        if any(host is not None for host in hosts_of_nodes(key, expanded.storages).values()):
            apart.add(key.id)
            address = key.server.listen_address or addresses.get(host_of_server(key, expanded.storages))
            server = key.server.model_copy(update={"listen": "tcp", "listen_address": address})
            key = ClusterKey(key.id, server, key.dataset)
        clusters.append(key)
    nodes = {key.id: (PRIMARY, *key.server.standby) for key in clusters}
    variants = [
        variant.model_copy(update={"network": None})
        if variant.network is not None
        and variant.cluster in apart
        and all(one == LinkSettings() for one in variant.network.settings(nodes[variant.cluster]).values())
        else variant
        for variant in expanded.variants
    ]
    return expanded._replace(clusters=clusters, variants=variants)


def graph_problems(expanded: Expanded, named: Collection[str]) -> Iterator[Problem]:
    """Yield storages on hosts that are not among those `named` by the experiment, or that are built on storages of another host."""
    for name, spec in expanded.storages.items():
        if spec.host is not None and spec.host not in named:
            yield Problem(
                f"host {spec.host!r} is not one of: {', '.join(named) or 'none is described'}",
                path=["storage", name, "host"],
                hint=nearest(str(spec.host), named) or '[host.NAME] with address = "ssh://NAME" describes one',
            )
            continue
        for reference in spec.references():
            other = expanded.storages[reference.name].host
            if other != spec.host:
                yield Problem(
                    f"{reference.name!r} is on {_words(other)}, and {name!r} on {_words(spec.host)}",
                    path=["storage", name, *reference.key],
                    hint="give both the same host",
                )


def host_problems(experiment: Experiment, expanded: Expanded, addresses: Mapping[str | None, str]) -> Iterator[Problem]:
    """Yield what is not done to servers on other hosts, each at the key to change."""
    machines = {key.id: hosts_of_nodes(key, expanded.storages) for key in expanded.clusters}
    for key in expanded.clusters:
        yield from _of_nodes(key, expanded.storages)
    there = [key for key in expanded.clusters if any(host is not None for host in machines[key.id].values())]
    if not there:
        return
    for key in there:
        if host_of_server(key, expanded.storages) is not None:
            yield from _of_dataset(key)
        for host in dict.fromkeys(machines[key.id].values()):
            if host not in addresses and not (host is None and key.server.listen_address):
                yield Problem(
                    f"by which address servers on {_words(host)} are reached is not known",
                    path=["server", "listen_address"] if host is None else ["host", host, "listen_address"],
                    hint="give an address of that machine",
                )
    measure = experiment.measure
    if experiment.durability is not None and experiment.durability.atlas:
        yield _not_there("disks of another host are not recorded for an atlas", ["durability", "atlas"])
    for key in there:
        of_nodes = set(machines[key.id].values())
        has_only_an_etcd_here = None not in of_nodes and None in etcd_machines(machines[key.id].values())
        if key.server.failover == "patroni" and has_only_an_etcd_here and None not in addresses:
            yield Problem(
                "by which address this machine, which has one of the etcds, is reached is not known",
                path=["server", "failover"],
                hint="an odd number of hosts with servers needs no etcd here; reach a host by ssh, whose connection has the address",
            )
            break
    if any(
        variant.network is not None and variant.cluster in {key.id for key in there} for variant in expanded.variants
    ):
        yield _not_there("between hosts there is a real network, and none is emulated", ["network"])
    for number, action in enumerate(measure.actions):
        if isinstance(action, NetworkAction):
            yield _not_there(f"{action.do} is done on this machine only", ["measure", "action", number])


def _not_there(what: str, path: list[str | int]) -> Problem:
    return Problem(what, path=path, hint="leave it out, or the host of the storages")


def _of_nodes(key: ClusterKey, storages: Mapping[str, StorageSpec]) -> Iterator[Problem]:
    server, primary = key.server, host_of_server(key, storages)
    if server.wal_storage is not None and storages[server.wal_storage].host != primary:
        yield _elsewhere(server.wal_storage, ["server", "wal_storage"], storages, primary)
    for tablespace, storage in server.tablespaces.items():
        if storages[storage].host != primary:
            yield _elsewhere(storage, ["server", "tablespaces", tablespace], storages, primary)
    for name, standby in server.standby.items():
        own = storages[standby.storage].host
        if standby.wal_storage is not None and storages[standby.wal_storage].host != own:
            yield _elsewhere(standby.wal_storage, ["server", "standby", name, "wal_storage"], storages, own)


def _elsewhere(storage: str, path: list[str], storages: Mapping[str, StorageSpec], primary: str | None) -> Problem:
    where = _words(storages[storage].host)
    return Problem(
        f"storage {storage!r} is on {where}, and the server on {_words(primary)}",
        path=path,
        hint="a server has all of its storages on one host",
    )


def _of_dataset(key: ClusterKey) -> Iterator[Problem]:
    dataset = key.dataset
    if isinstance(dataset, BackupDataset):
        yield Problem(
            f'got "{dataset.kind}"; its files are on this machine, and the server is not',
            path=["dataset", "kind"],
            hint='leave the host of the server\'s storage out; a dump (kind = "dump") is restored over the network',
        )


def _words(host: str | None) -> str:
    return "this machine" if host is None else f"host {host!r}"
