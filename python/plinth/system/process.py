"""Processes told apart for certain: a pid alone may have passed on to somebody else."""

import os
import select
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Self


class ProcessMark(NamedTuple):
    """What names a process for good: its pid, when it started, and the boot that this happened in."""

    pid: int
    started_ticks: int
    boot_id: str

    @classmethod
    def ours(cls) -> Self:
        """The mark of this process."""
        return cls(os.getpid(), started_ticks(os.getpid()) or 0, boot_id())

    def is_alive(self) -> bool:
        """Whether that very process is still there."""
        return self.boot_id == boot_id() and started_ticks(self.pid) == self.started_ticks


def started_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc_pid_stat(5), field 22); None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets, which may hold anything.
    return int(stat.rpartition(")")[2].split()[19])


def boot_id() -> str:
    """The kernel's name of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def all_exit(pidfds: list[int], timeout_s: float) -> bool:
    """Wait until the processes of all `pidfds` (pidfd_open(2)) have ended; False when some have not in time."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    waiting = set(pidfds)
    deadline = monotonic() + timeout_s
    while waiting:
        remaining_s = deadline - monotonic()
        if remaining_s <= 0:
            return False
        for pidfd, _ in poll.poll(remaining_s * 1000):
            poll.unregister(pidfd)
            waiting.discard(pidfd)
    return True
