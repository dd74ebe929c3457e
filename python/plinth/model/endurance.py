"""How much drive life a run's workload consumes: bytes written per transaction and per day, by whom, what may be written to a drive in
its life, and how long one lasts.

What was written is of the measured phases.
"""

from typing import Literal

from pydantic import Field, model_validator

from plinth.model.base import Frozen, Gap
from plinth.model.figures import Estimate
from plinth.model.units import SizeBytes
from plinth.model.wear import DiskWear


class Rating(Frozen):
    """How much may be written to a drive in its life."""

    rated_bytes: int
    source: str = Field(description="How it was computed.")


class DriveSpec(Frozen):
    """What a drive is rated for: its maker's terabytes written, or what its cells withstand."""

    tbw_bytes: SizeBytes | None = Field(
        default=None,
        gt=0,
        alias="tbw",
        description="What its maker rates it for: terabytes written by the host.",
        examples=["600TB"],
    )
    pe_cycles: int | None = Field(
        default=None, gt=0, description="Times that each cell may be written, with capacity.", examples=[5000]
    )
    capacity_bytes: SizeBytes | None = Field(
        default=None, gt=0, alias="capacity", description="Of the drive, with pe_cycles.", examples=["300GB"]
    )
    waf: float = Field(
        default=1.0,
        ge=1,
        allow_inf_nan=False,
        description="Write amplification factor, with pe_cycles: bytes that the drive writes to its cells for each of the "
        "host's. 1 is the best case.",
    )

    @model_validator(mode="after")
    def _one_rating(self) -> "DriveSpec":
        cells = (self.pe_cycles, self.capacity_bytes)
        if self.tbw_bytes is not None and cells != (None, None):
            raise ValueError("give tbw, or pe_cycles with capacity, not both")
        if self.tbw_bytes is None and None in cells:
            raise ValueError("give tbw, or pe_cycles with capacity")
        if self.tbw_bytes is not None and self.waf != 1:
            raise ValueError("waf goes with pe_cycles and capacity; tbw is the host's bytes already")
        return self

    def rating(self) -> Rating:
        """Return the rating: P/E cycles x capacity is what the cells take; of that 1/WAF comes from the host (as JESD218 defines it)."""
        if self.tbw_bytes is not None:
            return Rating(rated_bytes=self.tbw_bytes, source=f"rated for {_terabytes(self.tbw_bytes)} written")
        if self.pe_cycles is None or self.capacity_bytes is None:
            raise AssertionError("a rating is one of the two, as was checked")
        rated_bytes = round(self.pe_cycles * self.capacity_bytes / self.waf)
        factor = f" / write amplification {self.waf:g}" if self.waf != 1 else ""
        cells = f"{self.pe_cycles:,} P/E cycles x {self.capacity_bytes / 1e9:,.0f} GB{factor}"
        return Rating(rated_bytes=rated_bytes, source=f"of {cells} = {_terabytes(rated_bytes)}")


def _terabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e12:,.0f} TB"


ENDURANCE_VERSION = 1
Flow = Literal["data", "wal", "wal_written", "full_page_images"]


class Written(Frozen):
    """What was written in the measured phase, for each transaction done and for each day at the rate of the account."""

    bytes_per_transaction: Estimate
    bytes_per_day: Estimate


class FlowWritten(Written):
    """The bytes of one kind that PostgreSQL itself wrote in the measured phases."""

    flow: Flow
    what: str = Field(description="For people: what is counted, and where.")


class StorageWritten(Written):
    """What the devices directly below a storage's file system wrote in the measured phases, next to what PostgreSQL wrote."""

    storages: tuple[str, ...] = Field(description="More than one where they share the same devices.")
    roles: tuple[str, ...] = Field(description="What of the cluster is stored on it: data, WAL, tablespace NAME.")
    devices: tuple[str, ...]
    amplification: Estimate | None = Field(
        description="Device bytes for each byte that PostgreSQL gave to what is stored on it; below 1 where pages were "
        "overwritten in the page cache before they were written out."
    )


class DeviceWritten(Written):
    """What one block device wrote in the measured phases, regardless of what is above or below it."""

    device: str = Field(description="Kernel name, as in /proc/diskstats.")
    roles: tuple[str, ...]
    uses: tuple[str, ...] = Field(description="What it is to a ZFS pool: data, log, cache, special; empty elsewhere.")
    life_years: Estimate | None = Field(description="Until the rated bytes are written; None without a rating.")
    server_share: Estimate | None = Field(
        default=None,
        description="The part of its bytes that PostgreSQL's own processes explain, by the kernel's count of their writes or "
        "PostgreSQL's own, whichever is more: above 1 where pages were overwritten in the page cache. None where neither is known.",
    )
    caveat: str | None = Field(
        default=None, description="For people, where it wrote much more than PostgreSQL's processes explain; else None."
    )


class VariantEndurance(Frozen):
    """The endurance figures of one variant. Estimates are over its counted trials."""

    id: str
    label: str
    tps: Estimate | None = Field(description="The rate by which bytes per day are computed.")
    flows: tuple[FlowWritten, ...]
    storages: tuple[StorageWritten, ...]
    devices: tuple[DeviceWritten, ...]
    total: Written | None = Field(
        default=None,
        description="All devices directly below the file systems of its storages together; None where one of them is not known.",
    )
    gaps: tuple[Gap, ...] = ()


class Endurance(Frozen):
    """The account of a bundle."""

    schema_version: int = ENDURANCE_VERSION
    run_id: str
    experiment: str
    rate: str = Field(description="At which rate a day's bytes are worked out: as measured, or the one that was given.")
    rating: Rating | None
    variants: tuple[VariantEndurance, ...]
    drives: tuple[DiskWear, ...] = Field(
        description="What the drives below reported about themselves (SMART) in the run."
    )
    gaps: tuple[Gap, ...] = ()
