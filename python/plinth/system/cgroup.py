"""Processors and memory that this process may use: by its affinity and its control groups, version 1 or 2."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.system.mounts import mounts

_ROOT = Path("/")
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
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            if not (source := folder / limit).exists():
                continue
            text = source.read_text().strip()
            if text != "max" and int(text) < _UNLIMITED_BYTES:
                statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                left = int(text) - int((folder / usage).read_text()) + int(statistics[reclaimable])
                limits.append(MemoryLimit(int(text), max(0, left), str(source)))
    return min(limits, key=lambda limit: limit.available_bytes, default=None)


def _folders(controller: str, root: Path) -> Iterator[Path]:
    """Yield the directory of our group of a controller, and its ancestors that are mounted (cgroups(7))."""
    paths = {}
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    for mount in mounts(root):
        if mount.filesystem == "cgroup2":
            path = paths.get("")
        elif mount.filesystem == "cgroup" and controller in mount.super_options:
            path = paths.get(controller)
        else:
            continue
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
