"""ZFS pools: known by name and by a property of ours, and destroyed while they have both (zpool(8), zfs(8))."""

import time
from pathlib import Path

from plinth.model.errors import Refused
from plinth.storage.devices.fuse import FUSE
from plinth.storage.devices.zfs_fuse import COMMAND_TIMEOUT_S, ZfsFuse
from plinth.storage.requirements import KernelFeature
from plinth.system import cancel
from plinth.system.mounts import Mount, mounts
from plinth.system.runner import CommandError, Runner
from plinth.system.unmount import unmount_copies

PROPERTY = "org.plinth:storage"
"""User property of a pool of ours; its value is the name of the storage's folder."""
_ASK_TIMEOUT_S = 10.0
_BUSY_TIMEOUT_S = 15.0
_LOOK_AGAIN_S = 0.05
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
    while any(_is_its(mount, point, name) for mount in mounts()):
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
        cancel.sleep(_LOOK_AGAIN_S)
