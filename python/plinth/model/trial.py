"""A trial as kept in the bundle: trial.json, and the samples taken beside the load."""

from typing import Literal, NamedTuple

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.load import EngineCost, LoadError, Totals

TRIAL_VERSION = 1


class Check(Frozen):
    """Something that must hold of a trial, such as the engine's total against the database's own."""

    name: str
    expected: str
    got: str
    ok: bool


class Event(Frozen):
    """Something that happened in a trial, such as a checkpoint; one line of events.jsonl."""

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


class Trial(Frozen):
    """One measured run of one variant. Its series, histograms, samples and events are tables beside this file."""

    schema_version: int = TRIAL_VERSION
    number: int
    block: int
    variant: str
    status: Literal["complete", "failed"]
    failure: str | None = Field(default=None, description="Why it failed, for people.")
    excluded: str | None = Field(default=None, description="The rule by which it is left out of the statistics.")
    started_unix_ns: int
    connect_ns: int = 0
    warmup_ns: int = 0
    measured_ns: int = 0
    totals: Totals | None = None
    measured: Totals | None = None
    tps: float | None = Field(
        default=None, ge=0, description="Transactions done in the measured phase, per second of it."
    )
    engine: EngineCost | None = None
    observer_cpu_ns: int | None = Field(
        default=None, description="CPU time of the observation beside the load, its queries in the server included."
    )
    observer_ns: int | None = Field(default=None, description="How long it was observed.")
    errors: tuple[LoadError, ...] = ()
    checks: tuple[Check, ...] = ()
    devices: tuple[DeviceIo, ...] = ()
    gaps: tuple[Gap, ...] = ()


class Sample(NamedTuple):
    """One observed value; a row of observe/<source>.parquet.

    `t_ns` counts from the start of the load. Counters are kept as read (cumulative); whoever reads makes
    rates of them. `object` names what the metric is of: a device, a process group, a wait event.
    """

    t_ns: int
    source: str
    object: str
    metric: str
    value: float
