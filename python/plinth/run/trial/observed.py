"""What is observed of a trial: its machines and the block devices under its servers; their totals from the observer's counters."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from plinth.model.facts import StorageFacts
from plinth.model.plan import PlannedCluster, PlannedNode
from plinth.model.trial import DeviceIo, Sample
from plinth.observe.observer import Observer, OtherMachine
from plinth.observe.processes import RunProcesses
from plinth.observe.volume_credits import VolumeCredits
from plinth.run.local_host import HOST
from plinth.run.provision.live_cluster import LiveCluster, Topology

_SOURCE = "device"
_COUNTERS = {
    "reads": "reads",
    "read_bytes": "read_bytes",
    "writes": "writes",
    "written_bytes": "write_bytes",
    "flushes": "flushes",
}
"""Field of DeviceIo: metric of the observer."""


def facts_of(cluster: PlannedCluster, storages: Mapping[str, StorageFacts]) -> list[StorageFacts]:
    """Return the storages of a cluster that were made."""
    return [storages[name] for name in cluster.storages if name in storages]


def observer_of(
    topology: Topology,
    cluster: LiveCluster,
    storages: Mapping[str, StorageFacts],
    devices: Sequence[str],
    further_engines: Callable[[], Sequence[int]],
) -> Observer:
    """Return what observes a trial: its servers, and the machines and `devices` that they are on.

    `further_engines` returns the processes of a driver, once they run.
    """
    node = topology.primary
    others = [one.postmaster_pid for one in topology.nodes if one is not node and one.host is node.host]

    observer = Observer(
        node.server.control,
        devices=devices,
        processes=RunProcesses(
            node.postmaster_pid,
            further_engines=further_engines,
            other_servers=[pid for pid in others if pid is not None],
        ),
        log=node.log if node.host.name is None else None,
        storages=facts_of(cluster.planned, storages),
        sampler_of_host=node.host.sampler,
        others=_other_machines(topology, cluster.planned, storages, further_engines),
    )
    if standbys := {one.name: one.server.control for one in topology.nodes if one is not node}:
        observer.wait_on(standbys)
    if volumes := cluster.credits():
        observer.add(VolumeCredits(volumes))
    return observer


def _other_machines(
    topology: Topology,
    cluster: PlannedCluster,
    storages: Mapping[str, StorageFacts],
    further_engines: Callable[[], Sequence[int]],
) -> list[OtherMachine]:
    """Return the machines of standbys, and the one that the run was started on, which the primary is not on."""
    planned = {node.name: node for node in cluster.nodes}
    hosts = dict.fromkeys((HOST, *(node.host for node in topology.nodes)))
    others: list[OtherMachine] = []
    for host in (host for host in hosts if host is not topology.primary.host):
        nodes = [node for node in topology.nodes if node.host is host]
        devices = {device: None for node in nodes for device in devices_of(planned[node.name], storages)}
        names = {storage for node in nodes for storage in planned[node.name].roles.values()}
        postmaster, *more = [node.postmaster_pid for node in nodes] or [None]
        processes = RunProcesses(
            postmaster, further_engines=further_engines, other_servers=[pid for pid in more if pid is not None]
        )
        own = [storages[name] for name in sorted(names) if name in storages]
        others.append(OtherMachine(host.name or "", tuple(devices), own, processes, host.sampler))
    return others


def devices_of(node: PlannedNode, storages: Mapping[str, StorageFacts]) -> dict[str, tuple[str, ...]]:
    """Return each block device under a node, with what is stored on it: {"loop1": ("data",), "vda": ("data", "WAL")}."""
    found: dict[str, tuple[str, ...]] = {}
    for role, storage in node.roles.items():
        for device in storages[storage].block_devices:
            found[device] = (*found.get(device, ()), role)
    return found


def device_io(samples: Iterable[Sample], devices: Mapping[str, tuple[str, ...]]) -> tuple[DeviceIo, ...]:
    """Return totals of each device from the last reading before the load to the last of all; None where it was not counted."""
    readings: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for sample in samples:
        if sample.source == _SOURCE and sample.object in devices:
            readings.setdefault((sample.object, sample.metric), []).append((sample.t_ns, sample.value))
    return tuple(
        DeviceIo(
            device=device,
            roles=roles,
            **{field: _advance(readings.get((device, metric), [])) for field, metric in _COUNTERS.items()},
        )
        for device, roles in devices.items()
    )


def _advance(counter: list[tuple[int, float]]) -> int | None:
    if len(counter) < 2:
        return None
    ordered = sorted(counter)
    before = [value for t_ns, value in ordered if t_ns <= 0]
    return round(ordered[-1][1] - (before[-1] if before else ordered[0][1]))
