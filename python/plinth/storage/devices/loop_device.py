"""Loop devices (loop(4)): how a file is attached and detached, and what backs a device (LOOP_GET_STATUS64 of linux/loop.h)."""

import array
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.model.step import Step, Undo
from plinth.storage.actions import Action, make_link
from plinth.storage.requirements import Requirements, kernel_feature
from plinth.system import cancel
from plinth.system.directory import LABEL_FILE, nearest_label
from plinth.system.failures import from_os_error
from plinth.system.mounts import Mount, mounts
from plinth.system.runner import CommandError, Runner
from plinth.system.timeout import statvfs_with_timeout
from plinth.system.undo import UndoHandler, UndoHandlers

_LOOP_GET_STATUS64 = 0x4C05
_STATUS_BYTES = 232  # struct loop_info64; lo_device, lo_inode and lo_rdevice are its first fields
_BLOCK = Path("/sys/block")
_DELETED = " (deleted)"
_TIMEOUT_S = 5.0
_LOOK_AGAIN_S = 0.01
LOOP_UNDO: UndoHandlers = {
    "detach_loop": UndoHandler(
        lambda what, runner: detach_loops(Path(what.path), what.label, runner),
        lambda what: f"detach the loop device of {what.path}",
    )
}
_CONTROL = Path("/dev/loop-control")
LOOP_REQUIREMENTS = Requirements(root=True, programs=("losetup",), kernel=(kernel_feature("loop", _CONTROL),))
_DIRECT_IO = "--direct-io=on"
# The last is what losetup says when the kernel has one to give, but /dev has no node for it.
_NONE_LEFT = (
    "could not find any free loop device",
    "cannot find an unused loop device",
    "failed to set up loop device: No such file or directory",
)


class Backing(NamedTuple):
    """What backs a loop device: an inode of the file system `device`; `block_device` is set when that is a device."""

    device: int
    inode: int
    block_device: int | None


def backing_of(fd: int) -> Backing | None:
    """Return the backing file of an open loop device, even if it was renamed; None when the device is not attached."""
    status = array.array("B", bytes(_STATUS_BYTES))
    try:
        fcntl.ioctl(fd, _LOOP_GET_STATUS64, status)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise
    device, inode, rdevice = (int.from_bytes(bytes(status[at : at + 8]), "little") for at in (0, 8, 16))
    # Of a file the last is nothing, or by the kernel's version the number of the file's own disk.
    return Backing(_decoded(device), inode, None if rdevice in (0, device) else _decoded(rdevice))


def loops_of(image: Path) -> list[Path]:
    """Return the loop devices, as /dev/loop0, whose backing file is `image`, also when that has been deleted since.

    Only text is compared, so that an image on a disk that does not answer blocks nothing.
    """
    devices = (Path("/dev") / folder.name for folder in _BLOCK.glob("loop*"))
    return sorted(device for device in devices if _image_of(device) == str(image))


def _image_of(device: Path) -> str | None:
    """Return the path of the file that backs a loop device; None when none does, such as once another process has detached it."""
    try:
        backing = (_BLOCK / device.name / "loop" / "backing_file").read_bytes()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):  # the latter between open(2) and read(2)
            raise
        return None
    return os.fsdecode(backing.removesuffix(b"\n")).removesuffix(_DELETED)  # a path may hold anything


def mounts_of_lost_images() -> list[Mount]:
    """Return the mounts of loop devices whose image nobody serves any more, since the FUSE daemon that did has ended."""
    return [mount for mount in mounts() if mount.source.startswith("/dev/loop") and _is_lost(Path(mount.source))]


def _is_lost(device: Path) -> bool:
    image = _image_of(device)
    try:
        if image is not None:
            statvfs_with_timeout(Path(image), _TIMEOUT_S)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def detach_loops(image: Path, label: str, runner: Runner) -> None:
    """Detach every loop device of `image` if the nearest labelled folder around that has `label`; nothing without one.

    Refused while a device is in use: losetup -d would only mark it to go later.
    """
    for device in loops_of(image):
        _detach(device, image, label, runner)


def in_use(device: Path) -> str | None:
    """Return the holder of a claim on a block device, for people; None when no mount, array, volume or swap area claims
    it."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EBUSY:
            return None  # it cannot be opened at all, as a disk that has failed
        holders = _BLOCK / device.name / "holders"
        names = sorted(entry.name for entry in holders.iterdir()) if holders.is_dir() else []
        return f"held by {', '.join(names)}" if names else "mounted, or claimed by another program"
    return None


def _decoded(number: int) -> int:
    """Convert a device number of the kernel's huge_encode_dev (linux/kdev_t.h) to that of stat(2)."""
    return os.makedev((number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xFFF00))


