"""Control groups, version 1 or 2 (cgroups(7)): the processors and memory that this process may use by them and by its affinity,
and groups that limit the memory of what is started in them, page cache included."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.model.units import format_size
from plinth.system.cancel import sleep
from plinth.system.failures import from_os_error
from plinth.system.mounts import Mount, mounts

_ROOT = Path("/")
_USUAL = Path("/sys/fs/cgroup")
_LIMIT_V1, _LIMIT_V2 = "memory.limit_in_bytes", "memory.max"
_PROCESSES = "cgroup.procs"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_EMPTY_TIMEOUT_S = 5.0
_LOOK_AGAIN_S = 0.05
_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as a number near 2^63, rounded to pages."""


class MemoryLimit(NamedTuple):
    """The tightest memory limit: its size, the free or reclaimable part, and the file it was read from."""

    limit_bytes: int
    available_bytes: int
    source: str


class CpuLimit(NamedTuple):
    """The tightest CPU quota, in cores, and the file it was read from."""

    cores: float
    source: str


class IoLimit(NamedTuple):
    """The tightest limit of one kind of I/O on a device, and the file it was read from."""

    device: str
    """Major and minor number, as "8:0"."""
    what: str
    """"bytes read", "bytes written", "reads" or "writes"."""
    per_s: int
    source: str


_IO_V2 = {"rbps": "bytes read", "wbps": "bytes written", "riops": "reads", "wiops": "writes"}
_IO_V1 = {
    "blkio.throttle.read_bps_device": "bytes read",
    "blkio.throttle.write_bps_device": "bytes written",
    "blkio.throttle.read_iops_device": "reads",
    "blkio.throttle.write_iops_device": "writes",
}


def io_limits(root: Path = _ROOT) -> list[IoLimit]:
    """Return the limits of I/O, by device and kind: of version 2 those of io.max, of version 1 those of blkio. Raises OSError."""
    tightest: dict[tuple[str, str], IoLimit] = {}
    for limit in _io_limits(root):
        known = tightest.get(limit[:2])
        if known is None or limit.per_s < known.per_s:
            tightest[limit[:2]] = limit
    return sorted(tightest.values())


def _io_limits(root: Path) -> Iterator[IoLimit]:
    for folder in _folders("blkio", root):
        if (v2 := folder / "io.max").exists():
            for line in v2.read_text().splitlines():
                device, *limits = line.split()
                for name, _, value in (one.partition("=") for one in limits):
                    if name in _IO_V2 and value != "max":
                        yield IoLimit(device, _IO_V2[name], int(value), str(v2))
        for name, what in _IO_V1.items():
            if (v1 := folder / name).exists():
                for device, value in map(str.split, v1.read_text().splitlines()):
                    yield IoLimit(device, what, int(value), str(v1))


def cpu_limit(root: Path = _ROOT) -> CpuLimit | None:
    """Return the CPU quota; None if there is none. Raises OSError."""
    limits = []
    for folder in _folders("cpu", root):
        if (v2 := folder / "cpu.max").exists():
            quota, period = v2.read_text().split()
            limits += [] if quota == "max" else [CpuLimit(int(quota) / int(period), str(v2))]
        elif (v1 := folder / "cpu.cfs_quota_us").exists():
            quota = v1.read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
            limits += [] if int(quota) < 0 else [CpuLimit(int(quota) / int(period), str(v1))]
    return min(limits, default=None)


def memory_limit(root: Path = _ROOT) -> MemoryLimit | None:
    """Return the memory limit with the least available memory; None if there is none. Raises OSError."""
    limits = []
    for folder in _folders("memory", root):
        for limit, usage, reclaimable in (
            (_LIMIT_V2, "memory.current", "inactive_file"),
            (_LIMIT_V1, "memory.usage_in_bytes", "total_inactive_file"),
        ):
            if not (source := folder / limit).exists():
                continue
            text = source.read_text().strip()
            if text != "max" and int(text) < _UNLIMITED_BYTES:
                statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                left = int(text) - int((folder / usage).read_text()) + int(statistics[reclaimable])
                limits.append(MemoryLimit(int(text), max(0, left), str(source)))
    return min(limits, key=lambda limit: limit.available_bytes, default=None)


def _mounted(controller: str, root: Path) -> Iterator[Mount]:
    """Yield the mounts of version 2, and of version 1 that of the controller."""
    for mount in mounts(root):
        if mount.filesystem == "cgroup2" or (mount.filesystem == "cgroup" and controller in mount.super_options):
            yield mount


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """Yield the directory of our group of a controller, and its ancestors that are mounted (cgroups(7))."""
    paths = {}
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    for mount in _mounted(controller, root):
        path = paths.get("" if mount.filesystem == "cgroup2" else controller)
        top = root / mount.point.lstrip("/")
        if path is not None:
            inside = Path(path).relative_to(mount.root) if Path(path).is_relative_to(mount.root) else Path()
            folder = top / inside
            yield from (group for group in (folder, *folder.parents) if group.is_relative_to(top))


