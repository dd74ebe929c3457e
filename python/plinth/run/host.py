"""The machine that the storages and servers of a run are on: the protocols of what is made, read and measured there other than by a
connection to PostgreSQL.

`run.local_host.LocalHost` is the machine that the run is on; `run.hosts.remote_host.RemoteHost` is another, by its agent.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from plinth.model.errors import Problem
from plinth.model.facts import HostFacts, Installation, StorageFacts
from plinth.system.owner import Owner
from plinth.system.runner import CommandRecord, Runner

if TYPE_CHECKING:
    from plinth.model.base import SettingValue
    from plinth.model.choices import IoShape
    from plinth.model.doctor import Examination
    from plinth.model.errors import PlinthError
    from plinth.model.experiment import Experiment
    from plinth.model.io_error import PlannedIoError
    from plinth.model.loaded import LoadedDataset
    from plinth.model.outage import Rejoin
    from plinth.model.plan import PlannedCluster, PlannedNode
    from plinth.model.probe import FsyncCase, FsyncProbe
    from plinth.model.probe_io import IoProbe
    from plinth.model.progress import Report
    from plinth.model.step import Step
    from plinth.model.storage import StorageSpec
    from plinth.model.wear import SmartReading
    from plinth.observe.host_sampler import HostRequest
    from plinth.observe.sampler import Sampler
    from plinth.plan import Expanded
    from plinth.server.copies.live_snapshot import LiveSnapshot
    from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
    from plinth.server.layout import ServerLayout
    from plinth.server.node import Server, Standby, Upstream
    from plinth.server.prewarm import Relation
    from plinth.server.replication.patroni_machine import PatroniMachine
    from plinth.storage import Storage
    from plinth.system.action import Snapshot
    from plinth.system.journal import Journal, NotUndone
    from plinth.system.log_file import LogFile
    from plinth.workload import Dataset, DatasetServer

SettingsFindings = tuple[dict[str, str], list[Problem]]
"""What variants lack, by their ids, and which settings are refused."""
AskAboutSettings = Callable[["Expanded", Mapping[str, Installation]], SettingsFindings]


@dataclass
class Struck:
    """How many requests failed, once the storage works again; None where the error is not of single requests."""

    requests: int | None = None


class HostIdentity(Protocol):
    """Which machine it is, and what a run has there."""

    name: str | None = None
    """That of [host.NAME]; None of the machine that the run is on."""
    listen_address: str | None = None
    """Where its servers are reached from elsewhere."""
    own_address: str | None = None
    """Of another machine: the address by which it is reached from there that the run is on."""
    stays_after_kill: bool = True
    """Whether what a run has made there is still there when the run is killed, and can be used once it is resumed."""
    ray_node: str | None = None
    """Of a machine of a Ray cluster: its name or address there."""

    @abstractmethod
    def boot_id(self) -> str:
        """Return the kernel's id of this boot: two hosts with the same are one machine."""

    @abstractmethod
    def log_commands(self, record: "Callable[[CommandRecord, str], None]", note: "Callable[[str], None]") -> None:
        """Have `record` called with each command that another host runs for the run, and its name; those of this machine are the runner's.
        `note` is called with what is missing in the bundle of what another host has sent."""

    @abstractmethod
    def violation(self) -> "PlinthError | None":
        """Return what another host has answered against the protocol, by which the run fails."""

    @abstractmethod
    def facts(self) -> HostFacts:
        """Return what the machine is."""

    @abstractmethod
    def owner(self) -> Owner:
        """Return the user who runs servers there."""

    @abstractmethod
    def work_root(self) -> Path:
        """Return where storages are made that name no place."""

    @abstractmethod
    def know_places(self, elsewhere: Mapping[str, Path]) -> None:
        """Learn the mount points of a run's storages on other machines. This machine knows the storages themselves."""

    @abstractmethod
    def undo_steps(self, id_prefix: str) -> "tuple[NotUndone, ...]":
        """Undo the steps of another host whose ids begin with `id_prefix`; those of this machine are in the run's own journal."""

    @abstractmethod
    def end(self) -> "tuple[NotUndone, ...]":
        """Undo all that a run has made on another host; return what could not be undone."""

    @abstractmethod
    def shown(self, steps: "Iterable[Step]") -> "list[Step]":
        """Return steps that are done there as the plan shows them."""

    @abstractmethod
    def end_step(self) -> "Step | None":
        """Return the step by which all is undone there; None on this machine, where each step is undone by its own."""


