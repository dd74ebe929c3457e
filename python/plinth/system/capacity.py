"""What this process may use of the machine right now: the machine's, or what control groups leave of it."""

import os
import re
from pathlib import Path

from plinth.system.cgroup import cpu_limit, memory_limit

_MEMINFO = Path("/proc/meminfo")


def processors() -> int:
    """Those that this process may run on, or the whole ones that its quota of CPU time makes; at least 1. Raises OSError."""
    allowed = len(os.sched_getaffinity(0))
    limit = cpu_limit()
    return allowed if limit is None else max(1, min(allowed, int(limit.cores)))


def available_memory_bytes() -> int:
    """What can be taken without swapping. Raises OSError."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    assert found is not None, "Linux has told it since 3.14"
    limit = memory_limit()
    available = int(found[1]) * 1024
    return available if limit is None else min(available, limit.available_bytes)
