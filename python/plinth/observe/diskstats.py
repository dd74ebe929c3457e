"""Samples /proc/diskstats, including discards and flushes."""

from collections.abc import Sequence
from pathlib import Path

from plinth.observe.proc import ProcFile
from plinth.observe.source import Reading, Readout

SECTOR_BYTES = 512
"""/proc/diskstats counts sectors of 512 bytes, whatever the device's sector size."""
_MS = 1e-3
# Fields after the name: kernel documentation, admin-guide/iostats. Discards came with Linux 4.18, flushes with 5.5.
_FIELDS: tuple[tuple[str, float], ...] = (
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
_BEFORE_FLUSHES = 15


class Devices:
    """Samples the given block devices, by kernel name, or by default all that are not virtual."""

    name = "device"
    sparse = False

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(dict.fromkeys(names)) or real_devices()
        self._named = {name.encode(): name for name in self._names}
        self._uncounted = {name: reason for name in self._names if (reason := flushes_uncounted(name))}
        self._diskstats = ProcFile("/proc/diskstats")

    def read(self) -> Readout:
        """Lines of /proc/diskstats."""
        if not self._names:
            return Readout([], {"device": "this host has no block device of its own"})
        lines: dict[str, list[bytes]] = {}
        for line in self._diskstats.read().splitlines():
            _, _, name, rest = line.split(None, 3)
            if (known := self._named.get(name)) is not None:  # a host may have a hundred loop devices
                lines[known] = rest.split()
        readings: list[Reading] = []
        missing: dict[str, str] = {}
        for name in self._names:
            if (fields := lines.get(name)) is None:
                missing[name] = "not in /proc/diskstats"
                continue
            if name in self._uncounted:
                fields = fields[:_BEFORE_FLUSHES]
            if absent := [metric for metric, _ in _FIELDS[len(fields) :]]:
                reason = self._uncounted.get(name, "this kernel does not count them")
                missing[f"{', '.join(absent)} of {name}"] = reason
            readings += [
                Reading(name, metric, int(value) * factor)
                for (metric, factor), value in zip(_FIELDS, fields, strict=False)
            ]
        return Readout(readings, missing)


def real_devices() -> tuple[str, ...]:
    """Return whole block devices backed by hardware or a hypervisor."""
    return tuple(sorted(path.name for path in Path("/sys/block").glob("*") if "virtual" not in path.resolve().parts))


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


class Flushes:
    """Reads the kernel's flush counter of a device."""

    def uncounted(self, device: str) -> str | None:
        """Return why the flushes of `device` are not counted; None if they are."""
        return flushes_uncounted(device)

    def count(self, device: str) -> int | None:
        """Return the flushes of `device` since it was created; None if unknown."""
        readings = Devices((device,)).read().readings
        return next((int(reading.value) for reading in readings if reading.metric == "flushes"), None)
