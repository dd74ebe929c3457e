"""Who uses a block device: mounts of every namespace, swap, loop devices, btrfs. Processes that have it open: `openers`.

The kernel's own claim (O_EXCL) already covers mounts, swap and arrays, wherever they are; what is found here says by
whom, and adds what makes no claim: a loop device that it backs.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from plinth.storage.devices.block_device import device_number
from plinth.storage.devices.loop_device import backing_of
from plinth.system.mounts import read_mounts

PROC = Path("/proc")
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO in linux/proc_ns.h


class Use(NamedTuple):
    """One use of `device` (a kernel name), and by whom or what, for people."""

    device: str
    by: str


class NotExamined(NamedTuple):
    """A place where users might be that we could not look at, and why."""

    what: str
    reason: str


Numbers = Mapping[str, str]
"""Device number ("major:minor") to kernel name: of a disk and each of its partitions."""


def mounts_everywhere(numbers: Numbers, proc: Path = PROC) -> tuple[list[Use], list[NotExamined]]:
    """Mounts of these devices in every mount namespace that a process is in."""
    found: list[Use] = []
    unseen: list[NotExamined] = []
    seen: set[str] = set()
    ours = str((proc / "self/ns/mnt").readlink())
    for folder in processes(proc):
        try:
            namespace = str((folder / "ns/mnt").readlink())
            if namespace in seen:
                continue
            mounts = read_mounts(folder / "mountinfo")
        except OSError as error:
            if not is_gone(error):
                unseen.append(NotExamined(f"mounts of {who(folder)}", error.strerror or str(error)))
            continue
        seen.add(namespace)
        for mount in mounts:
            # btrfs numbers its mounts itself: there only the source names the device.
            if name := numbers.get(mount.device) or named(mount.source, numbers):
                where = "" if namespace == ours else f" in the mount namespace of {who(folder)}"
                found.append(Use(name, f"{mount.filesystem} on {mount.point}{where}"))
    return found, unseen


def swaps(numbers: Numbers, proc: Path = PROC) -> list[Use]:
    """Swap areas on these devices."""
    return [Use(name, "swap") for path in swap_areas(proc) if (name := named(str(path), numbers))]


def swap_areas(proc: Path = PROC) -> list[Path]:
    """Devices and files that the kernel swaps to, as in /proc/swaps."""
    try:
        lines = (proc / "swaps").read_text().splitlines()[1:]
    except FileNotFoundError:
        return []  # a kernel without swap
    return [Path(line.split()[0].encode().decode("unicode_escape")) for line in lines]


def loops_on(numbers: Numbers, sysfs: Path) -> tuple[list[Use], list[NotExamined]]:
    """Loop devices that these devices back: they make no claim on them, and any mount namespace may have made them."""
    found: list[Use] = []
    unseen: list[NotExamined] = []
    for folder in sorted((sysfs / "block").glob("loop*")):
        if not (folder / "loop").is_dir():
            continue  # nothing is attached
        try:
            backing = _loop_backing_number(Path("/dev") / folder.name)
        except OSError as error:
            unseen.append(NotExamined(f"what backs {folder.name}", error.strerror or str(error)))
            continue
        if backing is not None and (name := numbers.get(backing)):
            found.append(Use(name, f"loop device {folder.name}"))
    return found, unseen


def btrfs_on(numbers: Numbers, sysfs: Path) -> list[Use]:
    """Mounted btrfs file systems that have these devices as members; the mount table names one member only."""
    return [
        Use(name, f"btrfs {link.parents[1].name}")
        for link in (sysfs / "fs/btrfs").glob("*/devices/*")
        if (name := _number_in(link, numbers))
    ]


def outside_processes(proc: Path = PROC) -> list[NotExamined]:
    """That there may be processes which /proc does not show, as in a container; nothing where it shows all."""
    if str((proc / "self/ns/pid").readlink()) == _INITIAL_PID_NAMESPACE:
        return []
    return [NotExamined("processes outside this container", "its /proc does not show them")]


def processes(proc: Path) -> Iterator[Path]:
    """Folders of processes, the oldest first."""
    return iter(sorted((path for path in proc.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)))


def is_gone(error: OSError) -> bool:
    """Whether the process ended while we looked; a zombie has no files and no namespace any more."""
    return error.errno in (errno.ENOENT, errno.ESRCH, errno.EINVAL)


def who(folder: Path) -> str:
    """A process for people, given as /proc/PID."""
    try:
        return f"process {folder.name} ({(folder / 'comm').read_text(errors='replace').strip()})"
    except OSError:
        return f"process {folder.name}"


def named(path: str, numbers: Numbers) -> str | None:
    """The device that a path of the kernel's means; in other namespaces the same path may not be there."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return path.removeprefix("/dev/") if path.removeprefix("/dev/") in numbers.values() else None
    return numbers.get(device_number(found.st_rdev)) if stat.S_ISBLK(found.st_mode) else None


def _number_in(link: Path, numbers: Numbers) -> str | None:
    try:
        return numbers.get((link / "dev").read_text().strip())
    except OSError:
        return None  # a member that is missing, which btrfs lists too


def _loop_backing_number(device: Path) -> str | None:
    """The number of the block device that backs a loop device; None when it is a file, or nothing."""
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        backing = backing_of(fd)
    finally:
        os.close(fd)
    return None if backing is None or backing.block_device is None else device_number(backing.block_device)
