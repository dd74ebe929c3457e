"""The parts of a plan on its machines: storages and cluster layouts by name, the same for plan and run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.model.dataset import BackupDataset, DatasetSpec
from plinth.model.facts import HostFacts
from plinth.model.plan import PlannedCluster, PlannedNode
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import in_order
from plinth.run.host import Host, Hosts
from plinth.run.local_host import HOST, ONLY_THIS
from plinth.server.layout import BackupSource, ServerLayout
from plinth.storage import Storage
from plinth.system.directory import label_of
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.paths import work_dir
from plinth.workload.brought import LOAD_ROLE, RESTORING_ROLE

if TYPE_CHECKING:
    from plinth.bundle import BundleFolder
    from plinth.network.namespaces import NetworkLayout


_ELSEWHERE = "?"  # no host can have this name


@dataclass(frozen=True)
class RunContext:
    """Turns names into storages and layouts. Constructing it changes nothing on the machine."""

    run_id: str
    facts: Mapping[str | None, HostFacts]
    """What each machine is, this one as None."""
    owners: Mapping[str | None, Owner]
    """The user who runs servers on each machine."""
    bundle: Path
    storages: dict[str, Storage] = field(default_factory=dict)
    folder: "BundleFolder | None" = None
    network: "NetworkLayout | None" = None
    """None: the nodes of clusters talk over sockets."""
    hosts: Hosts = field(default_factory=lambda: ONLY_THIS)
    elsewhere: Mapping[str, Path] = field(default_factory=dict)
    """Mount points of storages of the run that are on other machines, where this is the part of one machine."""
    ssh_config: Path | None = None
    """The configuration of ssh that the command line names, for the machines of a fleet. None: the user's default."""

    @classmethod
    def of(
        cls,
        specs: Mapping[str, StorageSpec],
        run_id: str,
        facts: Mapping[str | None, HostFacts],
        bundle: Path,
        destroy: Collection[str] = (),
        folder: "BundleFolder | None" = None,
        network: "NetworkLayout | None" = None,
        hosts: Hosts = ONLY_THIS,
    ) -> "RunContext":
        """Return the context of a plan's storages, which are on `hosts`; `destroy` confirms which disks may be destroyed.

        `folder` is the bundle's, once there is one: logs are then written in it wherever it is moved to.
        """
        place = bundle.absolute()
        owners = {name: host.owner() for name, host in hosts.items()}
        made: dict[str, Storage] = {}
        for name, host in hosts.items():
            own = {storage: spec for storage, spec in specs.items() if spec.host == name}
            made |= host.storages(own, run_id, facts[name], owners[name], tuple(destroy), [place])
        storages = {name: made[name] for name in in_order(specs)}
        for name, host in hosts.items():
            host.know_places({one.name: one.mount_point for one in storages.values() if one.spec.host != name})
        return cls(run_id, facts, owners, place, storages, folder, network, hosts)

    @property
    def owner(self) -> Owner:
        """The user who runs servers on this machine."""
        return self.owners[None]

    def host_of(self, what: PlannedNode | Storage) -> Host:
        """Return the machine of a storage, or of a node, which is where its data directory is."""
        if isinstance(what, PlannedNode):
            storage = what.server.storage
            return HOST if storage is None else self.host_of(self.storages[storage])
        return self.hosts[what.spec.host]

    def _place(self, storage: str) -> Path:
        """Return where a storage is, on any machine."""
        return self.elsewhere[storage] if storage in self.elsewhere else self.storages[storage].mount_point

    def _machine(self, node: PlannedNode) -> str | None:
        """Return the name of a node's machine; of one that is not known here only that it is another."""
        storage = node.server.storage
        return _ELSEWHERE if storage in self.elsewhere else self.host_of(node).name

    def log(self, name: str) -> LogFile:
        """Return a log file in the bundle."""
        return LogFile(self.bundle / "logs" / name) if self.folder is None else self.folder.log(f"logs/{name}")

    def layout(self, cluster: PlannedCluster, node: PlannedNode) -> ServerLayout:
        """Return where a node of a managed cluster is, and the commands that make it."""
        storage, wal_storage = node.server.storage, node.server.wal_storage
        installation = node.installation or cluster.installation
        assert installation is not None and storage is not None, "it is a managed cluster"
        upstream = next((one for one in cluster.nodes if one.name == node.upstream), None)
        name = cluster.id_of(node)
        return ServerLayout(
            run_id=self.run_id,
            name=name,
            installation=installation,
            owner=self.owners.get(self._machine(node), self.owner),
            spec=node.server,
            data_directory=self._place(storage) / name,
            log=self.log(f"postgresql-{name}.log"),
            wal_directory=None if wal_storage is None else self._place(wal_storage) / f"{name}.wal",
            tablespaces={
                tablespace: self._place(storage) / f"{name}.tablespace-{tablespace}"
                for tablespace, storage in node.server.tablespaces.items()
            },
            standby=None if node.upstream is None else node.name,
            upstream=None if upstream is None else self.layout(cluster, upstream),
            machine=self._machine(node),
            place=next((one for one in self.network.places if one.name == node.name), None) if self.network else None,
            backup=backup_of(cluster.dataset) if node.upstream is None else None,
            load_role=load_role_of(cluster.dataset),
        )

    def layouts(self, cluster: PlannedCluster) -> list[ServerLayout]:
        """Return the layouts of all nodes of a managed cluster."""
        return [self.layout(cluster, node) for node in cluster.nodes]

    def used_storages(self, clusters: Iterable[PlannedCluster]) -> list[Storage]:
        """Return the storages that clusters are stored on, and all that those are built on, each after what it is built on."""
        return self.closure(storage for cluster in clusters for storage in cluster.storages)

    def closure(self, names: Iterable[str]) -> list[Storage]:
        """Return the storages of these names and all that they are built on, each after what it is built on."""
        used = set(names)
        for name, storage in reversed(self.storages.items()):  # in this order every user comes before what it uses
            if name in used:
                used.update(storage.requires())
        return [storage for name, storage in self.storages.items() if name in used]


def addresses_of(hosts: Hosts) -> dict[str | None, str]:
    """Return where servers on each machine are reached from the others, as far as it is known."""
    found = {name: host.listen_address for name, host in hosts.items()}
    found[None] = next((host.own_address for host in hosts.values() if host.own_address is not None), None)
    return {name: address for name, address in found.items() if address is not None}


def backup_of(dataset: DatasetSpec) -> BackupSource | None:
    """Return what a cluster's data directory is made of, if not by initdb."""
    if not isinstance(dataset, BackupDataset):
        return None
    return BackupSource(Path(dataset.path), dataset.database, dataset.verify)


def load_role_of(dataset: DatasetSpec) -> str | None:
    """Return the role of loads on data that were brought, whose triggers, views and functions are the work of others."""
    return {"dump": RESTORING_ROLE, "backup": LOAD_ROLE}.get(dataset.kind)


def network_layout(run_id: str, nodes: Sequence[str], seed: int) -> "NetworkLayout | None":
    """Return the emulated network that joins these nodes, whose jitter and loss `seed` decides; None where there is none to join."""
    if len(nodes) < 2:
        return None
    from plinth.network.namespaces import NetworkLayout

    label = label_of(run_id)
    return NetworkLayout(label, work_dir() / f"{label}-network", nodes, seed)
