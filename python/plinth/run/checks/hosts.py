"""What an experiment asks of servers on other hosts that is done on the machine of the run only."""

from collections.abc import Iterator, Mapping

from plinth.common.nearest import nearest
from plinth.model.action import StatementAction
from plinth.model.dataset import BackupDataset, DumpDataset, LoadedTables
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.model.storage import StorageSpec
from plinth.plan import ClusterKey, Expanded
from plinth.run.host import Hosts

_HERE = "leave storage.{storage}.host out"


def host_of_server(key: ClusterKey, storages: Mapping[str, StorageSpec]) -> str | None:
    """Return the host of a cluster's primary, which is that of its data directory; None: this machine."""
    return None if key.server.storage is None else storages[key.server.storage].host


def on_hosts(expanded: Expanded, hosts: Hosts) -> Expanded:
    """Return the expansion with servers on other hosts reached over TCP, at the address of their host."""
    clusters = []
    for key in expanded.clusters:
        host = hosts[host_of_server(key, expanded.storages)]
        if host.name is not None:
            address = key.server.listen_address or host.listen_address
            server = key.server.model_copy(update={"listen": "tcp", "listen_address": address})
            key = ClusterKey(key.id, server, key.dataset)
        clusters.append(key)
    return expanded._replace(clusters=clusters)


def graph_problems(expanded: Expanded, hosts: Hosts) -> Iterator[Problem]:
    """Yield storages on hosts that there are not, or that are built on storages of another host."""
    named = [name for name in hosts if name is not None]
    for name, spec in expanded.storages.items():
        if spec.host not in hosts:
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


def host_problems(experiment: Experiment, expanded: Expanded) -> Iterator[Problem]:
    """Yield what is not done to a server on another host, each at the key to change."""
    there = [key for key in expanded.clusters if host_of_server(key, expanded.storages) is not None]
    for key in expanded.clusters:
        yield from _of_nodes(key, expanded.storages)
    if not there:
        return
    storage = str(there[0].server.storage)
    hint = _HERE.format(storage=storage)
    for key in there:
        yield from _of_dataset(key)
        if key.server.listen_address is None:
            yield Problem(
                "by which address clients reach servers there is not known",
                path=["host", str(host_of_server(key, expanded.storages)), "listen_address"],
                hint="give an address of the host",
            )
    measure = experiment.measure
    if experiment.durability is not None:
        yield Problem("the power of another host is not cut", path=["durability"], hint=f"{hint}, or [durability]")
    if measure.restore != "none":
        yield Problem(
            "files on another host are not restored", path=["measure", "restore"], hint=f'{hint}, or take "none"'
        )
    if measure.max_written_bytes is not None:
        yield Problem("what is written on another host is not counted", path=["measure", "max_written"], hint=hint)
    for number, action in enumerate(measure.actions):
        if not isinstance(action, StatementAction):
            yield Problem(
                f"{action.do} is done on this machine only",
                path=["measure", "action", number],
                hint=f"{hint}, or the action",
            )


def _of_nodes(key: ClusterKey, storages: Mapping[str, StorageSpec]) -> Iterator[Problem]:
    primary = host_of_server(key, storages)
    server = key.server
    if server.wal_storage is not None and storages[server.wal_storage].host != primary:
        yield _elsewhere(server.wal_storage, ["server", "wal_storage"], storages, primary)
    for tablespace, storage in server.tablespaces.items():
        if storages[storage].host != primary:
            yield _elsewhere(storage, ["server", "tablespaces", tablespace], storages, primary)
    for name, standby in server.standby.items():
        if primary is not None or storages[standby.storage].host is not None:
            yield Problem(
                "standbys of and on other hosts are not made",
                path=["server", "standby", name],
                hint="leave the host of their storages out",
            )


def _elsewhere(storage: str, path: list[str], storages: Mapping[str, StorageSpec], primary: str | None) -> Problem:
    where = _words(storages[storage].host)
    return Problem(
        f"storage {storage!r} is on {where}, and the server on {_words(primary)}",
        path=path,
        hint="a server has all of its storages on one host",
    )


def _of_dataset(key: ClusterKey) -> Iterator[Problem]:
    dataset = key.dataset
    if isinstance(dataset, DumpDataset | BackupDataset):
        yield Problem(
            f'got "{dataset.kind}"; its files are on this machine, and the server is not',
            path=["dataset", "kind"],
            hint="leave the host of the server's storage out",
        )
    if isinstance(dataset, LoadedTables) and dataset.loader == "pages":
        yield Problem(
            'got "pages", which are written into the files of a server of this machine',
            path=["dataset", "loader"],
            hint='loader = "copy" sends rows',
        )


def _words(host: str | None) -> str:
    return "this machine" if host is None else f"host {host!r}"
