"""Identifies processes uniquely, since pids are reused, and ends them by pidfd."""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Self

from plinth.system import cancel

_ROOT = 0
STATE, SESSION, FLAGS, _THREADS, STARTED, _VSIZE = (field - 3 for field in (3, 6, 9, 20, 22, 23))
_ARG_START, _ARG_END, _ENV_END = 48 - 3, 49 - 3, 51 - 3
"""Fields of proc_pid_stat(5), counted from the third."""
ENDED = "ZX"
"""States of a process that has ended and was not yet waited for."""
_EXEC_TIMEOUT_S = 5.0
_EXEC_LOOK_AGAIN_S = 0.001


class ProcessMark(NamedTuple):
    """Identifies a process uniquely by pid, start time and boot id."""

    pid: int
    started_ticks: int
    boot_id: str

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the identity of this process."""
        return cls(os.getpid(), started_ticks(os.getpid()) or 0, boot_id())

    def is_alive(self) -> bool:
        """Return whether that process is alive. A zombie whose last thread has ended is not."""
        if self.boot_id != boot_id():
            return False
        try:
            fields = stat_fields(Path(f"/proc/{self.pid}"))
        except (FileNotFoundError, ProcessLookupError):
            return False
        is_zombie = fields[STATE] in ENDED and int(fields[_THREADS]) <= 1
        return int(fields[STARTED]) == self.started_ticks and not is_zombie


class Child:
    """A process that we started and left running.

    The kernel is asked, not Popen: the lock of Popen.poll and Popen.wait stays held forever when a signal's handler
    raises within them, and the next caller waits forever.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The pid, which is not reused before `wait` has returned."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Return whether the process has ended, even if it was not waited for."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # another thread has just waited for it
            return True

    def exit_code(self, timeout_s: float) -> int | None:
        """Return its exit code, as `wait` does, once it has ended; None if it has not within `timeout_s`."""
        if not self.has_ended():
            descriptor = os.pidfd_open(self.pid)
            try:
                if not all_exit([descriptor], timeout_s):
                    return None
            finally:
                os.close(descriptor)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the process. Return its exit code, or minus the number of the signal that killed it."""
        if self._process.returncode is None:
            end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            assert end is not None  # None only with WNOHANG
            # Store the result before the process is reaped: after an exception in between, the next call returns it.
            self._process.returncode = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
            os.waitpid(self.pid, 0)
        return self._process.returncode


def started_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot (proc_pid_stat(5), field 22); None if it does not exist."""
    try:
        return int(stat_fields(Path(f"/proc/{pid}"))[STARTED])
    except (FileNotFoundError, ProcessLookupError):
        return None


def arguments(process: Path, uid: int = _ROOT) -> list[str]:
    """Return the command line of a process of ours or of user `uid`, given as /proc/PID; nothing of others, or of one that ended.

    Anybody may start a program with any arguments: by them alone no process is known to be ours.
    """
    try:
        if process.stat().st_uid not in (os.geteuid(), uid):
            return []
        deadline = monotonic() + _EXEC_TIMEOUT_S
        while not (words := (process / "cmdline").read_text(errors="replace")):
            # In the middle of exec it has left its former arguments, and its new ones are not there yet.
            if _has_no_arguments(process) or monotonic() > deadline:
                return []
            cancel.sleep(_EXEC_LOOK_AGAIN_S)
    except (FileNotFoundError, ProcessLookupError):
        return []
    return words.rstrip("\0").split("\0")


def _has_no_arguments(process: Path) -> bool:
    """Return whether it will not have any either: it has no memory, as kernel threads and zombies, or has room for none in it.

    Only root can read that of a process of root's.
    """
    if os.geteuid() not in (_ROOT, process.stat().st_uid):
        return True
    # The kernel reads the fields one after the other without a lock, while exec sets them: the first may be older than the last.
    return all(_shows_no_arguments(stat_fields(process)) for _ in range(2))


def _shows_no_arguments(fields: list[str]) -> bool:
    is_set_up = int(fields[_ENV_END]) > 0
    return int(fields[_VSIZE]) == 0 or (is_set_up and int(fields[_ARG_START]) >= int(fields[_ARG_END]))


