"""ZFS pools, and a zfs-fuse for one storage, isolated from others (zpool(8), zfs(8)).

A pool is known by its name and by a property of ours, and is destroyed only while it has both. zfs-fuse(8) has one socket,
/run/zfs/zfs_socket, and zpool(8) and zfs(8) know no other way to it. So each zfs-fuse has a private /run (private_run.py), and
the tools run in its mount namespace.
"""

import os
import select
import socket
import time
from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.storage.devices.fuse import FUSE
from plinth.storage.requirements import KernelFeature
from plinth.system import cancel, private_run
from plinth.system.directory import nearest_label
from plinth.system.failures import from_os_error
from plinth.system.log_file import LogFile
from plinth.system.mounts import Mount, mounts, real_point
from plinth.system.process import arguments, kill_all
from plinth.system.runner import CommandError, Runner
from plinth.system.timeout import statvfs_with_timeout
from plinth.system.undo import HungDaemon
from plinth.system.unmount import unmount_copies

PROGRAM = "zfs-fuse"
ZFS_FUSE_PROGRAMS = (PROGRAM, "mount", "umount", "nsenter")
CACHE_MB = 512
_RUN_FOLDERS = ("lock", "zfs")
_LIBRARY = Path("/var/lib/zfs")
COMMAND_TIMEOUT_S = 60.0
"""How long a command may take before its daemon is taken to hang: some wrong values make zfs-fuse's zpool wait forever."""
_READY_TIMEOUT_S = 30.0
_LOOK_AGAIN_S = 0.01
_ANSWER_TIMEOUT_S = 5.0
_END_TIMEOUT_S = 15.0
_LOG_LINES = 5
PROPERTY = "org.plinth:storage"
"""User property of a pool of ours; its value is the name of the storage's folder."""
_ASK_TIMEOUT_S = 10.0
_BUSY_TIMEOUT_S = 15.0
_BUSY_PAUSE_S = 0.05
_BUSY = ("could not unmount datasets", "pool is busy", "target is busy")
DATASET = "data"
ZFS = KernelFeature(
    "zfs",
    lambda: Path("/dev/zfs").exists() or (Path("/usr/sbin/zfs-fuse").exists() and FUSE.is_there()),
    "zfs in the kernel, or zfs-fuse",
    hint="zfs-fuse serves without: package zfs-fuse",
)
GONE = ("no such pool", "dataset does not exist")
"""Words of zpool and zfs about what is not there."""


class ZfsFuse:
    """The daemon of the storage whose labelled folder is `folder`; its file systems are mounted below `shared`."""

    def __init__(self, folder: Path) -> None:
        self.shared = folder / "pool"
        self._namespace = folder / "namespace"
        self._pid_file = folder / "zfs-fuse.pid"
        self._log = folder / "zfs-fuse.log"

    @property
    def inside(self) -> tuple[str, ...]:
        """The prefix of a command with which zpool and zfs reach the daemon."""
        return ("nsenter", f"--mount={self._namespace}", "--")

    def command(self, places: list[Path]) -> tuple[str, ...]:
        """Return the command that starts it. `places` are the files and devices of pools."""
        options = ["--no-daemon", "--no-kstat-mount", "--max-arc-size", str(CACHE_MB), "--pidfile", str(self._pid_file)]
        kept = [_LIBRARY, self._pid_file.parent, *places]
        return private_run.command(self.shared, _RUN_FOLDERS, kept, [PROGRAM, *options])

    def start(self, places: list[Path], runner: Runner) -> None:
        """Start it and wait until it answers. RunError with the end of its log when it ends before."""
        process = runner.spawn(self.command(places), log=LogFile(self._log))
        pidfd = os.pidfd_open(process.pid)
        deadline = time.monotonic() + _READY_TIMEOUT_S
        try:
            while not _answers(process.pid):
                if cancel.poll({pidfd: select.POLLIN}, _LOOK_AGAIN_S):
                    raise RunError(f"{PROGRAM} ended with exit code {process.wait()}", details=self.log_tail())
                if time.monotonic() > deadline:
                    raise RunError(f"{PROGRAM} does not answer within {_READY_TIMEOUT_S:g} s", where=str(self._log))
        finally:
            os.close(pidfd)
        try:
            self._namespace.symlink_to(f"/proc/{process.pid}/ns/mnt")
        except OSError as error:
            raise from_os_error(error, f"link to the mount namespace of {PROGRAM}", self._namespace) from error

    def pids(self) -> list[int]:
        """Return the processes that were started as it: one, or none."""
        return [int(process.name) for process in Path("/proc").glob("[0-9]*") if self._is_it(process)]

    def is_running(self) -> bool:
        """Whether it is there, and listens."""
        return any(map(_answers, self.pids()))

    def answers(self, point: Path, timeout_s: float = _ANSWER_TIMEOUT_S) -> bool:
        """Whether it answers, within `timeout_s`, for the file system mounted on `point`."""
        try:
            statvfs_with_timeout(point, timeout_s)
        except TimeoutError:
            return False
        except OSError:
            return True  # an answer, too
        return True

    def end(self) -> None:
        """Kill it, and wait until it is gone. What its pools hold is lost, unless they were exported or destroyed."""
        if left := kill_all(self.pids, _END_TIMEOUT_S):
            raise RunError(
                f"{PROGRAM} could not be ended: pid {left[0]}",
                where=str(self._pid_file),
                hint="a process that hangs in the kernel ends when the disk below it answers again",
            )

    def log_tail(self) -> list[str]:
        """Return the end of its log."""
        try:
            return self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        except OSError as error:
            return [f"{self._log} cannot be read: {error.strerror}"]

    def _is_it(self, process: Path) -> bool:
        words = arguments(process)
        return PROGRAM in words and words[words.index(PROGRAM) :][-2:] == ["--pidfile", str(self._pid_file)]


