"""The plan: an experiment with every default explicit, every command named, time and space estimated."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator

from plinth.model.base import Frozen, Name
from plinth.model.dataset import DatasetSpec
from plinth.model.durability import PlannedCut
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts, Installation
from plinth.model.io_error import PlannedIoError
from plinth.model.level import Level
from plinth.model.load_config import CompiledTransaction
from plinth.model.network import NetworkSpec
from plinth.model.patroni import PatroniSpec
from plinth.model.published import Reference
from plinth.model.replay import PlannedRecording, RecordedClass
from plinth.model.server_spec import ServerSpec
from plinth.model.standby import PRIMARY as PRIMARY  # for those who import it from here
from plinth.model.step import Step
from plinth.model.storage import StorageSpec
from plinth.model.units import format_size
from plinth.model.workload import WorkloadSpec

PLAN_VERSION = 1

DATA_ROLE = "data"
WAL_ROLE = "WAL"


_TABLESPACE_ROLES = "tablespace "


def storage_that_holds(what: Literal["data", "wal", "tablespace"], roles: Mapping[str, str]) -> str:
    """Return the storage of a node's data directory, of its WAL, or of its first tablespace with a storage of its own. The last two
    may be that of the data directory."""
    data = roles[DATA_ROLE]
    wal = roles.get(WAL_ROLE, data)
    match what:
        case "data":
            return data
        case "wal":
            return wal
        case "tablespace":
            tablespaces = (storage for role, storage in roles.items() if role.startswith(_TABLESPACE_ROLES))
            return next((storage for storage in tablespaces if storage not in (data, wal)), data)


def tablespace_role(name: str) -> str:
    """Return the role of a storage that holds the tablespace `name` of a cluster."""
    return f"{_TABLESPACE_ROLES}{name}"


def kept_path(name: str) -> PurePosixPath:
    """Return the path in a bundle of a file that its experiment names."""
    parts = PurePosixPath(name).parts
    return PurePosixPath("files", *("__" if part == ".." else part for part in parts if part != "/"))


class DatasetSize(NamedTuple):
    """Estimated sizes on disk of what a dataset loads."""

    tables_bytes: int
    indexes_bytes: int
    sorts_bytes: int = 0
    """The size of temporary files while the keys are built."""

    @property
    def total_bytes(self) -> int:
        """The size of tables and indexes."""
        return self.tables_bytes + self.indexes_bytes


class Pace(NamedTuple):
    """The speed of a storage, as known beforehand: medians with one request at a time."""

    flush_s: float
    """The latency of a sequential write and a flush, which a commit waits for."""
    page_write_s: float
    """The latency for a page of 8 KiB at a random place."""
    write_bytes_per_s: float | None
    """None without a limit."""
    page_read_s: float = 0.0
    """The latency for a page of 8 KiB at a random place."""


class PlannedNode(Frozen):
    """One server of a cluster: how its data directory is initialised, and on which storages its files are stored."""

    name: Name
    server: ServerSpec = Field(
        description="Without settings and standbys, which belong to a variant and to the cluster."
    )
    upstream: Name | None = Field(
        default=None, description="The node that a standby streams from; none of the primary."
    )
    bytes_by_storage: dict[str, int] = Field(
        default_factory=dict, description="Estimated size on each of its storages; empty when the server is external."
    )
    installation: Installation | None = Field(
        default=None,
        description="Of a node on another host than the primary: the PostgreSQL there. None: the cluster's.",
    )

    @property
    def roles(self) -> dict[str, str]:
        """Which storage holds what: {"data": "slow", "WAL": "fast", "tablespace bulk": "slow"}; empty when external."""
        if self.server.storage is None:
            return {}
        wal = {WAL_ROLE: self.server.wal_storage} if self.server.wal_storage is not None else {}
        tablespaces = {tablespace_role(name): storage for name, storage in self.server.tablespaces.items()}
        return {DATA_ROLE: self.server.storage, **wal, **tablespaces}


class PlannedCluster(Frozen):
    """The servers that hold one copy each of a dataset. Variants that agree in servers and dataset share a cluster."""

    id: str
    nodes: tuple[PlannedNode, ...] = Field(description="Every server of the cluster; one is named primary.")
    dataset: DatasetSpec
    installation: Installation | None
    data_bytes: int = Field(description="Estimated size of a node when loaded and while trials write to it.")
    restored: bool = Field(
        default=False,
        description="Before each trial its files are put back to what they were after loading, from a copy on the same storages.",
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [node.name for node in self.nodes]
        if PRIMARY not in names or len(set(names)) < len(names):
            raise ValueError(f"the nodes of a cluster have names of their own, and one is {PRIMARY!r}; got {names}")
        return self

    @property
    def primary(self) -> PlannedNode:
        """The node that takes writes."""
        return next(node for node in self.nodes if node.name == PRIMARY)

    @property
    def standbys(self) -> tuple[PlannedNode, ...]:
        """The nodes that follow the primary, each after the one that it streams from."""
        return tuple(node for node in self.nodes if node.upstream is not None)

    @property
    def is_external(self) -> bool:
        """Whether its servers are external."""
        return self.primary.server.connection is not None

    @property
    def storages(self) -> tuple[str, ...]:
        """The storages of all of its nodes, each once."""
        return tuple(dict.fromkeys(storage for node in self.nodes for storage in node.roles.values()))

    @property
    def bytes_by_storage(self) -> dict[str, int]:
        """Estimated size of all of its nodes on each of their storages."""
        found: dict[str, int] = {}
        for node in self.nodes:
            for storage, size_bytes in node.bytes_by_storage.items():
                found[storage] = found.get(storage, 0) + size_bytes
        return found

    def id_of(self, node: PlannedNode) -> str:
        """Return the name of a node in journals, logs and storages, unique in a plan: "1-disk" of the primary, "1-disk.NAME" of others."""
        return self.id if node.name == PRIMARY else f"{self.id}.{node.name}"


class ScriptText(Frozen):
    """A client script: its name for people, and its text."""

    name: str
    source: str
    weight: int = 1


TransactionText = ScriptText | CompiledTransaction | RecordedClass
"""What a client runs: a script, a transaction that is compiled into the load engine, or a class of recorded statements."""


class PlannedShell(Frozen):
    """A command of the system that a script starts, by `\\shell` or `\\setshell`."""

    script: str
    line: int
    command: str = Field(description="As written, with the names of its variables.")
    user: str = Field(description="Who runs it: as root, the user who runs servers.")


class Variant(Frozen):
    """One combination of levels. The A/A twin has the levels of the baseline and an id of its own."""

    id: str = Field(description="Made of its levels, each whole; names files.")
    label: str = Field(description='For people: "memory", or "memory, 16 clients".')
    levels: dict[str, Level]
    cluster: str
    settings: dict[str, bool | int | float | str]
    standby_settings: dict[str, dict[str, bool | int | float | str]] = Field(
        default_factory=dict, description="Settings of standbys, by name, that differ from the primary's."
    )
    connection_options: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="Of an external server: settings of the load's own sessions."
    )
    network: NetworkSpec | None = Field(
        default=None, description="The emulated network between the nodes; none: they talk over sockets."
    )
    patroni: PatroniSpec | None = Field(
        default=None, description="What conducts its failovers; none: Plinth's own sequence."
    )
    workload: WorkloadSpec
    scripts: tuple[TransactionText, ...]
    recording: PlannedRecording | None = Field(default=None, description="Of a workload that is replayed.")
    is_baseline: bool = False
    is_aa_twin: bool = False

    @property
    def clients(self) -> int:
        """How many connections work at the same time; of a recording, the most."""
        if self.recording is None:
            return self.workload.clients
        return self.workload.connections or self.recording.sessions_at_once

    @property
    def asked(self) -> dict[str, bool | int | float | str]:
        """All settings that are asked for: of the server, and of the load's sessions."""
        return {**self.settings, **self.connection_options}


