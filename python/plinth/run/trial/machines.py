"""The machines of a trial other than that of its primary, which are observed, too."""

from collections.abc import Callable, Mapping, Sequence

from plinth.model.facts import StorageFacts
from plinth.model.plan import PlannedCluster
from plinth.observe.observer import OtherMachine
from plinth.observe.processes import RunProcesses
from plinth.run.host import HOST
from plinth.run.provision.topology import Topology
from plinth.run.trial.device_io import devices_of


def other_machines(
    topology: Topology,
    cluster: PlannedCluster,
    storages: Mapping[str, StorageFacts],
    further_engines: Callable[[], Sequence[int]],
) -> list[OtherMachine]:
    """Return the machines of standbys, and the one that the run was started on, which the primary is not on.

    `further_engines` returns the processes of a driver, once they run.
    """
    planned = {node.name: node for node in cluster.nodes}
    hosts = dict.fromkeys((HOST, *(node.host for node in topology.nodes)))
    others: list[OtherMachine] = []
    for host in (host for host in hosts if host is not topology.primary.host):
        nodes = [node for node in topology.nodes if node.host is host]
        devices = {device: None for node in nodes for device in devices_of(planned[node.name], storages)}
        names = {storage for node in nodes for storage in planned[node.name].roles.values()}
        postmaster, *more = [node.postmaster_pid for node in nodes] or [None]
        processes = RunProcesses(
            postmaster,
            further_engines=further_engines,
            other_servers=[pid for pid in more if pid is not None],
        )
        own = [storages[name] for name in sorted(names) if name in storages]
        others.append(OtherMachine(host.name or "", tuple(devices), own, processes, host.sampler))
    return others
