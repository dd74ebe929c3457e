"""/proc/diskstats: the counters of block devices, and which devices have their flushes counted."""

from pathlib import Path

SECTOR_BYTES = 512
"""/proc/diskstats counts sectors of 512 bytes, regardless of the device's sector size."""
_MS = 1e-3
# Fields after the name: kernel documentation, admin-guide/iostats. Discards came with Linux 4.18, flushes with 5.5.
FIELDS: tuple[tuple[str, float], ...] = (
    ("reads", 1),
    ("reads_merged", 1),
    ("read_bytes", SECTOR_BYTES),
    ("read_time_s", _MS),
    ("writes", 1),
    ("writes_merged", 1),
    ("write_bytes", SECTOR_BYTES),
    ("write_time_s", _MS),
    ("in_flight", 1),
    ("io_time_s", _MS),
    ("weighted_io_time_s", _MS),
    ("discards", 1),
    ("discards_merged", 1),
    ("discard_bytes", SECTOR_BYTES),
    ("discard_time_s", _MS),
    ("flushes", 1),
    ("flush_time_s", _MS),
)
BEFORE_FLUSHES = 15


def flushes_uncounted(name: str) -> str | None:
    """Return the reason if the kernel does not count flushes of this device, else None.

    Only the multi-queue layer counts flushes, and only for whole devices (blk_account_io_flush in block/blk-flush.c).
    """
    device = Path("/sys/class/block") / name
    if (device / "partition").exists():
        return "the kernel counts them for the whole device only"
    if device.exists() and not (device / "mq").exists():
        return "the kernel does not count them for a device without request queue (md, dm, zram, ...)"
    return None


def count_flushes(name: str) -> int | None:
    """Return the flushes of a device since it was created; None if the kernel does not count them."""
    if flushes_uncounted(name) is not None:
        return None
    metrics = [metric for metric, _ in FIELDS]
    for line in Path("/proc/diskstats").read_text().splitlines():
        _, _, device, *values = line.split()
        if device == name:
            return dict(zip(metrics, map(int, values), strict=False)).get("flushes")
    return None