def mount_point_in(folder: Path) -> Path:
    """Return where the dataset of the storage with that folder is mounted, by the kernel's ZFS and by zfs-fuse."""
    return folder / "pool" / "mount"


def abort_hung(shared: Path) -> None:
    """Kill a zfs-fuse of ours that does not answer, so that nothing waits for it any longer."""
    fuse = ZfsFuse(shared.parent)
    if fuse.pids() and not fuse.answers(mount_point_in(shared.parent)):
        fuse.end()


def find_hung(shared: Path) -> HungDaemon | None:
    """Return a zfs-fuse of ours that does not answer for as long as its commands may take; None when there is none."""
    fuse = ZfsFuse(shared.parent)
    hanging = fuse.pids()
    if not hanging or fuse.answers(mount_point_in(shared.parent), COMMAND_TIMEOUT_S):
        return None
    return HungDaemon(
        f"{PROGRAM} on {shared} (pid {hanging[0]}) did not answer within {COMMAND_TIMEOUT_S:g} s and was ended",
        fuse.end,
    )


def stop_zfs_fuse(shared: Path, label: str) -> None:
    """Undo of its start: end it if the folder that it was started for has `label`; nothing when it is gone."""
    fuse = ZfsFuse(shared.parent)
    if fuse.pids() and (found := nearest_label(shared.parent)) != label:
        raise Refused(f"{PROGRAM} is not ended: its folder has the label {found!r}, not {label!r}", where=str(shared))
    fuse.end()


def _answers(pid: int) -> bool:
    """Whether the process has become zfs-fuse, which is then in its namespace, and listens."""
    try:
        if Path(f"/proc/{pid}/exe").readlink().name != PROGRAM:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(f"/proc/{pid}/root/run/zfs/zfs_socket")
    except OSError:
        return False
    return True


def kernel_has_zfs() -> bool:
    """Whether the kernel's own ZFS is loaded."""
    return Path("/sys/module/zfs").is_dir()


def destroy_pool(point: Path, name: str, runner: Runner) -> None:
    """Destroy the pool `name`, whose dataset is mounted on `point`, if it has our property; nothing when it is gone.

    A zfs-fuse of our own that does not answer is killed: its pools are in use nowhere else. What it had mounted goes.
    """
    folder = point.parent.parent
    fuse = ZfsFuse(folder)
    if fuse.is_running():
        try:
            _destroy(name, point, fuse.inside, runner)
        except CommandError as error:
            if not error.timed_out and fuse.is_running():
                raise
            fuse.end()
    elif kernel_has_zfs():
        _destroy(name, point, (), runner)
    while any(_is_its(mount, real_point(point), name) for mount in mounts()):
        runner.run(("umount", str(point)), timeout_s=COMMAND_TIMEOUT_S)
    unmount_copies(lambda mount: _is_its(mount, point, name), runner)


def _is_its(mount: Mount, point: Path, name: str) -> bool:
    return (mount.source, mount.point) == (f"{name}/{DATASET}", str(point))


def _destroy(name: str, point: Path, inside: tuple[str, ...], runner: Runner) -> None:
    value = point.parent.parent.name
    asked = (*inside, "zfs", "get", "-H", "-o", "value", PROPERTY, name)
    try:
        found = runner.run(asked, timeout_s=_ASK_TIMEOUT_S).stdout.strip()
    except CommandError as error:
        if any(gone in error.completed.stderr for gone in GONE):
            return
        raise
    if found != value:
        raise Refused(
            f"pool {name} is not destroyed: its property {PROPERTY} is {found!r}, not {value!r}, so it is not ours",
            where=name,
            hint=f"destroy it yourself if it is not wanted: zpool destroy {name}",
        )
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            # A copy of the mount in any namespace keeps the pool busy; and the kernel tells a FUSE file system only
            # afterwards that a file was closed, or that it was unmounted.
            unmount_copies(lambda mount: _is_its(mount, point, name), runner)
            runner.run((*inside, "zpool", "destroy", name), timeout_s=COMMAND_TIMEOUT_S)
            return
        except CommandError as error:
            busy = any(words in error.completed.stderr for words in _BUSY)
            if not busy or time.monotonic() > deadline:
                raise
        cancel.sleep(_BUSY_PAUSE_S)
