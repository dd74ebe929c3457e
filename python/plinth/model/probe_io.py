"""Options and results of the I/O probe, measured by fio."""

from typing import Literal, get_args

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.choices import IoShape
from plinth.model.facts import StorageFacts

IO_PROBE_VERSION = 1
IoMoment = Literal["empty", "loaded", "measured"]
IoProbeKind = Literal["shapes", "grid", "job file"]
IO_MOMENTS: tuple[IoMoment, ...] = get_args(IoMoment)


class IoJob(Frozen):
    """One job of fio on the probe's own file."""

    name: str
    shape: IoShape | Literal["grid", "job_file"] = Field(description="What it belongs to.")
    title: str = Field(description="What of PostgreSQL it is like, or of which study.")
    parameters: dict[str, str] = Field(description="fio's, but for the file and for how results are reported.")
    block_bytes: int | None = Field(default=None, description="None where there is no one block size.")
    depth: int | None = Field(default=None, description="Requests under way of one thread; None if it is a user's job.")
    target: Literal["file", "emptied_file", "device"] = Field(
        default="file",
        description="The probe's file as it is; emptied before, so that the file system has to allocate what is written, as "
        "dd does it; or the device below the place, which is only read.",
    )
    group: int | None = Field(
        default=None,
        description="Jobs of the same number run at the same time, each on a file of its own; None if it runs alone.",
    )
    position: float | None = Field(
        default=None, description="Where it begins, as a share of the file's or the device's length."
    )


class IoSide(Frozen):
    """Reads, writes, or both, of one job and all its clones. A latency is from submission to completion."""

    ios: int
    iops: float
    bytes_per_s: float
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    percentiles_ns: dict[str, int] = Field(description="By percentile, as fio's histogram reports them.")
    completion_percentiles_ns: dict[str, int] = Field(
        default_factory=dict,
        description="Without the time that submission takes: fio's clat, which many studies publish. Empty if it was not timed.",
    )
    latency_unavailable: str | None = Field(default=None, description="Why it has no latencies.")


class IoSyncs(Frozen):
    """The calls of fsync, fdatasync or sync_file_range of one job."""

    calls: int | None = Field(description="None if they were not timed, without which fio counts fsync only.")
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    percentiles_ns: dict[str, int]
    latency_unavailable: str | None = Field(default=None, description="Why it has no latencies.")


class IoResult(Frozen):
    """A job, with what it did or the reason why it did nothing."""

    job: IoJob
    duration_s: float | None = None
    read: IoSide | None = None
    write: IoSide | None = None
    mixed: IoSide | None = Field(default=None, description="Reads and writes as one too, for unified_rw_reporting.")
    syncs: IoSyncs | None = None
    device: str | None = Field(
        default=None, description="Kernel name of the device that was read past the file system."
    )
    unavailable: str | None = Field(default=None, description='Shown as "n/a: why".')


class IoProbe(Frozen):
    """What the I/O probe found at one place."""

    schema_version: int = IO_PROBE_VERSION
    path: str
    facts: StorageFacts
    fio_version: str
    file_bytes: int = Field(description="Of each file, where jobs that run at the same time have one each.")
    duration_s: float = Field(description="For which each job runs, unless it finishes earlier.")
    kind: IoProbeKind
    results: tuple[IoResult, ...]
    notes: tuple[str, ...] = Field(default=(), description="What the place means for what was measured.")
    gaps: tuple[Gap, ...] = ()


class StorageIo(Frozen):
    """What the I/O probe of a run found on one storage at one moment."""

    schema_version: int = IO_PROBE_VERSION
    storage: str
    moment: IoMoment = Field(
        description="empty: before anything was put there; loaded: with all datasets; measured: after the last trial."
    )
    probe: IoProbe | None
    unavailable: str | None = Field(default=None, description='Shown as "n/a: why".')
