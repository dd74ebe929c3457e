"""A file system on one or several block devices: made, mounted, and read back."""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.model.facts import StorageFacts
from plinth.model.step import Step, Undo
from plinth.model.storage import FilesystemName
from plinth.storage.actions import Action
from plinth.storage.devices.block_device import device_label
from plinth.storage.devices.loop_device import mounts_of_lost_images
from plinth.storage.folder import FolderStorage
from plinth.storage.inspect.describe import with_features
from plinth.storage.requirements import Requirements, kernel_filesystem
from plinth.system.directory import filesystem_label
from plinth.system.failures import from_os_error, kernel_log
from plinth.system.mounts import Mount, mount_of, mounts_at, real_point
from plinth.system.runner import CommandError, Runner
from plinth.system.timeout import statvfs_with_timeout
from plinth.system.undo import UndoHandler, UndoHandlers
from plinth.system.unmount import other_namespaces, run_umount, umount_command, unmount_copies

_OF_THE_DISK = ("i/o error", "input/output error", "no space left", "transport endpoint is not connected")
# mke2fs leaves its tables to be written in the background after the first mount, which would disturb what is measured.
_WRITE_ALL_NOW = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
FILESYSTEM_UNDO: UndoHandlers = {
    "unmount_filesystem": UndoHandler(
        lambda what, runner: unmount_filesystem(Path(what.path), what.label, runner),
        lambda what: f"unmount the file system of {what.path}",
        lambda what: umount_command(Path(what.path)),
        unmounts=True,
    )
}
_FS_IOC_GETFSLABEL = 0x81009431  # _IOR(0x94, 49, char[256]), linux/fs.h
_LABEL_MAX_BYTES = 256
_BTRFS = Path("/sys/fs/btrfs")
_BLOCK = Path("/sys/class/block")
_NAME = re.compile(r"[\w-]+")
_NOT_KNOWN = (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL)


def _requirements(name: str, *optional_programs: str) -> Requirements:
    return Requirements(
        root=True,
        # wipefs(8) shows before mkfs writes to a device that it is blank.
        programs=("wipefs", f"mkfs.{name}", "mount", "umount"),
        kernel=(kernel_filesystem(name),),
        # blkid(8) reads a label where a file system is too old to be asked for it.
        optional_programs=(*optional_programs, "blkid"),
    )


FILESYSTEM_REQUIREMENTS: Mapping[FilesystemName, Requirements] = {
    "ext4": _requirements("ext4", "dumpe2fs"),
    "xfs": _requirements("xfs", "xfs_info"),
    "btrfs": _requirements("btrfs"),
}


@dataclass(frozen=True)
class Filesystem:
    """A file system of `kind` for `storage`, on `devices`, of which only btrfs takes several."""

    storage: FolderStorage[Any]
    kind: FilesystemName
    mkfs_options: tuple[str, ...]
    mount_options: tuple[str, ...]
    devices: Sequence[Path]
    held: Callable[[Runner], AbstractContextManager[None]]
    """Guards the devices while something is written to them: see FolderStorage.held."""
    destroys: tuple[str, ...]

    @property
    def label(self) -> str:
        """The label that marks it as ours."""
        return filesystem_label(self.storage.label, self.storage.name)

    @property
    def requirements(self) -> Requirements:
        """The actions that make and mount it."""
        return FILESYSTEM_REQUIREMENTS[self.kind]

    def actions(self) -> list[Action]:
        """Make it, mount it, and hand it to the user who runs servers."""
        storage, devices = self.storage, tuple(map(str, self.devices))
        on = " and ".join(devices)
        make = (f"mkfs.{self.kind}", "-q", "-L", self.label, *self._defaults(), *self.mkfs_options, *devices)
        options = ",".join((*self.mount_options, *(f"device={device}" for device in devices[1:])))
        mount = ("mount", "-t", self.kind, *(("-o", options) if options else ()), devices[0], str(storage.mount_point))
        mounted = Undo(kind="unmount_filesystem", path=str(storage.mount_point), label=self.label)
        mkfs = Step(
            id=storage.step_id("mkfs"),
            title=f"make the file system {self.kind} on {on}",
            argv=make,
            destroys=self.destroys,
        )
        return [
            Action(mkfs, lambda runner: self._make(make, runner)),
            storage.mount_point_action(),
            Action(
                Step(id=storage.step_id("mount"), title=f"mount it on {storage.mount_point}", argv=mount, undo=mounted),
                lambda runner: _run(mount, runner, self.devices),
                lost_without_power=True,
            ),
            storage.root_action(),
        ]

    def confirm(self) -> None:
        """Raise RunError unless that file system on that device is mounted."""
        found = mount_of(self.storage.mount_point)
        asked = (self.kind, os.path.realpath(self.devices[0]))
        if (found.filesystem, os.path.realpath(found.source)) != asked:
            raise RunError(
                f"asked for {asked[0]} on {asked[1]}; {found.filesystem} on {found.source} is mounted",
                where=str(self.storage.mount_point),
            )

    def failure(self) -> str | None:
        """Return the failure when the kernel has made it read-only, as it does after an error of the device."""
        try:
            read_only = statvfs_with_timeout(self.storage.mount_point).f_flag & os.ST_RDONLY
        except OSError as error:
            return f"the file system of storage {self.storage.name} cannot be used any more: {error.strerror}"
        if read_only and "ro" not in self.mount_options:
            return f"the file system of storage {self.storage.name} has become read-only, as after an error of its disk"
        return None

    def with_features(self, facts: StorageFacts, runner: Runner) -> StorageFacts:
        """Add the features of its file system to `facts`; what could not be read, or is not shown, as gaps."""
        return with_features(facts, self.kind, self.devices[0], self.mount_options, runner)

    def _make(self, argv: tuple[str, ...], runner: Runner) -> None:
        with self.held(runner):
            _run(argv, runner, self.devices)

    def _defaults(self) -> tuple[str, ...]:
        return _WRITE_ALL_NOW if self.kind == "ext4" and "-E" not in self.mkfs_options else ()


