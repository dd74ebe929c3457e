"""The experiment: question, storages, server, dataset, workload, factors and measuring rules.

Field descriptions here are the reference: the JSON Schema, `plinth init` and docs/reference are made from them.
"""

from copy import deepcopy
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from plinth.model.base import Frozen
from plinth.model.units import DurationS, SizeBytes

SPEC_VERSION = 1
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
"""A name that can stand in a path: a letter, then letters, digits, - and _, at most 40."""

SettingValue = bool | int | float | str
Level = bool | int | float | str


class DirectoryStorage(Frozen):
    """A directory that is there, or one that Plinth makes; nothing is formatted."""

    kind: Literal["directory"]
    path: str | None = Field(
        default=None,
        description="An existing directory; a new one is made inside it. Default: Plinth's own work directory.",
        examples=["/mnt/nvme0"],
    )


class TmpfsStorage(Frozen):
    """A file system in memory. Without the right to mount, a directory in /dev/shm stands in, and the report says so."""

    kind: Literal["tmpfs"]
    size_bytes: SizeBytes = Field(alias="size", description="Upper limit of the mount.", examples=["2GiB"])


StorageSpec = Annotated[DirectoryStorage | TmpfsStorage, Field(discriminator="kind")]


class ServerSpec(Frozen):
    """The PostgreSQL cluster under test: managed (Plinth makes and starts it) or external (a connection string)."""

    storage: Name | None = Field(
        default=None,
        description="The storage that the data directory stands on. Default: the first one.",
        examples=["disk"],
    )
    version: int = Field(default=18, ge=13, le=18, description="Major version of a managed server.", examples=[18])
    bindir: str | None = Field(
        default=None,
        description="Directory of postgres and initdb. Default: the wheel for 18, else the usual places.",
        examples=["/usr/lib/postgresql/17/bin"],
    )
    connection: str | None = Field(
        default=None,
        description="Connection string of an external server, by libpq's rules. Plinth then works in a schema of its own.",
        examples=["host=db1 dbname=bench"],
    )
    port: int | None = Field(
        default=None,
        ge=1024,
        le=65535,
        description="Port of a managed server. Default: 5432, or a free one for tcp.",
        examples=[54321],
    )
    listen: Literal["unix", "tcp"] = Field(default="unix", description="How the load reaches a managed server.")
    data_checksums: bool = Field(default=True, description="initdb with data checksums.")
    wal_segment_size_mb: int | None = Field(
        default=None, alias="wal_segment_size", description="initdb --wal-segsize, in MB.", examples=[64]
    )
    settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="PostgreSQL settings, written to the configuration and read back from pg_settings.",
        examples=[{"shared_buffers": "1GB", "fsync": True}],
    )

    @model_validator(mode="after")
    def _external_is_left_alone(self) -> "ServerSpec":
        if self.connection is not None:
            taken = [key for key in ("bindir", "port", "settings", "storage") if getattr(self, key)]
            if taken:
                raise ValueError(
                    f"{', '.join(taken)}: not with connection: Plinth does not change a server that it did not start"
                )
        return self


class TpcbDataset(Frozen):
    """The four tables of pgbench: 100,000 accounts (about 15 MB with the key) for each unit of scale."""

    kind: Literal["tpcb"]
    scale: int = Field(default=10, ge=1, le=1_000_000, description="Units of 100,000 accounts.", examples=[50])
    streams: int = Field(default=2, ge=1, le=256, description="Parallel COPY streams of the load.")
    fillfactor: int = Field(default=100, ge=10, le=100, description="Fill factor of the tables, in percent.")


class NoDataset(Frozen):
    """Nothing is loaded: the scripts make or find their own tables."""

    kind: Literal["none"]


DatasetSpec = Annotated[TpcbDataset | NoDataset, Field(discriminator="kind")]


