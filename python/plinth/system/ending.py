"""Kills processes by pidfd, and searches again until none is left."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

from plinth.system.process import ENDED, FLAGS, SESSION, STARTED, STATE, ProcessMark, all_exit, boot_id, stat_fields

Find = Callable[[], Iterable[int]]
"""Finds the processes to kill; called repeatedly."""

_PF_EXITING = 0x4  # linux/sched.h
_SIGKILL_BIT = 1 << (signal.SIGKILL - 1)


@contextmanager
def handles(find: Find) -> Iterator[dict[int, int]]:
    """pid -> pidfd (pidfd_open(2)) of what is found. Looked at again once opened: from then on the pid is nobody else's."""
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
    session of its own, began after `since`, and is about to be killed or just ending.
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