def run_with_kernel_log(argv: tuple[str, ...], runner: Runner, devices: Sequence[Path]) -> None:
    """Run mkfs or mount of `devices`; where it fails, the kernel's messages are added to its own, but for those that name other devices."""
    own, there = _with_those_below(devices), _block_devices()
    with kernel_log() as said:
        try:
            runner.run(argv)
        except CommandError as error:
            others = (there | _block_devices()) - own
            reasons = _before_usage(error.completed.stderr)
            messages = [f"kernel: {line}" for line in said() if others.isdisjoint(_NAME.findall(line))]
            error.details = (*(reasons or error.details), *messages)
            raise


def _block_devices() -> set[str]:
    return {folder.name for folder in _BLOCK.iterdir()}


def _with_those_below(devices: Sequence[Path]) -> set[str]:
    """Return the kernel's names of block devices, of what they are parts of, and of what they are made of."""
    names: set[str] = set()
    folders = [_BLOCK / Path(os.path.realpath(device)).name for device in devices]
    while folders:
        folder = folders.pop()
        if folder.name not in names:
            names.add(folder.name)
            if (folder / "partition").exists():
                folders.append(folder.resolve().parent)
            if (folder / "slaves").is_dir():
                folders += (folder / "slaves").iterdir()
    return names


def _run(argv: tuple[str, ...], runner: Runner, devices: Sequence[Path]) -> None:
    """Run mkfs or mount of `devices`. Unless the disk failed, an error means that this mkfs, or this kernel, does not support
    the options."""
    try:
        run_with_kernel_log(argv, runner, devices)
    except CommandError as error:
        if not any(words in line.lower() for words in _OF_THE_DISK for line in error.details):
            error.exit_code = MissingCapability.exit_code
        elif lost := mounts_of_lost_images():
            error.hint = (
                f"mkfs.btrfs reads the images of all mounted loop devices, and the program that served that of {lost[0].source} "
                f"has ended: `plinth clean`, if a run left it, else umount {lost[0].point}"
            )
        raise


def _before_usage(stderr: str) -> list[str]:
    """Return the output of a program before it lists all of its options."""
    lines = stderr.splitlines()
    usage = next((index for index, line in enumerate(lines) if line.lower().startswith("usage")), None)
    return lines[:usage] if usage else []


def unmount_filesystem(point: Path, label: str, runner: Runner) -> None:
    """Unmount what is on top of `point` if that file system has `label`; nothing when nothing is mounted there, in any namespace."""
    if not _mounted(point):
        _unmount_elsewhere(point, label, runner)
        return
    try:
        mount = mount_of(point)
    except OSError as error:
        raise from_os_error(error, "look at the mount", point) from error
    if mount.point != str(real_point(point)):
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


def _unmount_elsewhere(point: Path, label: str, runner: Runner) -> None:
    """Unmount what is on `point` in other mount namespaces only, as after a clean that was killed before it had removed the copies.

    Only the disk is asked for its label: anybody can mount something there in a namespace of his own, and no file of one is opened.
    """
    points = {str(point), str(real_point(point))}
    there = {mount.source for namespace in other_namespaces() for mount in namespace.mounts if mount.point in points}
    ours = {
        source for source in there if Path(source).is_block_device() and device_label(Path(source), runner) == label
    }
    unmount_copies(lambda other: other.point in points and other.source in ours, runner)


def mounted_label(point: Path, runner: Runner) -> str | None:
    """Return the label of the file system mounted on `point`; None without one.

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
    """Return the label of the mounted btrfs that `device` is one of the devices of; None where it is of none."""
    for entry in _BTRFS.glob(f"*/devices/{device.name}"):
        with contextlib.suppress(FileNotFoundError):  # unmounted in this very moment
            return (entry.parent.parent / "label").read_text().rstrip("\n") or None
    return None


def _mounted(point: Path) -> list[str]:
    return [mount.source for mount in mounts_at(point)]
