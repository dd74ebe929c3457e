"""A trial as kept in the bundle: trial.json, and the samples taken while the load runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.flashback import Flashback
from plinth.model.load import EngineCost, FleetTrial, LoadError, ReplayCounts, ScriptTotals, Totals
from plinth.model.network import TrialNetwork
from plinth.model.outage import Outage
from plinth.model.write_facts import WriteFacts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRIAL_VERSION = 1


class Check(Frozen):
    """A condition that must hold for a trial, such as that the engine's total equals the database's own."""

    name: str
    expected: str
    got: str
    ok: bool


class Event(Frozen):
    """An event in a trial, such as a checkpoint; one line of events.jsonl."""

    t_ns: int = Field(description="Since the start of the load; may be negative for what came before.")
    kind: str
    text: str


class DeviceIo(Frozen):
    """What a block device did from the start of the load to its end, warm-up included. None: it was not counted."""

    device: str = Field(description="Kernel name, as in /proc/diskstats.")
    roles: tuple[str, ...] = Field(description="What of the cluster is stored on it: data, WAL, tablespace NAME.")
    reads: int | None
    read_bytes: int | None
    writes: int | None
    written_bytes: int | None
    flushes: int | None


class CacheState(Frozen):
    """What memory held of the tables and indexes when the load began, where `measure.cache` asked for a state."""

    asked: Literal["cold", "warm"]
    reached: bool | None = Field(description="None: it could not be verified.")
    evidence: str = Field(description="In a sentence, what was counted.")
    relation_bytes: int = Field(description="Of all tables and indexes.")
    resident_bytes: int | None = Field(
        default=None, description="Of these in the page cache, by mincore(2); None where it was not asked."
    )
    read_bytes_by_pass: tuple[int, ...] = Field(
        default=(),
        description="Read by each pass that warmed it: from the devices, or, of an external server, from outside of shared buffers.",
    )


class WarmupEnd(Frozen):
    """How a warm-up with `measure.warmup_max` ended."""

    reason: Literal["steady", "cap"] = Field(
        description="steady: throughput was, by the rule for the measured phase; cap: it was not when warmup_max was over."
    )
    seen: str | None = Field(default=None, description="What was not steady at the cap, for people.")


class Restored(Frozen):
    """How the server's files were put back to what they were after loading, before a trial."""

    how: dict[str, Literal["reflink", "copy", "snapshot"]] = Field(
        description="By what is stored there: data, WAL, tablespace NAME."
    )
    duration_s: float = Field(ge=0, description="With writing it back to the storages; the server was stopped.")


class Trial(Frozen):
    """One measured run of one variant. Its series, histograms, samples and events are tables next to this file."""

    schema_version: int = TRIAL_VERSION
    number: int
    block: int
    variant: str
    status: Literal["complete", "failed"]
    failure: str | None = Field(default=None, description="Why it failed, for people.")
    excluded: str | None = Field(default=None, description="The rule by which it is left out of the statistics.")
    started_unix_ns: int
    connect_ns: int = 0
    warmup_ns: int = Field(default=0, description="How long the warm-up took.")
    warmup_end: WarmupEnd | None = Field(default=None, description="None of a warm-up of fixed length.")
    measured_ns: int = 0
    totals: Totals | None = None
    measured: Totals | None = None
    server_transactions: int | None = Field(
        default=None,
        description="Transactions of the server that clients saw end in the whole load, committed or rolled back: a script may be "
        "several, or none. None of drivers.",
    )
    tps: float | None = Field(
        default=None, ge=0, description="Transactions done in the measured phase, per second of it."
    )
    scripts: tuple[ScriptTotals, ...] = Field(
        default=(), description="The outcomes of each type of transaction; empty in a trial that was not completed."
    )
    engine: EngineCost | None = None
    observer_cpu_ns: int | None = Field(
        default=None, description="CPU time of the observation during the load, its queries in the server included."
    )
    observer_ns: int | None = Field(default=None, description="How long it was observed.")
    errors: tuple[LoadError, ...] = ()
    checks: tuple[Check, ...] = ()
    devices: tuple[DeviceIo, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cache: CacheState | None = Field(default=None, description="None where measure.cache is as-is.")
    restored: Restored | None = Field(default=None, description="None where it began with what earlier trials left.")
    network: TrialNetwork | None = Field(default=None, description="None where no network is emulated.")
    outage: Outage | None = Field(default=None, description="None of a trial without faults of its servers.")
    writes: WriteFacts | None = Field(
        default=None,
        description="What its load wrote to, and the durability settings its commits had. None: it failed before.",
    )
    flashbacks: tuple[Flashback, ...] = Field(
        default=(), description="The snapshots that its actions took, and what going back to them restored."
    )
    fleet: FleetTrial | None = Field(
        default=None, description="How each machine of a fleet drove the load; None where this machine did."
    )
    replay: ReplayCounts | None = Field(default=None, description="None of a load that replays no recording.")


SampleKey = tuple[str, str, str]
"""What a sample is of: (source, object, metric)."""


_OF_MACHINE = "@"


def source_on(source: str, machine: str) -> str:
    """Return what a source is called of another machine than that of the primary: of a host by its name, of the one that the run was
    started on by an empty one."""
    return f"{source}{_OF_MACHINE}{machine}"


def machine_of(source: str) -> tuple[str, str | None]:
    """Return a source, and the machine that it was read of as `source_on` has it; None for that of the primary."""
    name, mark, machine = source.partition(_OF_MACHINE)
    return name, machine if mark else None


class Sample(NamedTuple):
    """One observed value; a row of observe/<source>.parquet.

    `t_ns` counts from the start of the load. Counters are kept as read (cumulative); readers make
    rates of them. `object` names what the metric is of: a device, a process group, a wait event. `source` as `source_on` has it where it
    is of another machine than that of the primary.
    """

    t_ns: int
    source: str
    object: str
    metric: str
    value: float


class Points(NamedTuple):
    """The samples of one metric of one object, in order of time: arrays of equal length, of `t_ns` and `value`."""

    t_ns: "NDArray[np.int64]"
    values: "NDArray[np.float64]"


Samples = Mapping[SampleKey, Points]
"""The samples of a trial by what they are of."""
