"""Daemons of emulated disks: found by their own arguments, and ended with their mount.

A daemon that hangs blocks every process that uses its disk, umount and losetup included. So before anything that is stored on it is
undone it is killed: its connection to the kernel goes with it, and what waited for it gets an error.
"""

import contextlib
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import RunError
from plinth.storage.devices.fuse import abort
from plinth.system.ending import handles, kill_all, send
from plinth.system.mounts import Mount, mounts
from plinth.system.namespaces import unmount_copies
from plinth.system.process import all_exit, arguments
from plinth.system.runner import Runner
from plinth.system.undo import HungDaemon

_SERVE = ("disk", "serve")
ANSWER_TIMEOUT_S = 5.0
_END_TIMEOUT_S = 10.0
_UNMOUNT_TIMEOUT_S = 60.0  # of the file that is served: nothing of it is kept in memory


class Daemon(NamedTuple):
    """A process that serves a disk, and its control socket."""

    pid: int
    control: Path

    def answers(self) -> bool:
        """Whether it answers on its control socket."""
        try:
            return self._ask()
        except OSError:
            return False

    def hangs(self) -> bool:
        """Whether it was asked and did not answer. A daemon that just starts or ends cannot be asked: it does not
        count as hung."""
        try:
            self._ask()
        except (TimeoutError, BlockingIOError):  # EAGAIN when too many connections wait
            return True
        except OSError:
            return False
        return False

    def _ask(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(str(self.control))
            connection.sendall(b'{"command": "status"}\n')
            return bool(connection.recv(1))


def daemons(mount: Path, label: str | None = None) -> list[Daemon]:
    """The processes that were started to serve a disk on `mount` (with `label`, if one is given)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        words = arguments(process)
        if not all(word in words for word in _SERVE) or _after("--mount", words) != str(mount):
            continue
        control = _after("--control", words)
        if control is not None and label in (None, _after("--label", words)):
            found.append(Daemon(int(process.name), Path(control)))
    return found


def abort_hung(mount: Path, label: str) -> None:
    """Kill the daemon of a disk of ours that is there but does not answer, so that nothing waits for it any longer."""
    for daemon in daemons(mount, label):
        if not daemon.answers():
            kill_daemon(mount, label)


def find_hung(mount: Path, label: str) -> HungDaemon | None:
    """The daemon of a disk of ours that did not answer in time; None when there is none."""
    hanging = [daemon.pid for daemon in daemons(mount, label) if daemon.hangs()]
    if not hanging:
        return None
    return HungDaemon(
        f"the daemon of the emulated disk on {mount} (pid {hanging[0]}) did not answer within {ANSWER_TIMEOUT_S:g} s "
        "and was ended",
        lambda: kill_daemon(mount, label),
    )


def kill_daemon(mount: Path, label: str) -> None:
    """Kill the daemon of a disk of ours, so that processes that use the disk get errors from now on."""
    _end(mount, label, (signal.SIGKILL,))


def stop_daemon(mount: Path, label: str, runner: Runner) -> None:
    """Unmount the disk of ours on `mount` and see its daemon ended; nothing when neither is there."""
    abort_hung(mount, label)
    mounted = _ours(mount, label)
    for found in mounted:
        runner.run(("umount", found.point), timeout_s=_UNMOUNT_TIMEOUT_S)
    unmount_copies(lambda other: (other.source, other.point) == (label, str(mount)), runner)
    # An unmounted disk's daemon ends by itself. One that is only about to mount it does not, and is not waited for: it listens
    # before it mounts, and unmounts what it has mounted when it is asked to end.
    _end(mount, label, (None, signal.SIGTERM, signal.SIGKILL) if mounted else (signal.SIGTERM, signal.SIGKILL))
    if _ours(mount, label):
        raise RunError("still mounted after umount", where=str(mount))


def _end(mount: Path, label: str, ways: Sequence[signal.Signals | None]) -> None:
    """Wait for the daemons to end, after each signal in turn; the last one is repeated until none is left."""

    def pids() -> list[int]:
        return [daemon.pid for daemon in daemons(mount, label)]

    for how in ways:
        with handles(pids) as found:
            if not found:
                return
            for pidfd in found.values():
                if how is not None:
                    send(pidfd, how)
            if how == signal.SIGKILL:
                for connected in _ours(mount, label):
                    with contextlib.suppress(PermissionError):  # without the right to, the signal has to do
                        abort(connected)  # it may wait in the kernel for a disk of its own
            all_exit(list(found.values()), _END_TIMEOUT_S)
    if left := kill_all(pids, _END_TIMEOUT_S):
        raise RunError(
            f"the emulated disk's daemon could not be ended: pid {left[0]}",
            where=str(mount),
            hint="a process that hangs in the kernel ends when the disk below it answers again",
        )


def _ours(mount: Path, label: str) -> list[Mount]:
    return [
        found
        for found in mounts()
        if found.point == str(mount) and found.source == label and found.filesystem.partition(".")[0] == "fuse"
    ]


def _after(option: str, words: list[str]) -> str | None:
    return words[words.index(option) + 1] if option in words[:-1] else None