class HostStorages(Protocol):
    """Its storages, and what is measured in them."""

    @abstractmethod
    def storages(
        self,
        specs: "Mapping[str, StorageSpec]",
        run_id: str,
        facts: HostFacts,
        owner: Owner,
        destroy: Sequence[str] = (),
        keep: Sequence[Path] = (),
    ) -> "Mapping[str, Storage[Any]]":
        """Return the storages of a run that are on it, each after those that it is built on. Nothing is touched.

        `destroy` are the words of the command line that disks may be destroyed by; no disk that one of `keep` is stored on is taken.
        """

    @abstractmethod
    def failing(
        self,
        planned: "PlannedIoError",
        storage: "Storage[Any]",
        cluster: "PlannedCluster",
        layout: "ServerLayout",
        runner: Runner,
    ) -> "AbstractContextManager[Struck]":
        """Return what has a storage of a cluster's primary there fail as planned while it is entered. Raises RunError where it cannot."""

    @abstractmethod
    def hanging_places(self, specs: "Mapping[str, StorageSpec]") -> "list[PlinthError]":
        """Return an error for each directory that a storage is to be in and that hangs."""

    @abstractmethod
    def place_problems(self, specs: "Mapping[str, StorageSpec]") -> list[Problem]:
        """Return a problem for each path of a storage that is no directory."""

    @abstractmethod
    def probe_writes(self, path: Path, cases: "Sequence[FsyncCase]", duration_s: float) -> "FsyncProbe":
        """Measure how long durable writes take in a directory, each case for `duration_s`."""

    @abstractmethod
    def probe_io(self, path: Path, asked: "Sequence[IoShape]", size_bytes: int, duration_s: float) -> "IoProbe":
        """Measure these shapes of I/O in a file of `size_bytes` in a directory, each for `duration_s`."""

    @abstractmethod
    def diskstats(self) -> dict[str, list[int]]:
        """Return the counters of each block device by its kernel name (Documentation/admin-guide/iostats)."""

    @abstractmethod
    def smart(self, disk: str, runner: Runner) -> "tuple[SmartReading | None, str | None]":
        """Return the wear that a disk reports, or why it reports none."""

    @abstractmethod
    def read_bytes(self, devices: Sequence[str]) -> int:
        """Return the bytes that were read from these block devices since boot."""

    @abstractmethod
    def free_space(self, path: Path) -> tuple[str, int | None]:
        """Return a key that paths on the same file system share, and the bytes that are free there, if that can be found out."""

    @abstractmethod
    def storage_of(self, directory: str, storages: Sequence[StorageFacts]) -> str | StorageFacts:
        """Return the name of the storage of this machine that a directory is on; or what is there, of one that is on none. Raises OSError
        or PlinthError."""