class WorkloadSpec(Frozen):
    """What the clients do: a built-in script or script files, by how many clients."""

    builtin: Literal["tpcb-like", "simple-update", "select-only"] | None = Field(
        default=None, description="One of pgbench's built-in scripts."
    )
    script: str | None = Field(
        default=None,
        description="Path of a script in pgbench's language, relative to the experiment file.",
        examples=["scripts/upsert.sql"],
    )
    clients: int = Field(
        default=8, ge=1, le=100_000, description="Connections that work at the same time.", examples=[16]
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Threads of the load engine. Default: one for each core, at most 8 and at most clients.",
        examples=[2],
    )
    protocol: Literal["simple", "extended", "prepared"] = Field(
        default="prepared", description="How statements are sent."
    )
    max_tries: int = Field(
        default=1, ge=1, description="Tries of a transaction after a serialization failure or deadlock; 1 is no retry."
    )
    variables: dict[str, int | float | str] = Field(
        default_factory=dict, description="Variables of the script, as pgbench -D.", examples=[{"rows": 1000}]
    )

    @model_validator(mode="after")
    def _one_source(self) -> "WorkloadSpec":
        if (self.builtin is None) == (self.script is None):
            raise ValueError('give exactly one of builtin (such as "tpcb-like") and script (a path)')
        return self


class MeasureSpec(Frozen):
    """How it is measured."""

    warmup_s: DurationS = Field(
        default=5.0, alias="warmup", description="Load before measuring begins.", examples=["5s"]
    )
    duration_s: DurationS = Field(
        default=30.0, gt=0, alias="duration", description="Measured time of one trial.", examples=["60s"]
    )
    repeats: int = Field(default=5, ge=1, le=1000, description="Trials of each variant.")
    order: Literal["random-blocks", "sequential"] = Field(
        default="random-blocks",
        description="random-blocks: every variant once a block, shuffled; sequential: variant after variant.",
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the order, of the load and of the bootstrap.")
    baseline: dict[str, Level] = Field(
        default_factory=dict,
        description="Levels of the variant that others are compared to. Default: the first level of each factor.",
        examples=[{"storage": "disk"}],
    )
    aa: bool = Field(
        default=True,
        description="Measure the baseline twice, as an A/A pair, to show what this machine can tell apart.",
    )
    fresh_server: bool = Field(
        default=True,
        description="Start the server anew for each trial, so that all begin with empty shared buffers. False: restart or "
        "reload only where a variant's settings need it.",
    )
    stop_on_failure: bool = Field(default=False, description="End the run at the first failed trial.")


class Experiment(Frozen):
    """One question, asked of storages and settings, and how it is measured."""

    model_config = ConfigDict(title="Plinth experiment")

    spec: Literal[1] = Field(description="Version of this format.")
    name: Name = Field(description="Short name; bundles are named after it.", examples=["ramdisk"])
    question: str = Field(min_length=1, description="What this experiment is to answer, in a sentence.")
    storage: dict[Name, StorageSpec] = Field(
        default_factory=dict, description="Places where a data directory can stand."
    )
    server: ServerSpec = Field(default_factory=ServerSpec)
    dataset: DatasetSpec = Field(description="What is loaded before measuring.")
    workload: WorkloadSpec = Field(description="What the clients do.")
    matrix: dict[str, list[Level]] = Field(
        default_factory=dict,
        description="Factors: dotted paths into this file (storage, server.settings.*, workload.clients, ...) and their levels.",
        examples=[{"storage": ["disk", "memory"], "workload.clients": [1, 16]}],
    )
    measure: MeasureSpec = Field(default_factory=MeasureSpec)


def factor_path(factor: str) -> tuple[str, ...]:
    """Where a factor's level goes in the document.

    "storage" is short for server.storage; the name of a setting may hold dots (server.settings.auto_explain.log_analyze).
    """
    if factor == "storage":
        return ("server", "storage")
    if factor.startswith("server.settings."):
        return ("server", "settings", factor.removeprefix("server.settings."))
    return tuple(factor.split("."))


def with_levels(document: dict[str, Any], levels: dict[str, Level]) -> dict[str, Any]:
    """A copy of an experiment's raw document, without its matrix, with each factor's place set to its level."""
    changed = deepcopy({key: value for key, value in document.items() if key != "matrix"})
    for factor, level in levels.items():
        *parents, last = factor_path(factor)
        table: Any = changed
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                break
        else:
            table[last] = level
    return changed
