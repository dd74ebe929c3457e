"""Options and results of the fsync probe: how long a place takes to make a write durable."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.choices import (
    GROUPS,
    LARGEST_BLOCK_BYTES,
    METHODS,
    SMALLEST_BLOCK_BYTES,
    WAL_BLOCK_BYTES,
    WRITERS,
    Group,
    SyncMethod,
)
from plinth.model.facts import StorageFacts

PROBE_VERSION = 1
PERCENTILES = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)


class FsyncOptions(Frozen):
    """The selected cases. Block sizes and many writers go by fdatasync if it is among the methods, else by the
    first."""

    methods: tuple[SyncMethod, ...] = METHODS
    groups: tuple[Group, ...] = GROUPS
    writers: tuple[int, ...] = WRITERS
    direct: bool = Field(default=False, description="Cases beyond those of pg_test_fsync go past the page cache.")
    block_bytes: int = Field(
        default=WAL_BLOCK_BYTES,
        ge=SMALLEST_BLOCK_BYTES,
        le=LARGEST_BLOCK_BYTES,
        multiple_of=SMALLEST_BLOCK_BYTES,
        description="Length of one write, in the groups that are not about several lengths or writers.",
    )


class FsyncCase(Frozen):
    """One kind of operation: `writes` writes of `block_bytes`, made durable by `method`."""

    group: Group
    label: str = Field(description="What distinguishes it from the others of its group.")
    method: Literal[SyncMethod, "none"]
    direct: bool = Field(description="Past the page cache (O_DIRECT).")
    block_bytes: int
    writes: int
    place: Literal["beginning", "onward", "beyond_end"] = Field(
        description="Where it writes: always at the file's beginning, onward through 16 MiB, or behind the end."
    )
    descriptor: Literal["kept", "own", "another"] = Field(
        description="Which descriptor flushes: one that stays open, one opened for each operation, or another than wrote."
    )
    writers: int
    sharing: Literal["alone", "group", "each"] = Field(
        description="group: one flushes for all that wait, as PostgreSQL does; each: every writer flushes alone."
    )


class FsyncFigure(Frozen):
    """Latencies of one case, of all rounds together. An operation is what a writer waits for."""

    ops: int
    flushes: int = Field(description="Calls that made writes durable; fewer than operations where one served several.")
    elapsed_ns: int
    ops_per_s: float
    round_ops_per_s: tuple[float, ...] = Field(
        description="The same of each round: what this machine's noise does to it."
    )
    min_ns: int
    max_ns: int
    percentiles_ns: dict[str, int | None] = Field(
        description="By percentile, from the merged histogram; None where fewer than one operation lies beyond it."
    )
    buckets: tuple[tuple[int, int], ...] = Field(
        description="The HDR histogram: highest latency of each bucket, right to three digits, and its count."
    )

    @property
    def median_ns(self) -> int:
        """The median latency."""
        return self.percentiles_ns["50"] or self.max_ns


class FsyncResult(Frozen):
    """A case, with its figure or the reason why there is none."""

    case: FsyncCase
    figure: FsyncFigure | None = None
    unavailable: str | None = Field(default=None, description='Shown as "n/a: why".')
    failed: bool = Field(default=False, description="There is no figure because the storage gave an error.")
    device_flushes: int | None = Field(
        default=None, description="Flushes that the device counted meanwhile, of whomever; None where it counts none."
    )


class Plausibility(Frozen):
    """Whether flushes can have reached a medium that keeps them.

    plausible: no reason against it was found. suspicious: they did not, or a cache answered that is protected or
    lies. volatile: the place forgets at a power cut what was flushed. unknown: it cannot be determined from here.
    """

    verdict: Literal["plausible", "suspicious", "volatile", "unknown"]
    reasons: tuple[str, ...]


class FsyncProbe(Frozen):
    """What the fsync probe found at one place."""

    schema_version: int = PROBE_VERSION
    path: str
    facts: StorageFacts
    flush_device: str | None = Field(description="Whose flushes were counted: the topmost device that counts them.")
    duration_s: float = Field(description="For which each case was measured, of all rounds together.")
    rounds: int
    results: tuple[FsyncResult, ...]
    plausibility: Plausibility
    notes: tuple[str, ...] = Field(default=(), description="What the place means for what was measured.")
    gaps: tuple[Gap, ...] = Field(
        default=(), description="Of the probe; what is not known of the place is in its facts."
    )

    def of(self, group: Group) -> tuple[FsyncResult, ...]:
        """Return the results of one group."""
        return tuple(result for result in self.results if result.case.group == group)
