"""The experiment: question, storages, server, dataset, workload, factors and measuring rules.

Field descriptions here are the reference: the JSON Schema, `plinth init` and docs/reference are made from them.
"""

import re
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from plinth.model.action import Action
from plinth.model.action_base import check_times
from plinth.model.base import Frozen, Name, Names, SettingValue
from plinth.model.choices import LARGEST_BLOCK_BYTES, SMALLEST_BLOCK_BYTES, WAL_BLOCK_BYTES, IoShape, WriteGroup
from plinth.model.dataset import DatasetSpec
from plinth.model.durability import DurabilitySpec
from plinth.model.endurance import DriveSpec
from plinth.model.fleet import FleetSpec
from plinth.model.host import HostSpec
from plinth.model.io_error import IoErrorSpec
from plinth.model.level import SETTING_TABLES, Level
from plinth.model.network import NetworkSpec
from plinth.model.objective import Objective
from plinth.model.prices import PricesSpec
from plinth.model.probe_io import IoMoment
from plinth.model.server_spec import ServerSpec
from plinth.model.storage import StorageSpec
from plinth.model.units import DurationS, Share, SizeBytes, format_duration
from plinth.model.workload import Driver as Driver  # for those who import it from here
from plinth.model.workload import WorkloadSpec

SPEC_VERSION = 1


CacheAsked = Literal["as-is", "cold", "warm"]
RestoreAsked = Literal["none", "auto", "reflink", "copy", "snapshot"]
MOST_REPEATS = 1000
DEFAULT_MOST_TRIALS = 20
"""Of each variant, where measure.target ends the trials."""
LEAST_STEADY_WINDOW_S = 10.0
"""Fewer seconds do not show how far throughput varies without a cause."""
FIRST_LOOK = 4
"""Trials of each variant before which measure.target decides nothing: fewer show too little of the spread."""


