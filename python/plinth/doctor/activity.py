"""Counters of processes, processors and disks since boot; two readings give a rate. See proc(5), admin-guide/iostats."""

import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STATE, _UTIME, _STIME, _PARENT = 0, 11, 12, 1  # after the command's name
_INIT = 1
_HIDDEN = "/proc shows this user its own processes only (hidepid)"
_STEAL = 7
_GUESTS = 8  # guest and guest_nice, which are within user and nice
_SECTOR_BYTES = 512
_READ_SECTORS, _WRITTEN_SECTORS, _IO_MS = 2, 6, 9  # after the device's name


@dataclass(frozen=True)
class ProcessUse:
    """A process, its parent and its CPU time. A zombie has ended, and its parent has not yet waited for it."""

    name: str
    parent: int
    cpu_s: float
    is_zombie: bool


@dataclass(frozen=True)
class DiskUse:
    """Counters of a block device: bytes transferred, and the time during which a request was in flight."""

    read_bytes: int
    written_bytes: int
    busy_s: float


@dataclass(frozen=True)
class Activity:
    """One reading. `*_unreadable` gives the reason when a source could not be read, else None.

    `processes_hidden` gives the reason when some processes are not visible to this user.
    """

    at_s: float
    processes: dict[int, ProcessUse]
    disks: dict[str, DiskUse]
    cpu_s: float
    steal_s: float | None
    processes_unreadable: str | None = None
    processes_hidden: str | None = None
    disks_unreadable: str | None = None
    cpu_unreadable: str | None = None


def read_activity(root: Path) -> Activity:
    """Read all counters now. A source that cannot be read is replaced by the reason."""
    at_s = monotonic()
    processes, unreadable, hidden = _processes(root)
    disks, disks_unreadable = _disks(root)
    cpu_s, steal_s, cpu_unreadable = _cpu(root)
    return Activity(at_s, processes, disks, cpu_s, steal_s, unreadable, hidden, disks_unreadable, cpu_unreadable)


def _processes(root: Path) -> tuple[dict[int, ProcessUse], str | None, str | None]:
    """Return the visible processes, why none could be read, and why some may be hidden."""
    found = {}
    try:
        pids = [int(entry.name) for entry in (root / "proc").iterdir() if entry.name.isdigit()]
    except OSError as error:
        return {}, f"/proc: {error.strerror}", None
    hidden = _HIDDEN if _INIT not in pids else None
    for pid in pids:
        try:
            stat = (root / "proc" / str(pid) / "stat").read_bytes()
        except PermissionError:
            hidden = _HIDDEN
            continue
        except OSError:  # it has ended in the meantime
            continue
        name = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
        fields = stat[stat.rindex(b")") + 2 :].split()
        cpu_s = (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_S
        found[pid] = ProcessUse(name, int(fields[_PARENT]), cpu_s, fields[_STATE] == b"Z")
    return found, None if found else "/proc shows no process", hidden


def _disks(root: Path) -> tuple[dict[str, DiskUse], str | None]:
    try:
        lines = (root / "proc/diskstats").read_text().splitlines()
        return {name: _disk(fields) for _, _, name, *fields in map(str.split, lines)}, None
    except OSError as error:
        return {}, f"/proc/diskstats: {error.strerror}"
    except (ValueError, IndexError) as error:
        return {}, f"/proc/diskstats: {error}"


def _disk(fields: list[str]) -> DiskUse:
    return DiskUse(
        int(fields[_READ_SECTORS]) * _SECTOR_BYTES,
        int(fields[_WRITTEN_SECTORS]) * _SECTOR_BYTES,
        int(fields[_IO_MS]) / 1000,
    )


def _cpu(root: Path) -> tuple[float, float | None, str | None]:
    """Return the CPU time of all processors in all modes, the stolen time, and why they could not be read."""
    try:
        first = (root / "proc/stat").read_text().split("\n", 1)[0].split()
        times = [int(field) / _TICKS_PER_S for field in first[1:]]
    except OSError as error:
        return 0, None, f"/proc/stat: {error.strerror}"
    except ValueError as error:
        return 0, None, f"/proc/stat: {error}"
    if first[:1] != ["cpu"] or len(times) <= _STEAL:
        return 0, None, "/proc/stat: the cpu line is missing or has no steal column"
    return sum(times[:_GUESTS]), times[_STEAL], None
