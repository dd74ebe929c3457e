"""Samples /proc/diskstats, including discards and flushes."""

from collections.abc import Sequence
from pathlib import Path

from plinth.observe.proc import ProcFile
from plinth.observe.source import Reading, Readout
from plinth.system.diskstats import BEFORE_FLUSHES, FIELDS, flushes_uncounted


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
        """Return the counters of /proc/diskstats."""
        if not self._names:
            return Readout([], {"device": "this host has no block device"})
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
                fields = fields[:BEFORE_FLUSHES]
            if absent := [metric for metric, _ in FIELDS[len(fields) :]]:
                reason = self._uncounted.get(name, "this kernel does not count them")
                missing[f"{', '.join(absent)} of {name}"] = reason
            readings += [
                Reading(name, metric, int(value) * factor)
                for (metric, factor), value in zip(FIELDS, fields, strict=False)
            ]
        return Readout(readings, missing)


def real_devices() -> tuple[str, ...]:
    """Return whole block devices backed by hardware or a hypervisor."""
    return tuple(sorted(path.name for path in Path("/sys/block").glob("*") if "virtual" not in path.resolve().parts))