class HostServers(Protocol):
    """Its servers, their installations, and copies of their files."""

    @abstractmethod
    def server(
        self,
        layout: "ServerLayout",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        runner: Runner,
        journal: "Journal",
    ) -> "Server":
        """Return the server of a node, which `layout` describes. Nothing is touched."""

    @abstractmethod
    def standby(
        self,
        layout: "ServerLayout",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        upstream: "Upstream",
        runner: Runner,
        journal: "Journal",
    ) -> "Standby":
        """Return the standby of a node, which streams from `upstream`. Nothing is touched."""

    @abstractmethod
    def rejoin(
        self,
        cluster: "PlannedCluster",
        node: "PlannedNode",
        old: "Server",
        primary: "Upstream",
        settings: "Mapping[str, SettingValue]",
        by_rewind: bool,
        runner: Runner,
        journal: "Journal",
    ) -> "tuple[Standby, Rejoin]":
        """Bring the server of a node, once it has ended, back as a standby of a promoted node: see `pg_rewind.rejoin`."""

    @abstractmethod
    def loaded_copy(
        self,
        layout: "ServerLayout",
        ways: "Mapping[str, RestoreWay]",
        cluster: "PlannedCluster",
        node: "PlannedNode",
        runner: Runner,
        journal: "Journal",
    ) -> "LoadedCopy":
        """Return the copy of a node's files as they were after loading. Nothing is touched."""

    @abstractmethod
    def patroni(
        self,
        cluster: "PlannedCluster",
        servers: "Mapping[str, Server]",
        owner: Owner,
        log_of: "Callable[[str], LogFile]",
        runner: Runner,
        journal: "Journal",
    ) -> "PatroniMachine":
        """Return Patroni and etcd for those `servers` of a cluster, by node, that are there. Nothing is touched."""

    @abstractmethod
    def patroni_errors(self, installations: Sequence[Installation]) -> "list[PlinthError]":
        """Return what keeps Patroni from conducting the servers of these installations there."""

    @abstractmethod
    def populate(
        self, planned: "PlannedCluster", dataset: "Dataset", server: "DatasetServer", report: "Report"
    ) -> "LoadedDataset":
        """Load the dataset of a cluster whose primary is there. Raises RunError."""

    @abstractmethod
    def live_snapshot(
        self, layout: "ServerLayout", cluster: "PlannedCluster", number: int, of_storage: "Snapshot | None"
    ) -> "LiveSnapshot":
        """Return snapshot `number` of a cluster's running primary, `of_storage` or of its subvolume. Nothing is touched."""

    @abstractmethod
    def installation(self, version: int, bindir: str | None) -> Installation:
        """Return the PostgreSQL of this major version there, in `bindir` or in the usual places. Raises MissingCapability."""

    @abstractmethod
    def settings_findings(
        self,
        ask_here: "AskAboutSettings",
        experiment: "Experiment",
        expanded: "Expanded",
        installations: Mapping[str, Installation],
    ) -> "SettingsFindings":
        """Return what the installations there say against the settings of their clusters; `ask_here` asks those of this machine."""

    @abstractmethod
    def version_of(self, installation: Installation) -> str:
        """Return the version that the programs of an installation have now. Raises PlinthError where they do not run any more."""

    @abstractmethod
    def check_node(self, layout: "ServerLayout", cluster: "PlannedCluster", node: "PlannedNode") -> None:
        """Raise a PlinthError where the port of a node is taken, its socket could have no path, or nothing could limit its memory."""

    @abstractmethod
    def stopped_processes(self, postmaster_pid: int) -> tuple[list[int], int]:
        """Return which processes of a server are stopped, and how many processes it has."""

    @abstractmethod
    def resident_bytes(self, data_directory: Path, relations: "Sequence[Relation]") -> int:
        """Return how much of these tables and indexes is in the page cache. Raises RunError."""

    @abstractmethod
    def servers_at_once(self, memory_bytes: int) -> int:
        """Return how many servers with so much memory may run at a time: one a core, in half of the memory."""


class HostReadings(Protocol):
    """What is read of the machine as a whole, and done to it."""

    sampler: "Callable[[HostRequest], Sampler] | None" = None
    """What reads it while a load runs; None: the observer itself does."""

    @abstractmethod
    def examine(
        self,
        storages: Sequence[StorageFacts],
        asked: Mapping[str, Sequence[str]],
        measures_a_server: bool,
        load_average: str | None,
    ) -> "Examination":
        """Examine the machine and storages that were made there.

        `asked` has the mount options of each storage and the knobs of its device, of which the experiment knows. `load_average`
        is /proc/loadavg as it was before the run made and probed its storages, which is no work of others.
        """

    @abstractmethod
    def load_average(self) -> str | None:
        """Return /proc/loadavg, if it can be read."""

    @abstractmethod
    def round_trip_ns(self, address: str, port: int) -> int:
        """Return the round trip to a port of another machine: the median time of connecting, which takes one (RFC 9293, 3.5). Raises RunError."""

    @abstractmethod
    def may_drop_page_cache(self) -> bool:
        """Return whether this process may drop the page cache."""

    @abstractmethod
    def drop_page_cache(self, paths: Sequence[Path], runner: Runner) -> None:
        """Write back the file systems of `paths`, and drop the page cache of the machine. Raises MissingCapability."""


class Host(HostIdentity, HostStorages, HostServers, HostReadings, Protocol):
    """A machine with servers and storages. A run asks this object for all that has to be read or done there."""


Hosts = Mapping[str | None, Host]
"""The machines of a run by name, the one that it is on as None."""


def agent_step_id(name: str) -> str:
    """Return the id of the step of a host."""
    return f"host.{name}.agent"
