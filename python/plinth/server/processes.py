"""The processes that serve a data directory, found through /proc, and how they are ended."""

import os
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, monotonic_ns

from plinth.model.errors import Refused, RunError
from plinth.server.shared_memory import remove_left_shared_memory
from plinth.system import cancel
from plinth.system.directory import LABEL_FILE, nearest_label
from plinth.system.process import STATE, all_exit, arguments, handles, kill_all, send, stat_fields
from plinth.system.regular_file import read_small_file
from plinth.system.runner import waits_to_become
from plinth.system.timeout import call_with_timeout

FAST = (signal.SIGINT, 60.0)
IMMEDIATE = (signal.SIGQUIT, 15.0)
KILL = (signal.SIGKILL, 15.0)
"""PostgreSQL's ways to shut down, and how many seconds each is given before the next."""

_POSTGRES = "postgres"
_LAST_TIMEOUT_S = 1.0
_LOOK_AGAIN_S = 0.001
_PID = re.compile(rb"-?[0-9]{1,10}")
_STOPPED = "TZX"
"""States of processes that do nothing: stopped, or ended."""


def serving(data_directory: Path) -> list[int]:
    """Find the postmaster of `data_directory` and its children, by pid, as far as they may be seen.

    A process counts when its program is called postgres and its working directory is the data directory,
    into which PostgreSQL changes before it does anything there; so does one that waits there to become it.
    """
    resolved = _real(data_directory)
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if _serves(int(process.name), resolved)]


def postmaster_pid(data_directory: Path) -> int | None:
    """Return the pid in postmaster.pid, if that process really serves `data_directory`; else None."""
    try:
        file = data_directory / "postmaster.pid"
        first_line = call_with_timeout(lambda: read_small_file(file), file).split(b"\n", 1)[0]
    except OSError:
        return None
    pid = abs(int(first_line)) if _PID.fullmatch(first_line) else 0
    return pid if pid and _serves(pid, _real(data_directory)) else None


def end_server(data_directory: Path, ways: Sequence[tuple[signal.Signals, float]] = (FAST, IMMEDIATE, KILL)) -> None:
    """End every process that serves `data_directory`, wait until they are gone, and remove what shared memory is left.

    The postmaster is asked, and takes its children with it. Children that have lost their postmaster are ended
    straight away. Nothing happens when there is no process and no memory.
    """
    _end_processes(data_directory, ways)
    remove_left_shared_memory(data_directory)


def crash_processes(data_directory: Path, just_before: Callable[[], object]) -> int:
    """Send SIGKILL to every process that serves `data_directory`, all at once; returns CLOCK_MONOTONIC in ns just before.

    `just_before` is called when all of them are known, which takes some time.
    """
    with handles(lambda: serving(data_directory)) as processes:
        just_before()
        at_ns = monotonic_ns()
        for pidfd in processes.values():
            send(pidfd, signal.SIGKILL)
    return at_ns


def suspend_processes(data_directory: Path) -> int:
    """Send SIGSTOP to the postmaster, which starts others, and then to every process that serves `data_directory`; returns CLOCK_MONOTONIC
    in ns just before. Raises RunError when one does not stop, as one that hangs in the kernel."""
    postmaster = postmaster_pid(data_directory)
    at_ns = monotonic_ns()
    deadline = monotonic() + _LAST_TIMEOUT_S
    try:
        while True:
            with handles(lambda: serving(data_directory)) as processes:
                for pid in sorted(processes, key=lambda pid: pid != postmaster):
                    send(processes[pid], signal.SIGSTOP)
            if not (running := [pid for pid in serving(data_directory) if not _is_stopped(pid)]):
                return at_ns
            if monotonic() > deadline:
                raise RunError(f"a PostgreSQL server could not be paused: {_pids(running)}", where=str(data_directory))
            cancel.sleep(_LOOK_AGAIN_S)
    except BaseException:
        continue_processes(data_directory)
        raise