class MeasureSpec(Frozen):
    """The measuring rules."""

    warmup_s: DurationS = Field(
        default=5.0,
        alias="warmup",
        description="Load before measuring begins; with warmup_max, the least of it.",
        examples=["5s"],
    )
    warmup_max_s: DurationS | None = Field(
        default=None,
        gt=0,
        alias="warmup_max",
        description="The warm-up continues until throughput is steady, but no longer than this: a trial that is not steady by then "
        "is measured all the same, and the report says so. Default: every warm-up lasts as long as warmup.",
        examples=["60s"],
    )
    steady_window_s: DurationS = Field(
        default=LEAST_STEADY_WINDOW_S,
        ge=LEAST_STEADY_WINDOW_S,
        alias="steady_window",
        description="With warmup_max: the last seconds in which throughput must show no trend and no jump, by the rule that the "
        "measured time is judged by.",
        examples=["20s"],
    )
    duration_s: DurationS = Field(
        default=30.0, gt=0, alias="duration", description="Measured time of one trial.", examples=["60s"]
    )
    repeats: int = Field(
        default=5,
        ge=1,
        le=MOST_REPEATS,
        description=f"Trials of each variant; with target, at most so many, by default {DEFAULT_MOST_TRIALS}.",
    )
    target: Share | None = Field(
        default=None,
        description="The smallest difference of throughput that matters. Trials end, after a block, once every comparison is "
        "decided: it shows a difference, or none larger than this. The share of false alarms stays at 5 %, although it is looked "
        f"at after each block from the {FIRST_LOOK}th on. Default: the number of trials is fixed, by repeats.",
        examples=["3%"],
    )
    budget_s: DurationS | None = Field(
        default=None,
        gt=0,
        alias="budget",
        description="With target: how long trials may take, all together. No block begins that would end later, going by the "
        "time of those before it. Default: none.",
        examples=["20min"],
    )
    order: Literal["random-blocks", "sequential"] = Field(
        default="random-blocks",
        description="random-blocks: every variant once a block, shuffled; sequential: variant after variant.",
    )
    seed: int = Field(
        default=1,
        ge=0,
        lt=2**63,
        description="Seed of the order, of the load, of the emulated network and of the bootstrap.",
    )
    baseline: dict[str, Level] = Field(
        default_factory=dict,
        description="Levels of the variant that others are compared to. Default: the first level of each factor.",
        examples=[{"storage": "disk"}],
    )
    compare: Names = Field(
        default=(),
        description="Factors along which variants are compared, at every combination of levels of the others: one name of "
        "[matrix], or a list. Default: those whose levels are names, such as storages; where all are numbers, the first. "
        "Different transactions are compared with each other only where nothing else is varied, or where this asks for it.",
        examples=["storage"],
    )
    aa: bool = Field(
        default=True,
        description="Measure the baseline twice, as an A/A pair, to show what this machine can tell apart.",
    )
    fresh_server: bool = Field(
        default=True,
        description="Restart the server for each trial, so that all begin with empty shared buffers. False: restart or "
        "reload only where a variant's settings need it.",
    )
    cache: CacheAsked = Field(
        default="as-is",
        description="What of the tables and indexes memory holds when the load of a trial begins. as-is: what preparing the "
        "trial has left there. cold: nothing; the server is stopped, the page cache of the whole machine is dropped (as root), and "
        "the server is started. warm: as much as fits; tables and indexes are read, with pg_prewarm where the server has it, until "
        "another pass reads no less from the devices. The state is verified and recorded with each trial.",
        examples=["cold"],
    )
    restore: RestoreAsked = Field(
        default="none",
        description="Put the server's files back to what they were after loading, before each trial of a cluster whose workloads "
        "write; the server is stopped for it, and a copy of all its files is kept on the same storages. none: each trial begins with "
        "what those before it left. copy: a plain copy. reflink: one that shares its blocks (XFS, btrfs). snapshot: "
        "one of btrfs or ZFS. auto: a snapshot on ZFS where nothing else is stored there, and on btrfs where an action takes snapshots; "
        "reflink where the file system has it, else copy.",
        examples=["auto"],
    )
    probe_s: DurationS = Field(
        default=0.3,
        ge=0,
        alias="probe",
        description="For which each case of the fsync probe is measured on each storage, once it is made: what a durable "
        "write takes there, and how many commits group commit lets through. 0: not at all.",
        examples=["1s"],
    )
    probe_only: tuple[WriteGroup, ...] = Field(
        default=("one_block",),
        description="Of the cases that pg_test_fsync has, too: those that the fsync probe measures, as `plinth probe fsync --only`.",
        examples=[["one_block", "two_blocks", "other_descriptor", "unsynced"]],
    )
    probe_block_bytes: SizeBytes = Field(
        default=WAL_BLOCK_BYTES,
        ge=SMALLEST_BLOCK_BYTES,
        le=LARGEST_BLOCK_BYTES,
        multiple_of=SMALLEST_BLOCK_BYTES,
        alias="probe_block",
        description="Length of one write in these cases, as of pg_test_fsync of a PostgreSQL that was built with another "
        "--with-wal-blocksize.",
        examples=["64KiB"],
    )
    probe_io: tuple[IoShape, ...] = Field(
        default=(),
        description="Shapes of `plinth probe io` that are measured on each storage that a server uses; needs fio.",
        examples=[["sequential", "depth_128"]],
    )
    probe_io_at: tuple[IoMoment, ...] = Field(
        default=("empty",),
        description="When: empty, before anything is put on the storages; loaded, with all datasets and no server running; "
        "measured, after the last trial.",
        examples=[["empty", "loaded"]],
    )
    probe_io_size_bytes: SizeBytes = Field(
        default=256 * 2**20, ge=2**20, alias="probe_io_size", description="Size of the probe's file.", examples=["1GiB"]
    )
    probe_io_s: DurationS = Field(
        default=1.0, gt=0, alias="probe_io_time", description="For which each job runs.", examples=["5s"]
    )
    actions: tuple[Action, ...] = Field(
        default=(),
        alias="action",
        description="What is done to the server at set times of each trial, while the load runs; each is an event in the report. A "
        "trial whose action fails is a failed trial.",
        examples=[[{"at": "10s", "do": "checkpoint"}]],
    )
    stall_limit_s: DurationS = Field(
        default=600.0,
        gt=0,
        alias="stall_limit",
        description="The load of a trial may so long end no transaction, as of a server that is stopped or waits for a lock; then the "
        "trial has failed. Where actions or a rate of few transactions may hold it up, the time counts from its planned end "
        "on. Raise it where one transaction takes longer.",
        examples=["1h"],
    )
    stop_on_failure: bool = Field(default=False, description="End the run at the first failed trial.")
    max_written_bytes: SizeBytes | None = Field(
        default=None,
        gt=0,
        alias="max_written",
        description="Write budget: the run ends before more than this has been written to the disks under its storages, "
        "all together and by whomever; finished trials are kept. Default: none.",
        examples=["200GB"],
    )

    @model_validator(mode="before")
    @classmethod
    def _target_has_its_own_default_of_repeats(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("target") is not None and "repeats" not in given:
            return {**given, "repeats": DEFAULT_MOST_TRIALS}
        return given

    @model_validator(mode="after")
    def _target_can_end_the_trials(self) -> "MeasureSpec":
        if self.target is None:
            if self.budget_s is not None:
                raise ValueError("budget: only with target; without it, repeats says how many trials are run")
        elif self.repeats < FIRST_LOOK:
            raise ValueError(
                f"repeats: got {self.repeats}; with target, trials are looked at from the {FIRST_LOOK}th of each variant on"
            )
        elif self.order == "sequential":
            raise ValueError(
                "order: with target, variants must run in random-blocks: it is decided after each block, in which all ran"
            )
        return self

    @model_validator(mode="after")
    def _warmup_can_become_steady(self) -> "MeasureSpec":
        longest_s = self.warmup_max_s
        if longest_s is None:
            if self.steady_window_s != LEAST_STEADY_WINDOW_S:
                raise ValueError(
                    "steady_window: only with warmup_max; without it, every warm-up lasts as long as warmup"
                )
        elif longest_s < self.warmup_s:
            raise ValueError(
                f"warmup_max: got {format_duration(longest_s)}, less than warmup, {format_duration(self.warmup_s)}, which is the least"
            )
        elif longest_s < self.steady_window_s:
            raise ValueError(
                f"warmup_max: got {format_duration(longest_s)}, less than steady_window, {format_duration(self.steady_window_s)}: "
                "no warm-up could be seen to be steady"
            )
        return self

    @property
    def longest_warmup_s(self) -> float:
        """How long a warm-up may last: warmup, or warmup_max where it ends when throughput is steady."""
        return self.warmup_s if self.warmup_max_s is None else self.warmup_max_s

    @property
    def shortest_warmup_s(self) -> float:
        """How long a warm-up lasts at least: one that ends when throughput is steady sees a whole steady_window."""
        return self.warmup_s if self.warmup_max_s is None else max(self.warmup_s, self.steady_window_s)

    @property
    def longest_trial_s(self) -> float:
        """The load of one trial at the longest."""
        return self.longest_warmup_s + self.duration_s

    @model_validator(mode="after")
    def _trials_can_be_so(self) -> "MeasureSpec":
        if self.cache == "cold" and not self.fresh_server:
            raise ValueError(
                'cache: got "cold", with fresh_server = false; a server that runs on keeps its shared buffers: leave fresh_server out'
            )
        if self.restore != "none" and not self.fresh_server:
            raise ValueError(
                f'restore: got "{self.restore}", with fresh_server = false; the server is stopped for it: leave fresh_server out'
            )
        check_times(self.actions, self.duration_s)
        return self


class Experiment(Frozen):
    """One question, asked of storages and settings, and how it is measured."""

    model_config = ConfigDict(title="Plinth experiment")

    spec: Literal[1] = Field(description="Version of this format.")
    name: Name = Field(description="Short name; bundles are named after it.", examples=["ramdisk"])
    question: str = Field(min_length=1, description="What this experiment is to answer, in a sentence.")
    storage: dict[Name, StorageSpec] = Field(
        default_factory=dict, description="Places where a data directory can be stored."
    )
    host: dict[Name, HostSpec] = Field(
        default_factory=dict,
        description="Other machines, on which storages may be, and with them servers. Default: all are on this one.",
    )
    server: ServerSpec = Field(default_factory=ServerSpec)
    network: NetworkSpec | None = Field(
        default=None,
        description="An emulated network between primary and standbys, as root. Default: they talk over sockets of this machine.",
    )
    dataset: DatasetSpec = Field(description="What is loaded before measuring.")
    workload: WorkloadSpec = Field(description="What the clients do.")
    fleet: FleetSpec | None = Field(
        default=None,
        description="More than one load machine. Default: this machine alone drives the load.",
    )
    matrix: dict[str, list[Level]] = Field(
        default_factory=dict,
        description="Factors: dotted paths into this file (storage, storage.NAME.*, server.settings.*, workload.clients, ...) "
        "and their levels. A factor in a storage's own fields makes a storage for each level. At most 1,000 combinations.",
        examples=[{"storage": ["disk", "memory"], "workload.clients": [1, 16]}],
    )
    measure: MeasureSpec = Field(default_factory=MeasureSpec)
    durability: DurabilitySpec | None = Field(
        default=None,
        description="Power cuts after the trials, which test whether acknowledged commits are kept. Default: none; the report then "
        "judges from facts.",
    )
    io_errors: IoErrorSpec | None = Field(
        default=None,
        description="Errors of storages after the trials: what the server does, whether it comes back, and which commits are lost. Default: "
        "none.",
    )
    objectives: tuple[Objective, ...] = Field(
        default=(),
        alias="objective",
        description="Bounds that variants have to keep. The report says of each variant whether it does; --fail-on makes a "
        "command end with exit code 99 where one does not.",
        examples=[[{"metric": "latency_p99", "max": "20ms"}]],
    )
    prices: PricesSpec | None = Field(
        default=None,
        description="What servers and storages cost: the report then compares variants by cost, too. Default: no costs, but those of "
        "objectives with a price_per_hour.",
    )
    drive: DriveSpec | None = Field(
        default=None,
        description="What a drive is rated for: the report then says how long one lasts at the measured rates.",
    )
    reference: str | None = Field(
        default=None,
        min_length=1,
        description="Published results to compare ours with: one that Plinth brings along, or a file that ends with .toml, "
        "relative to this one.",
        examples=["s3-zfs-slog"],
    )
    full: dict[str, SettingValue | list[Level]] = Field(
        default_factory=dict,
        description="The published size, which --full asks for: keys of this file, as of --set, and their values there. The kind "
        "of dataset or storage replaces its table. Of a factor, as many levels as in [matrix] correspond to one another, in "
        "their order, also where --set leaves fewer.",
        examples=[{"dataset.rows": 10**10, "measure.duration": "5min"}],
    )

    @property
    def used_hosts(self) -> dict[str, HostSpec]:
        """The hosts that some storage is on, or may be by a level."""
        named = {one.host for one in self.storage.values()}
        for factor, levels in self.matrix.items():
            if factor.startswith("storage.") and factor.endswith(".host"):
                named |= set(map(str, levels))
        return {name: host for name, host in self.host.items() if name in named}


MAX_VARIANTS = 1000
"""Maximum number of variants of an experiment: the page of 400 has 6.7 MB."""
_SETTING_OF_STANDBY = re.compile(r"server\.standby\.(?P<name>[^.]+)\.settings\.(?P<setting>.+)")


def factor_path(factor: str) -> tuple[str, ...]:
    """Return where a factor's level goes in the document.

    "storage" is short for server.storage; the name of a setting may hold dots (server.settings.auto_explain.log_analyze).
    """
    if factor == "storage":
        return ("server", "storage")
    for table in SETTING_TABLES:
        if factor.startswith(table):
            return (*table[:-1].split("."), factor.removeprefix(table))
    if standby := _SETTING_OF_STANDBY.fullmatch(factor):
        return ("server", "standby", standby["name"], "settings", standby["setting"])
    return tuple(factor.split("."))


def factors_of_storages(matrix: Iterable[str]) -> tuple[str, ...]:
    """Return the factors that write into a storage's own fields: storage.NAME.FIELD."""
    return tuple(factor for factor in matrix if factor.startswith("storage."))


def with_levels(document: dict[str, Any], levels: dict[str, Level]) -> dict[str, Any]:
    """Return a copy of an experiment's raw document, without its matrix, with each factor's place set to its level."""
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