class PlannedTrial(Frozen):
    """The trial of `variant` in `block`; `number` is its place in the order of running, from 1."""

    number: int
    block: int
    variant: str
    seed: int


class Extension(Frozen):
    """Trials that were added to a run once all of it was measured, by `plinth resume --more`."""

    repeats: int = Field(ge=1, description="Trials of each variant that were added.")
    first_trial: int = Field(ge=1, description="The number of the first trial that was added.")
    added_unix_ns: int = Field(ge=0, lt=2**63)


class Need(Frozen):
    """A requirement of the run on a place, and the available amount."""

    what: str
    where: str
    needed_bytes: int
    available_bytes: int | None
    storages: tuple[str, ...] = Field(
        default=(), description="The storages without which it would be met; none where the run as a whole needs it."
    )

    @property
    def met(self) -> bool | None:
        """Whether it is met; None where what is available could not be read."""
        return None if self.available_bytes is None else self.needed_bytes <= self.available_bytes

    @property
    def sentence(self) -> str:
        """A sentence with the required and the available amount."""
        available = self.available_bytes
        there = "could not be read" if available is None else format_size(available)
        return f"{self.what} ({self.where}): needs {format_size(self.needed_bytes)}; there is: {there}"


class DestructiveTarget(Frozen):
    """A disk whose content the run destroys."""

    storage: str
    id: str
    size_bytes: int
    word: str = Field(description="What must follow --destroy on the command line.")
    name: str | None = Field(description="Kernel name, as found; none when there is no such disk.")
    model: str | None
    against: tuple[str, ...] = Field(description="Why it would be refused as things are now; empty when it would not.")


