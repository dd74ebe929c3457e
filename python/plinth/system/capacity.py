"""What this process may use of the machine right now: the machine's, or what control groups leave of it."""

import os

from plinth.system.cgroup import cpu_limit


def processors() -> int:
    """Those that this process may run on, or the whole ones that its quota of CPU time makes; at least 1. Raises OSError."""
    allowed = len(os.sched_getaffinity(0))
    limit = cpu_limit()
    return allowed if limit is None else max(1, min(allowed, int(limit.cores)))
