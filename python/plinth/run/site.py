"""What a plan's parts are on this machine: storages and cluster layouts by name, the same for plan and run."""

from dataclasses import dataclass, field
from pathlib import Path

from plinth.model.experiment import Experiment, ServerSpec
from plinth.model.facts import HostFacts
from plinth.model.plan import PlannedCluster
from plinth.server import ClusterLayout
from plinth.storage import Storage, make
from plinth.system.owner import Owner
from plinth.system.paths import work_dir


@dataclass(frozen=True)
class Site:
    """Names turned into storages and layouts. Making one touches nothing."""

    run_id: str
    host: HostFacts
    owner: Owner
    bundle: Path
    storages: dict[str, Storage] = field(default_factory=dict)

    @classmethod
    def of(cls, experiment: Experiment, run_id: str, host: HostFacts, owner: Owner, bundle: Path) -> "Site":
        """The site of an experiment's storages."""
        storages = {
            name: make(name, spec, run_id=run_id, host=host, owner=owner, work_root=work_dir())
            for name, spec in experiment.storage.items()
        }
        return cls(run_id, host, owner, bundle.absolute(), storages)

    def layout(self, cluster: PlannedCluster) -> ClusterLayout:
        """Where a managed cluster stands, and the commands that make it."""
        assert cluster.installation is not None and cluster.storage is not None, "it is a managed cluster"
        return ClusterLayout(
            run_id=self.run_id,
            name=cluster.id,
            installation=cluster.installation,
            owner=self.owner,
            spec=cluster.server,
            data_directory=self.storages[cluster.storage].mount_point / cluster.id,
            log_path=self.bundle / "logs" / f"postgresql-{cluster.id}.log",
        )

    def used_storages(self, clusters: tuple[PlannedCluster, ...] | list[PlannedCluster]) -> list[Storage]:
        """The storages that clusters stand on, in the order of the experiment."""
        used = {cluster.storage for cluster in clusters}
        return [storage for name, storage in self.storages.items() if name in used]


def is_external(server: ServerSpec) -> bool:
    """Whether the server is somebody else's."""
    return server.connection is not None
