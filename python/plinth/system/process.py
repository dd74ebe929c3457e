"""Processes told apart for certain: a pid alone may have passed on to somebody else."""

import os
import select
import subprocess
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Self

_ROOT = 0


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


class Child:
    """A process that we started and left running.

    The kernel is asked, not Popen: the lock of Popen.poll and Popen.wait stays held for ever when a signal's handler
    raises within them, and whoever waits next waits in vain.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its pid, which stays its own until `wait` has returned."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether it has ended; it need not have been waited for."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # another thread has just waited for it
            return True

    def wait(self) -> int:
        """Wait for its end and let go of it. Returns its exit code, or minus the number of the signal that ended it."""
        if self._process.returncode is None:
            end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            assert end is not None  # only WNOHANG gives none
            # Known before it is let go of: whatever is raised in between, the next to wait has the answer.
            self._process.returncode = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
            os.waitpid(self.pid, 0)
        return self._process.returncode


def started_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (proc_pid_stat(5), field 22); None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets, which may hold anything.
    return int(stat.rpartition(")")[2].split()[19])


def arguments(process: Path) -> list[str]:
    """The command line of a process of ours or root's, given as /proc/PID; nothing of others, or of one that has ended.

    Anybody may start a program with any arguments: by them alone no process is known to be ours.
    """
    try:
        if process.stat().st_uid not in (os.geteuid(), _ROOT):
            return []
        return (process / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


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
