"""Daemons of emulated disks: found by their own arguments, and ended with their mount.

A daemon that hangs blocks every process that uses its disk, umount and losetup included. So before anything that is stored on it is
undone it is killed: its connection to the kernel goes with it, and what waited for it gets an error.
"""

import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path

from plinth.model.errors import RunError
from plinth.storage.devices.fuse import abort
from plinth.system import daemon
from plinth.system.daemon import Daemon, find_daemons
from plinth.system.mounts import Mount, mounts
from plinth.system.process import all_exit, handles, kill_all, send
from plinth.system.runner import Runner
from plinth.system.undo import HungDaemon
from plinth.system.unmount import unmount_copies

SERVE_MODULE = "plinth.cli.serve_disk"
"""What such a process runs; `plinth disk serve` is the same for people."""
_END_TIMEOUT_S = 10.0
_UNMOUNT_TIMEOUT_S = 60.0  # of the file that is served: nothing of it is kept in memory


def daemons(mount: Path, label: str | None = None) -> list[Daemon]:
    """The processes that were started to serve a disk on `mount` (with `label`, if one is given)."""
    return find_daemons((SERVE_MODULE,), {"--mount": str(mount)} | ({} if label is None else {"--label": label}))


def abort_hung(mount: Path, label: str) -> None:
    """Kill the daemon of a disk of ours that is there but does not answer, so that nothing waits for it any longer."""
    for found in daemons(mount, label):
        if not found.answers():
            kill_daemon(mount, label)


def find_hung(mount: Path, label: str) -> HungDaemon | None:
    """The daemon of a disk of ours that did not answer in time; None when there is none."""
    hanging = [found.pid for found in daemons(mount, label) if found.hangs()]
    if not hanging:
        return None
    return HungDaemon(
        f"the daemon of the emulated disk on {mount} (pid {hanging[0]}) did not answer within {daemon.ANSWER_TIMEOUT_S:g} s "
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
        return [found.pid for found in daemons(mount, label)]

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
