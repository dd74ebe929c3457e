"""Daemons of emulated disks: started as a step, found by their own arguments, and ended with their mount.

A daemon that hangs blocks every process that uses its disk, including umount and losetup. So it is killed before anything that
is stored on it is undone: its connection to the kernel is closed, and what waited for it gets an error.
"""

import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from plinth.model.disk import DiskConfig, DiskProfile
from plinth.model.errors import RunError
from plinth.model.step import Step, Undo
from plinth.model.units import format_size
from plinth.storage.actions import Action
from plinth.storage.devices.disk_process import DISK_FILE as DISK_FILE
from plinth.storage.devices.fuse import abort
from plinth.system import daemon
from plinth.system.daemon import Daemon, find_daemons, start_daemon
from plinth.system.log_file import LogFile
from plinth.system.mounts import Mount, mounts_at
from plinth.system.process import all_exit, handles, kill_all, send
from plinth.system.runner import Runner
from plinth.system.undo import HungDaemon
from plinth.system.unmount import unmount_copies

SERVE_MODULE = "plinth.cli.serve_disk"
"""What such a process runs; `plinth disk serve` is the same for people."""
_END_TIMEOUT_S = 10.0
_UNMOUNT_TIMEOUT_S = 60.0  # of the file that is served: nothing of it is kept in memory


def daemons(mount: Path, label: str | None = None) -> list[Daemon]:
    """Return the processes that were started to serve a disk on `mount` (with `label`, if one is given)."""
    return find_daemons((SERVE_MODULE,), {"--mount": str(mount)} | ({} if label is None else {"--label": label}))


def abort_hung(mount: Path, label: str) -> None:
    """Kill the daemon of a disk of ours that is there but does not answer, so that nothing waits for it any longer."""
    for found in daemons(mount, label):
        if not found.answers():
            kill_daemon(mount, label)


def find_hung(mount: Path, label: str) -> HungDaemon | None:
    """Return the daemon of a disk of ours that did not answer in time; None when there is none."""
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
    # An unmounted disk's daemon ends without a signal. One that has yet to mount it does not, and is not waited for: it listens
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
                        abort(connected)  # it may wait in the kernel for its own disk
            all_exit(list(found.values()), _END_TIMEOUT_S)
    if left := kill_all(pids, _END_TIMEOUT_S):
        raise RunError(
            f"the emulated disk's daemon could not be ended: pid {left[0]}",
            where=str(mount),
            hint="a process that hangs in the kernel ends when the disk below it answers again",
        )


def _ours(mount: Path, label: str) -> list[Mount]:
    return [
        found for found in mounts_at(mount) if found.source == label and found.filesystem.partition(".")[0] == "fuse"
    ]


@cache
def disk_profiles() -> tuple[DiskProfile, ...]:
    """Return every profile, from slow to fast."""
    from plinth import _native  # takes a while to load

    return tuple(DiskProfile.model_validate(profile) for profile in json.loads(_native.disk_profiles()))


def serve_command(config: DiskConfig) -> tuple[str, ...]:
    """Return the command that serves `config`.

    It prints one line of JSON when the disk is ready, and runs until the disk is unmounted or it gets SIGTERM.
    """
    argv = [sys.executable, "-m", SERVE_MODULE, "--mount", config.mount, "--control", config.control]
    return (*argv, "--label", config.label, "--config", _document(config))


def complaint_about(config: DiskConfig) -> str | None:
    """Return why the engine refuses the profile, physics or faults of `config`; None when it takes them.

    Nothing is touched.
    """
    from plinth import _native

    try:
        _native.DiskServer(_document(config))
    except (_native.DiskError, _native.ConfigError) as error:
        return str(error)
    return None


def _document(config: DiskConfig) -> str:
    changed = config.physics.model_dump(exclude_none=True, mode="json")
    return json.dumps(config.model_dump(mode="json") | {"physics": changed})


def serve_action(step_id: str, config: DiskConfig, log: Path) -> Action:
    """Start a daemon that serves `config` and writes to `log`; it is ready afterwards."""
    argv = serve_command(config)
    step = Step(
        id=step_id,
        title=f"serve an emulated disk {config.profile} of {format_size(config.size_bytes)} on {config.mount}",
        argv=argv,
        undo=Undo(kind="stop_process", path=config.mount, label=config.label),
    )
    return Action(step, lambda runner: start_daemon(argv, LogFile(log), runner))