def continue_processes(data_directory: Path) -> None:
    """Send SIGCONT to every process that serves `data_directory`, to no effect on one that runs."""
    with handles(lambda: serving(data_directory)) as processes:
        for pidfd in processes.values():
            send(pidfd, signal.SIGCONT)


def kill_processes(data_directory: Path) -> None:
    """Send SIGKILL to every process that serves `data_directory`, which is not read: its disk may hang.

    Raises RunError when some hang in the kernel. What shared memory is left stays.
    """
    _end_processes(data_directory, (KILL,))


def _end_processes(data_directory: Path, ways: Sequence[tuple[signal.Signals, float]]) -> None:
    for how, timeout_s in ways:
        with handles(lambda: serving(data_directory)) as processes:
            if not processes:
                return
            targets, sent = _targets(data_directory, list(processes), how)
            for pid in targets:
                send(processes[pid], sent)
            for pidfd in processes.values():
                send(pidfd, signal.SIGCONT)  # one that was paused takes no other signal but SIGKILL
            all_exit(list(processes.values()), timeout_s)
    left = serving(data_directory)
    if left and ways[-1][0] == signal.SIGKILL:  # processes that were started since
        left = kill_all(lambda: serving(data_directory), _LAST_TIMEOUT_S)
    if left:
        raise RunError(
            f"a PostgreSQL server could not be ended: {_pids(left)}",
            where=str(data_directory),
            hint="a process that hangs in the kernel ends when its disk answers again",
        )


def _targets(data_directory: Path, pids: list[int], how: signal.Signals) -> tuple[list[int], signal.Signals]:
    """Return the processes that get each signal; SIGKILL is sent to all, without reading the data directory."""
    if how == signal.SIGKILL:
        return pids, how
    postmaster = postmaster_pid(data_directory)
    if postmaster in pids:
        return [postmaster], how
    return pids, signal.SIGQUIT if how == signal.SIGINT else how


def stop_labelled_server(data_directory: Path, label: str) -> None:
    """Undo of a server's start: end it if its data directory, or the nearest labelled folder around it, has `label`."""
    found = nearest_label(data_directory)
    if found == label:
        end_server(data_directory)
    elif running := serving(data_directory):
        raise Refused(
            f"a PostgreSQL server runs there ({_pids(running)}), but its directory has "
            + (f"the label {found!r}, not ours, {label!r}" if found else f"no label of ours ({LABEL_FILE})"),
            where=str(data_directory),
            hint=f"stop it yourself if it is not wanted: pg_ctl stop -D {data_directory}",
        )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike Path.resolve, never fails


def _serves(pid: int, data_directory: Path) -> bool:
    try:
        folder = str(Path(f"/proc/{pid}/cwd").readlink()).removesuffix(" (deleted)")
        return folder == str(data_directory) and (
            _is_about_to(pid) or _program(pid) == _POSTGRES
        )  # in the order that it happens
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False  # gone, a zombie, or of another user


def _is_about_to(pid: int) -> bool:
    """Return whether it waits to become a server, or is just becoming one."""
    process = Path(f"/proc/{pid}")
    command = waits_to_become(arguments(process, process.stat().st_uid))
    return bool(command) and Path(command[0]).name == _POSTGRES


def _is_stopped(pid: int) -> bool:
    try:
        return stat_fields(Path(f"/proc/{pid}"))[STATE] in _STOPPED
    except (FileNotFoundError, ProcessLookupError):
        return True  # it has ended


def _program(pid: int) -> str:
    """Return the program of a process. A process that is just ending has no program any more, yet may still be attached to shared
    memory: the kernel takes the program first, then unmaps memory, then gives up the working directory. Its name
    stays."""
    try:
        return Path(str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")).name
    except FileNotFoundError:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n")


def _pids(pids: Sequence[int]) -> str:
    return ("pid " if len(pids) == 1 else "pids ") + ", ".join(map(str, pids))
