"""File systems on block devices: known by the label that they have, and unmounted while they have ours."""

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.system.failures import from_os_error
from plinth.system.mounts import Mount, mount_of, mounts
from plinth.system.runner import CommandError, Runner
from plinth.system.unmount import run_umount, unmount_copies

_FS_IOC_GETFSLABEL = 0x81009431  # _IOR(0x94, 49, char[256]), linux/fs.h
_LABEL_MAX_BYTES = 256
_BTRFS = Path("/sys/fs/btrfs")
_NOT_KNOWN = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL)
_BLKID_NOTHING_FOUND = 2


def unmount_filesystem(point: Path, label: str, runner: Runner) -> None:
    """Unmount what is on top of `point` if that file system has `label`; nothing when nothing is mounted there."""
    if not _mounted(point):
        return
    try:
        mount = mount_of(point)
    except OSError as error:
        raise from_os_error(error, "look at the mount", point) from error
    if mount.point != str(point):
        raise Refused(f"not unmounted: {mount.source} on {mount.point} hides it", where=str(point))
    try:
        found = mounted_label(point, runner)
    except OSError as error:
        if error.errno != errno.EIO or not _is_on_own_device(mount, point.parent):
            raise
        found = label
    if found != label:
        raise Refused(
            f"not unmounted: {mount.source} ({mount.filesystem}) has "
            + (f"the label {found!r}, not ours, {label!r}" if found else f"no label, not ours, {label!r}"),
            where=str(point),
            hint=f"unmount it yourself if it is not wanted: umount {point}",
        )
    before = len(_mounted(point))
    run_umount(point, runner)
    unmount_copies(lambda other: (other.source, other.point) == (mount.source, mount.point), runner)
    if len(_mounted(point)) >= before:
        raise RunError("still mounted after umount", where=str(point))


def mounted_label(point: Path, runner: Runner) -> str | None:
    """The label of the file system mounted on `point`; None without one.

    Asked of the file system (FS_IOC_GETFSLABEL), which knows it even when its disk does not answer any more; where that
    is too old to be asked, of the disk. btrfs, which reads its root directory once more, is asked by sysfs.
    """
    if label := _label_in_sysfs(Path(mount_of(point).source)):
        return label
    directory = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        answer = fcntl.ioctl(directory, _FS_IOC_GETFSLABEL, bytes(_LABEL_MAX_BYTES))
        return answer.rstrip(b"\0").decode(errors="replace") or None
    except OSError as error:
        if error.errno not in _NOT_KNOWN:
            raise from_os_error(error, "read the label of the file system", point) from error
    finally:
        os.close(directory)
    return device_label(Path(mount_of(point).source), runner)


def _is_on_own_device(mount: Mount, folder: Path) -> bool:
    """Whether `mount` is of a device that a link in `folder`, a storage's own, leads to: XFS that has shut down, as after a power
    cut, does not even open its root directory, and so does not tell its label."""
    return any(str(link.readlink()) == mount.source for link in folder.glob("device*") if link.is_symlink())


def _label_in_sysfs(device: Path) -> str | None:
    """The label of the mounted btrfs that `device` is one of the devices of; None where it is of none."""
    for entry in _BTRFS.glob(f"*/devices/{device.name}"):
        with contextlib.suppress(FileNotFoundError):  # unmounted in this very moment
            return (entry.parent.parent / "label").read_text().rstrip("\n") or None
    return None


def device_label(device: Path, runner: Runner) -> str | None:
    """The label of the file system on a block device, read from it by blkid; None without one."""
    return _probed(device, "LABEL", runner)


def partuuid_of(partition: Path, runner: Runner) -> str | None:
    """The PARTUUID of a partition as the table of its disk has it now, which a link in /dev/disk may have outlived."""
    return _probed(partition, "PART_ENTRY_UUID", runner)


def _probed(device: Path, tag: str, runner: Runner) -> str | None:
    """What blkid reads from a block device, past its cache."""
    try:
        return runner.run(("blkid", "-p", "-o", "value", "-s", tag, str(device))).stdout.strip() or None
    except CommandError as error:
        if error.completed.exit_code == _BLKID_NOTHING_FOUND:
            return None
        raise


def _mounted(point: Path) -> list[str]:
    return [mount.source for mount in mounts() if mount.point == str(point)]
