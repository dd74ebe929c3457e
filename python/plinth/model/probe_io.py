"""What the I/O probe was asked, and what fio measured."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.facts import StorageFacts

IO_PROBE_VERSION = 1


class IoJob(Frozen):
    """One job of fio on the probe's own file."""

    name: str
    title: str = Field(description="What of PostgreSQL it is like, or of which study.")
    parameters: dict[str, str] = Field(description="fio's, but for the file and for how results are told.")
    block_bytes: int | None = Field(default=None, description="None where there is no one block size.")
    depth: int | None = Field(default=None, description="Requests under way of one thread; None if it is a user's job.")


class IoSide(Frozen):
    """Reads, or writes, of one job. A latency is from submission to completion."""

    ios: int
    iops: float
    bytes_per_s: float
    min_ns: int
    mean_ns: float
    max_ns: int
    percentiles_ns: dict[str, int] = Field(description="By percentile, as fio's histogram tells them.")


class IoSyncs(Frozen):
    """The calls of fsync, fdatasync or sync_file_range of one job."""

    calls: int
    min_ns: int
    mean_ns: float
    max_ns: int
    percentiles_ns: dict[str, int]


class IoResult(Frozen):
    """A job, with what it did or the reason why it did nothing."""

    job: IoJob
    duration_s: float | None = None
    read: IoSide | None = None
    write: IoSide | None = None
    syncs: IoSyncs | None = None
    unavailable: str | None = Field(default=None, description='Shown as "n/a: why".')


class IoProbe(Frozen):
    """What the I/O probe found at one place."""

    schema_version: int = IO_PROBE_VERSION
    path: str
    facts: StorageFacts
    fio_version: str
    file_bytes: int
    duration_s: float = Field(description="For which each job runs, unless it comes to its end before.")
    kind: Literal["shapes", "grid", "job file"]
    results: tuple[IoResult, ...]
    notes: tuple[str, ...] = Field(default=(), description="What the place means for what was measured.")
    gaps: tuple[Gap, ...] = ()
