"""The drive life that a run consumed: bytes written to the disks under its storages, and the wear that the drives
report."""

from pydantic import Field

from plinth.model.base import Frozen, Gap

WEAR_VERSION = 1


class SmartReading(Frozen):
    """The wear that a drive reports (SMART), and where it was read."""

    percentage_used: float | None = Field(
        description="Of the endurance that its maker rates it for; may be above 100. None where it does not report it."
    )
    lifetime_written_bytes: int | None = Field(description="Written to it in its life, where it counts that in bytes.")
    source: str = Field(description="The command, and the field or attribute that gives the percentage.")


class DiskWear(Frozen):
    """One disk, with hardware or a hypervisor behind it. What is built on it (partitions, arrays, loop) is counted here."""

    disk: str = Field(description="Kernel name, as in /proc/diskstats.")
    model: str | None
    storages: tuple[str, ...] = Field(description="The storages of the experiment that are built on it.")
    written_bytes: int = Field(description="By the kernel's counter, during the run, including writes of others.")
    before: SmartReading | None = None
    after: SmartReading | None = None
    gaps: tuple[Gap, ...] = ()


class RunWear(Frozen):
    """wear.json: what the run wrote to which disk. A run that was resumed counts on."""

    schema_version: int = WEAR_VERSION
    max_written_bytes: int | None = Field(description="measure.max_written; None without a budget.")
    disks: tuple[DiskWear, ...]
    gaps: tuple[Gap, ...] = Field(default=(), description="Storages whose disks could not be found or counted.")

    @property
    def written_bytes(self) -> int:
        """The bytes written to all disks together."""
        return sum(disk.written_bytes for disk in self.disks)