def processors() -> int:
    """Return the number of processors that this process may run on, or whole cores of its CPU quota; at least 1. Raises OSError."""
    allowed = len(os.sched_getaffinity(0))
    limit = cpu_limit()
    return allowed if limit is None else max(1, min(allowed, int(limit.cores)))


def available_memory_bytes() -> int:
    """Return what can be allocated without swapping: MemAvailable (proc_meminfo(5)), or what a control group leaves. Raises OSError."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert found is not None, "every Linux since 3.14 has it"
    limit = memory_limit()
    available = int(found[1]) * 1024
    return available if limit is None else min(available, limit.available_bytes)


class MemoryGroup(NamedTuple):
    """A control group of ours, and the most memory that the processes in it, and the page cache of what they read and write, may use."""

    path: Path
    limit_bytes: int

    def make(self) -> None:
        """Make it, unless it is there, and read its limit back. What is in it gets no swap beyond that.

        Raises MissingCapability where there are no such groups, and RunError when the kernel took another limit.
        """
        folder = folder_of_memory_groups()
        is_v1 = (folder / _LIMIT_V1).exists()
        try:
            self.path.mkdir(exist_ok=True)
            (self.path / (_LIMIT_V1 if is_v1 else _LIMIT_V2)).write_text(str(self.limit_bytes))
            # Of version 1 it is of memory and swap together.
            swap = self.path / ("memory.memsw.limit_in_bytes" if is_v1 else "memory.swap.max")
            if swap.exists():
                swap.write_text(str(self.limit_bytes) if is_v1 else "0")
            taken = self._taken()
        except OSError as error:
            raise from_os_error(error, "make the control group", self.path) from error
        if abs(taken - self.limit_bytes) >= _PAGE_BYTES:
            raise RunError(
                f"the kernel took a limit of {format_size(taken)} instead of {format_size(self.limit_bytes)}",
                where=str(self.path),
            )

    def enter(self, pid: int) -> None:
        """Move a process into it, and with it all that it will start."""
        try:
            (self.path / _PROCESSES).write_text(str(pid))
        except OSError as error:
            raise from_os_error(error, "move a process into the control group", self.path) from error

    def limit_of(self, pid: int) -> int:
        """Return its limit as the kernel has it. Raises RunError when the process `pid` is not in it."""
        try:
            inside = str(pid) in (self.path / _PROCESSES).read_text().split()
            taken = self._taken()
        except OSError as error:
            raise from_os_error(error, "read the control group", self.path) from error
        if not inside:
            raise RunError(f"process {pid} is not in its control group: its memory has no limit", where=str(self.path))
        return taken

    def _taken(self) -> int:
        return next(
            int(limit.read_text()) for limit in map(self.path.joinpath, (_LIMIT_V1, _LIMIT_V2)) if limit.exists()
        )


def memory_group(name: str, limit_bytes: int) -> MemoryGroup:
    """Return the group of this name, which need not be there; of a machine without such groups, where it would be."""
    try:
        return MemoryGroup(folder_of_memory_groups() / name, limit_bytes)
    except MissingCapability:
        return MemoryGroup(_USUAL / name, limit_bytes)


def folder_of_memory_groups(root: Path = _ROOT) -> Path:
    """Return the folder in which groups with a memory limit can be made. Raises MissingCapability where this process cannot."""
    for mount in _mounted("memory", root):
        folder = root / mount.point.lstrip("/")
        if mount.filesystem == "cgroup2" and "memory" not in _given_to_children(folder):
            continue
        if not os.access(folder, os.W_OK):
            raise MissingCapability(
                "a memory limit needs the right to make control groups",
                where=str(folder),
                hint="run as root, where it is not mounted read-only; or leave server.memory out",
            )
        return folder
    raise MissingCapability(
        "a memory limit needs control groups with the memory controller",
        where=str(_USUAL),
        hint="version 1: mount its memory hierarchy; version 2: write +memory into cgroup.subtree_control; or leave server.memory out",
    )


def _given_to_children(folder: Path) -> list[str]:
    try:
        return (folder / "cgroup.subtree_control").read_text().split()
    except OSError:
        return []


def remove_group(path: Path, label: str) -> None:
    """Remove a group of ours, whose processes have ended; one that is gone is no error. What it had in the page cache stays there."""
    if not path.name.startswith(f"{label}-"):
        raise Refused(f"its name does not begin with our label, {label!r}", where=str(path))
    deadline = monotonic() + _EMPTY_TIMEOUT_S
    while True:
        try:
            return path.rmdir()
        except FileNotFoundError:
            return None
        except OSError as error:  # the kernel may still be about to end the last process
            if error.errno != errno.EBUSY or monotonic() > deadline:
                raise from_os_error(error, "remove the control group", path) from error
        sleep(_LOOK_AGAIN_S)