def _detach(device: Path, image: Path, label: str, runner: Runner) -> None:
    found = nearest_label(image.parent)
    if found != label:
        raise Refused(
            f"not detached: the folder of its file {image} has "
            + (f"the label {found!r}, not ours, {label!r}" if found else f"no label of ours ({LABEL_FILE})"),
            where=str(device),
            hint=f"detach it yourself if it is not wanted: losetup -d {device}",
        )
    # What was unmounted here may be held for a moment yet, as by a process in another mount namespace.
    if not _within_timeout(lambda: in_use(device) is None) and (reason := in_use(device)):
        raise Refused(f"not detached: it is in use ({reason})", where=str(device), hint="unmount what is on it first")
    runner.run(("losetup", "-d", str(device)))
    # The kernel detaches it when the last opener closes it, and udev opens devices that appear and disappear.
    if not _within_timeout(lambda: device not in loops_of(image)):
        raise RunError(
            "still attached after losetup -d: some program has it open",
            where=str(device),
            hint="end that program (fuser names it), then: plinth clean",
        )


def _within_timeout(happened: Callable[[], bool]) -> bool:
    """Whether something that sends no notification becomes true within the timeout."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not happened():
        if time.monotonic() > deadline:
            return False
        cancel.sleep(_LOOK_AGAIN_S)
    return True


def check_loop_devices() -> None:
    """Raise MissingCapability where there are no loop devices."""
    if not _CONTROL.exists():
        raise MissingCapability(
            f"no loop devices here: {_CONTROL} is missing",
            where=str(_CONTROL),
            hint="modprobe loop; a container needs the device, as docker run --privileged gives it",
        )


def attach(step_id: str, image: Path, link: Path, label: str, *, direct_io: bool) -> Action:
    """Attach `image` to a loop device that the kernel chooses, and let `link` lead there."""
    argv = ("losetup", "--show", "-f", *((_DIRECT_IO,) if direct_io else ()), str(image))
    step = Step(
        id=step_id,
        title=f"attach {image} to a loop device",
        argv=argv,
        undo=Undo(kind="detach_loop", path=str(image), label=label),
    )

    return Action(step, lambda runner: make_link(link, _attach(argv, runner)), lost_without_power=True)


def confirm_attached(image: Path, link: Path, size_bytes: int, *, direct_io: bool) -> None:
    """Raise RunError unless `link` leads to a loop device of `image`, of that size, with direct I/O as asked."""
    device = Path(os.path.realpath(link))
    if device not in loops_of(image):
        raise RunError(f"{link} leads to {device}, which is not attached to {image}", where=str(device))
    folder = _BLOCK / device.name
    got = int((folder / "size").read_text()) * 512
    if got != size_bytes:
        raise RunError(f"asked for a device of {size_bytes} bytes, got {got}", where=str(device))
    if direct_io and (folder / "loop/dio").read_text().strip() != "1":
        raise RunError(
            "direct_io = true, but the loop device goes through the page cache",
            where=str(folder / "loop/dio"),
            hint=_hint_for_direct_io(image),
        )


def _attach(argv: tuple[str, ...], runner: Runner) -> Path:
    try:
        device = Path(runner.run(argv).stdout.strip())
    except CommandError as error:
        said = error.completed.stderr
        if any(words in said for words in _NONE_LEFT):
            raise MissingCapability(
                "no loop device is available",
                where=" ".join(argv),
                details=error.details,
                hint="losetup -l shows who has them; a container also needs their nodes in /dev, as --privileged and "
                "--volume /dev:/dev give them",
            ) from error
        if _DIRECT_IO in argv and "Invalid argument" in said:
            error.hint = _hint_for_direct_io(Path(argv[-1]))
        raise
    _flush_again(device)
    return device


def _flush_again(device: Path) -> None:
    """Have the kernel send flushes to a loop device that a former user of it has switched to "write through": it keeps that setting when the
    device is detached, and every commit would be lost that only a flush makes durable."""
    setting = _BLOCK / device.name / "queue" / "write_cache"
    try:
        if setting.read_text().strip() == "write through":
            setting.write_text("write back")
    except OSError as error:
        raise from_os_error(error, "have flushes sent to the loop device", setting) from error


def _hint_for_direct_io(image: Path) -> str:
    return f"if the file system of {image} cannot do direct I/O, set direct_io = false, or choose another place"
