"""Processors and memory that this process may use, limited by affinity and control groups."""

import os
import re
from pathlib import Path

from plinth.system.cgroup import cpu_limit, memory_limit


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
