"""Options and results of the base backup probe: how fast pg_basebackup takes and stores a server's files."""

from statistics import median
from typing import Annotated

from pydantic import AfterValidator, Field

from plinth.model.base import Frozen, Gap
from plinth.model.facts import StorageFacts
from plinth.model.units import BytesPerSecond, SizeBytes

BACKUP_PROBE_VERSION = 1
NO_COMPRESSION = "none"
_LEAST_RATE, _MOST_RATE = 32 * 1024, 1024**3
_KIBIBYTE = 1024


def _rate(value: int) -> int:
    if not _LEAST_RATE <= value <= _MOST_RATE:
        raise ValueError(f"got {value} bytes/s; pg_basebackup takes 32 KiB/s to 1 GiB/s")
    return value


class BackupOptions(Frozen):
    """What is measured."""

    size_bytes: SizeBytes = Field(
        default=2**30, ge=2**24, description="About the size of the table that is backed up; at least 16 MiB."
    )
    repeats: int = Field(default=3, ge=1, le=1000, description="Backups of each kind.")
    rate_bytes_per_s: Annotated[BytesPerSecond, AfterValidator(_rate)] | None = Field(
        default=None, description="The most that the server sends (pg_basebackup --max-rate). None: no limit."
    )
    compressions: tuple[str, ...] = Field(
        default=(NO_COMPRESSION,),
        min_length=1,
        description='"none" is a copy of the files; others are tar files, by pg_basebackup --compress.',
    )
    version: int = Field(default=18, description="Major version of the server.")

    @property
    def max_rate(self) -> str | None:
        """The argument of pg_basebackup --max-rate."""
        return None if self.rate_bytes_per_s is None else f"{self.rate_bytes_per_s // _KIBIBYTE}k"


class BackupRun(Frozen):
    """One base backup."""

    duration_s: float = Field(description="Of pg_basebackup, with its checkpoint and its fsync of all files.")
    stored_bytes: int = Field(description="The size of all files that it wrote.")
    walsender_cpu_s: float = Field(
        ge=0,
        description="CPU time of the server's walsenders, which read the files and send them; compression by the server included.",
    )
    client_cpu_s: float = Field(ge=0, description="CPU time of pg_basebackup, compression by it included.")


class BackupResult(Frozen):
    """The backups of one kind."""

    compression: str
    source_bytes: int = Field(description="The size of the files that are backed up, WAL apart.")
    runs: tuple[BackupRun, ...] = ()
    unavailable: str | None = Field(default=None, description='Shown as "n/a: why".')

    @property
    def rates(self) -> tuple[float, ...]:
        """Bytes of the server's files per second, of each backup, regardless of how much was stored."""
        return tuple(self.source_bytes / run.duration_s for run in self.runs)

    @property
    def bytes_per_s(self) -> float | None:
        """The median; None without a backup."""
        return median(self.rates) if self.runs else None

    @property
    def duration_s(self) -> float | None:
        """The median; None without a backup."""
        return median(run.duration_s for run in self.runs) if self.runs else None

    @property
    def stored_bytes(self) -> float | None:
        """The median; None without a backup."""
        return median(run.stored_bytes for run in self.runs) if self.runs else None

    @property
    def walsender_cores(self) -> float | None:
        """How much of one core the walsenders used, as a fraction: the median; None without a backup."""
        return median(run.walsender_cpu_s / run.duration_s for run in self.runs) if self.runs else None

    @property
    def client_cores(self) -> float | None:
        """How much of one core pg_basebackup used, as a fraction: the median; None without a backup."""
        return median(run.client_cpu_s / run.duration_s for run in self.runs) if self.runs else None


class BackupProbe(Frozen):
    """What the base backup probe found."""

    schema_version: int = BACKUP_PROBE_VERSION
    path: str = Field(description="The directory that the server was in.")
    to: str = Field(description="The directory that the backups were written to.")
    facts: StorageFacts
    facts_to: StorageFacts
    server_version: str
    options: BackupOptions
    is_cold: bool = Field(description="Whether the page cache was dropped before each backup.")
    results: tuple[BackupResult, ...]
    gaps: tuple[Gap, ...] = ()