def stat_fields(process: Path) -> list[str]:
    """Return the fields of proc_pid_stat(5) from the third on. The second is the program's name in brackets, which may hold anything."""
    return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()


def boot_id() -> str:
    """Return the kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def all_exit(pidfds: list[int], timeout_s: float) -> bool:
    """Wait until the processes of all `pidfds` (pidfd_open(2)) have ended; return False on timeout."""
    waiting = set(pidfds)
    deadline = monotonic() + timeout_s
    while waiting:
        remaining_s = deadline - monotonic()
        if remaining_s <= 0:
            return False
        waiting.difference_update(cancel.poll(dict.fromkeys(waiting, select.POLLIN), remaining_s))
    return True


def wait_or_kill(children: Sequence[Child], timeout_s: float) -> None:
    """Wait for children that are about to end, and kill those that have not ended within `timeout_s`. Nothing cancels it."""
    with cancel.masked(), ExitStack() as stack:
        running = [child for child in children if not child.has_ended()]
        descriptors = [os.pidfd_open(child.pid) for child in running]
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        if not all_exit(descriptors, timeout_s):
            for descriptor in descriptors:
                with suppress(ProcessLookupError):  # it has ended
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)  # a stopped one takes no other
        for child in children:
            child.wait()


Find = Callable[[], Iterable[int]]
"""Finds the processes to kill; called repeatedly."""

_PF_EXITING = 0x4  # linux/sched.h
_SIGKILL_BIT = 1 << (signal.SIGKILL - 1)


@contextmanager
def handles(find: Find) -> Iterator[dict[int, int]]:
    """Yield pid -> pidfd (pidfd_open(2)) of what is found. Looked at again once opened: from then on the pid is nobody else's."""
    opened: dict[int, int] = {}
    with ExitStack() as stack:
        for pid in find():
            try:
                opened[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            stack.callback(os.close, opened[pid])
        still = set(find()) if opened else set[int]()
        yield {pid: pidfd for pid, pidfd in opened.items() if pid in still}


def send(pidfd: int, how: signal.Signals) -> None:
    """Signal a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, how)


def kill_all(find: Find, timeout_s: float) -> list[int]:
    """Send SIGKILL to all processes found, and search again until there are none; return those that remain."""
    deadline = monotonic() + timeout_s
    while left := list(find()):
        with handles(find) as found:
            for pidfd in found.values():
                send(pidfd, signal.SIGKILL)
            if not all_exit(list(found.values()), max(0.0, deadline - monotonic())) or monotonic() > deadline:
                return left
    return []


def await_dying(since: ProcessMark, timeout_s: float) -> None:
    """Wait until the processes that were killed together with `since` are gone, such as the command that it was just waiting for.

    What a process is killed with its parent for may hold a disk or a mount for a while. They are recognised by this: each leads a
    session, began after `since`, and is about to be killed or just ending.
    """
    if since.boot_id != boot_id():
        return

    def itself() -> list[int]:
        return [since.pid] if since.is_alive() and _is_dying(Path(f"/proc/{since.pid}")) else []

    def its_commands() -> list[int]:
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_dying(path, since.started_ticks)]

    for find in (itself, its_commands):  # when it has ended, all of them have been sent their signal
        with handles(find) as dying:
            all_exit(list(dying.values()), timeout_s)


def _is_dying(process: Path, leads_since_ticks: int | None = None) -> bool:
    """Return whether a process, given as /proc/PID, is about to end; with `leads_since_ticks`, only if it leads a session begun since."""
    try:
        fields = stat_fields(process)
        leads_since = int(fields[STARTED]) if fields[SESSION] == process.name else -1
        if leads_since_ticks is not None and leads_since < leads_since_ticks:
            return False
        is_exiting = bool(int(fields[FLAGS]) & _PF_EXITING) and fields[STATE] not in ENDED
        return is_exiting or _awaits_sigkill(process)
    except (FileNotFoundError, ProcessLookupError):
        return False


def _awaits_sigkill(process: Path) -> bool:
    lines = (process / "status").read_text(errors="replace").splitlines()
    pending = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(signals & _SIGKILL_BIT for signals in pending)
