"""The contents of a bundle as values: the only input of analysis and report."""

from collections.abc import Callable
from dataclasses import dataclass, field

from plinth.model.doctor import DoctorRecord
from plinth.model.durability import PowerCut
from plinth.model.facts import HostFacts, ServerFacts, StorageFacts
from plinth.model.io_error import IoErrorResult
from plinth.model.load import Histogram, Second
from plinth.model.loaded import LoadedDataset
from plinth.model.manifest import Manifest
from plinth.model.plan import Plan, PlannedCluster, PlannedTrial, Variant
from plinth.model.probe import FsyncProbe
from plinth.model.probe_io import StorageIo
from plinth.model.standby import BaseBackup
from plinth.model.trial import Event, Samples, Trial
from plinth.model.wear import RunWear
from plinth.model.write_facts import WriteFacts, as_settings, settings_in_force


@dataclass(frozen=True)
class TrialContents:
    """One trial with its tables. Samples are many: those of all trials are read once, when the first are asked for."""

    trial: Trial
    series: tuple[Second, ...]
    histograms: tuple[Histogram, ...]
    events: tuple[Event, ...]
    read_samples: Callable[[], Samples]


@dataclass(frozen=True)
class BundleContents:
    """A bundle as read. `storages` by storage name; `servers` by variant id, as first read back in a trial; `probes` by storage
    name, of those that were probed; `datasets` by cluster, of those that were looked at once loaded; `standbys` by variant and
    node, as in "memory.a"; `backups` are those that standbys were made by.

    `wear` is None if the run did not finish, `doctor` if it ended before the machine was examined.
    """

    path: str
    manifest: Manifest
    experiment_toml: str
    plan: Plan
    host: HostFacts
    storages: dict[str, StorageFacts]
    servers: dict[str, ServerFacts]
    trials: tuple[TrialContents, ...]
    wear: RunWear | None = None
    doctor: DoctorRecord | None = None
    probes: dict[str, FsyncProbe] = field(default_factory=dict)
    io: tuple[StorageIo, ...] = ()
    datasets: dict[str, LoadedDataset] = field(default_factory=dict)
    cuts: tuple[PowerCut, ...] = ()
    io_errors: tuple[IoErrorResult, ...] = ()
    standbys: dict[str, ServerFacts] = field(default_factory=dict)
    backups: tuple[BaseBackup, ...] = ()
    altered: tuple[str, ...] = ()
    """What was changed in the bundle after its run, where that was looked for."""

    @property
    def expected_trials(self) -> list[PlannedTrial]:
        """The planned trials, but for those that a target made unnecessary."""
        return self.manifest.expected_trials(self.plan.trials)

    def storages_of(self, variant: Variant) -> dict[str, StorageFacts | None]:
        """Return storage facts by what a variant's server has on each ("data", "WAL", ...): None where they are not in the bundle."""
        return {role: self.storages.get(storage) for role, storage in self.cluster_of(variant).primary.roles.items()}

    def writes_of(self, variant: Variant) -> list[WriteFacts]:
        """Return what the loads of a variant's trials and power cuts wrote to, and the settings that their commits had."""
        trials = [one.trial.writes for one in self.trials if one.trial.variant == variant.id]
        cuts = [WriteFacts(settings=cut.settings) for cut in self.cuts if cut.variant == variant.id]
        return [*(one for one in trials if one is not None), *cuts]

    def as_in_force(self, variant: Variant) -> Variant:
        """Return a variant with the weakest durability settings that its commits had, in the place of those that were asked for."""
        seen = settings_in_force(variant.asked, self.servers.get(variant.id), self.writes_of(variant))
        return variant.model_copy(update={"settings": as_settings(seen, variant.asked)})

    def host_of(self, variant: Variant) -> HostFacts:
        """Return the machine of a variant's server, as far as it is known: that of the run, or the host of its storage."""
        storage = self.cluster_of(variant).primary.server.storage
        described = None if storage is None else self.plan.storages.get(storage)
        return self.host if described is None or described.host is None else self.plan.hosts[described.host]

    def cluster_of(self, variant: Variant) -> PlannedCluster:
        """Return the cluster that a variant's trials run on."""
        return next(cluster for cluster in self.plan.clusters if cluster.id == variant.cluster)