class Plan(Frozen):
    """Everything that a run will do, known before it starts."""

    schema_version: int = PLAN_VERSION
    run_id: str = Field(description="Mark of everything that this run makes.")
    experiment: Experiment
    overrides: tuple[str, ...] = Field(
        default=(), description="KEY=VALUE of each --set, then what --scale-to-fit cut, in the same form."
    )
    full: bool = Field(default=False, description="Asked for at the published size, with --full.")
    reference: Reference | None = Field(default=None, description="The published results that the experiment names.")
    host: HostFacts
    hosts: dict[str, HostFacts] = Field(
        default_factory=dict, description="The other machines that storages and servers are on, by name."
    )
    storages: dict[str, StorageSpec] = Field(
        default_factory=dict,
        description="Every storage that there is, by its own name: one whose fields are factors is one for each level.",
    )
    clusters: tuple[PlannedCluster, ...]
    variants: tuple[Variant, ...]
    lacking: dict[str, str] = Field(
        default_factory=dict,
        description="Variants that cannot be measured, by id, and why: what this build of the server, or this machine, lacks for them.",
    )
    trials: tuple[PlannedTrial, ...]
    cuts: tuple[PlannedCut, ...] = Field(default=(), description="Power cuts, which are made once all trials are done.")
    io_errors: tuple[PlannedIoError, ...] = Field(
        default=(), description="Errors of storages, which are made once all power cuts are done."
    )
    extensions: tuple[Extension, ...] = Field(
        default=(),
        description="Which of the trials were added after the results had been seen, in order; measure.repeats counts them.",
    )
    dataset_files: dict[str, str] = Field(
        default_factory=dict, description="Text of each SQL file that the dataset names, by its path as written."
    )
    shell_commands: tuple[PlannedShell, ...] = Field(
        default=(), description="Every command of the system that scripts start while trials run."
    )
    steps: tuple[Step, ...] = Field(description="Every step in order, the trials as one step each.")
    needs: tuple[Need, ...]
    destructive_targets: tuple[DestructiveTarget, ...] = Field(
        default=(), description="Disks whose content the run destroys."
    )
    estimated_written_bytes: int = Field(
        default=0, description="Of all clusters and trials, memory included; of external servers nothing is known."
    )
    estimated_s: float
    warnings: tuple[str, ...] = ()

    @property
    def facts_by_host(self) -> dict[str | None, HostFacts]:
        """What each machine is, this one as None."""
        return {None: self.host, **self.hosts}

    @property
    def is_external(self) -> bool:
        """Whether it measures external servers."""
        return any(cluster.is_external for cluster in self.clusters)

    @property
    def networked(self) -> tuple[str, ...]:
        """The nodes of all clusters that the emulated network joins; empty where there is none.

        One network serves all clusters, whose servers run one cluster at a time.
        """
        if all(variant.network is None for variant in self.variants):
            return ()
        return tuple(dict.fromkeys(node.name for cluster in self.clusters for node in cluster.nodes))

    @property
    def named_files(self) -> dict[str, str]:
        """The text of every file that the experiment names, by its path as written: scripts, and SQL of the dataset."""
        scripts = (script for variant in self.variants if variant.workload.script for script in variant.scripts)
        return self.dataset_files | {script.name: script.source for script in scripts if isinstance(script, ScriptText)}
