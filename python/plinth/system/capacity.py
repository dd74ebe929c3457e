"""Processors that this process may use, limited by affinity and control groups."""

import os

from plinth.system.cgroup import cpu_limit


def processors() -> int:
    """Return the number of processors that this process may run on, or whole cores of its CPU quota; at least 1. Raises OSError."""
    allowed = len(os.sched_getaffinity(0))
    limit = cpu_limit()
    return allowed if limit is None else max(1, min(allowed, int(limit.cores)))
