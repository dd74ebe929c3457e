"""One block device: which one it is, and what is on it.

A name such as /dev/sdb may be another disk by the next command.
`Identity` is what must not change between looking and writing. Sources: linux/fs.h (ioctls), the kernel's
Documentation/ABI/stable/sysfs-block (diskseq, since Linux 5.15: a number that no two disks of one boot share), and
SPC-4 7.8.15 for the page of SCSI's vital product data that holds the serial number.
"""

import array
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import PlinthError, Refused
from plinth.system.failures import from_os_error
from plinth.system.runner import CommandError, Runner

SYSFS = Path("/sys")
BY_ID = Path("/dev/disk/by-id")
BY_PARTUUID = Path("/dev/disk/by-partuuid")
_BLKGETSIZE64 = 0x80081272
_BLKGETDISKSEQ = 0x80081280
_BLKROGET = 0x125E
_VPD_HEADER_BYTES = 4
_BLKID_NOTHING_FOUND = 2


class Identity(NamedTuple):
    """What names a disk, or a partition, for as long as this boot lasts; None where the kernel gives none.

    `number` is "major:minor"; `serial` and `diskseq` of a partition are those of its disk; `start_sector` is where on it a
    partition begins, in sectors of 512 bytes, None of a whole disk.
    """

    number: str
    size_bytes: int
    serial: str | None
    diskseq: int | None
    start_sector: int | None = None

    def differences(self, other: "Identity") -> list[str]:
        """Return the differences from `other`, for people."""
        return [
            f"{name.replace('_', ' ')} was {before}, is {now}"
            for name, before, now in zip(self._fields, self, other, strict=True)
            if before != now
        ]


def resolve(id_path: str, sysfs: Path = SYSFS) -> tuple[Path, Path]:
    """Return the node, such as /dev/nvme0n1, and the sysfs folder of a device that is named by stable id or by PARTUUID.

    Refused for any other name, and for a link that leads to anything but a device node that the kernel made.
    """
    link = Path(id_path)
    if link.parent not in (BY_ID, BY_PARTUUID) or link.name in ("", "..") or str(link) != id_path:
        raise Refused(
            "a device is taken only by its stable id, since a name such as /dev/sdb may be another disk tomorrow",
            where=id_path,
            hint=f"ls -l {BY_ID} shows the ids of disks, ls -l {BY_PARTUUID} those of partitions",
        )
    if not link.exists():
        raise Refused("there is no such device", where=id_path, hint=f"ls -l {link.parent} shows those that there are")
    node = Path(os.path.realpath(link))
    if not link.is_symlink() or node.is_relative_to(link.parent) or not node.is_relative_to("/dev"):
        raise Refused(f"it is no link to a device in /dev: it leads to {node}", where=id_path)
    with opened(node) as fd:
        folder = (sysfs / "dev/block" / identity_of(fd, sysfs).number).resolve()
    kernel_name = folder.name.replace("!", "/")
    if not folder.is_dir() or node != Path("/dev") / kernel_name:
        raise Refused(
            f"it leads astray: to {node}, while the kernel calls the device of that number {kernel_name}",
            where=id_path,
        )
    return node, folder


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open the block device at `path`. While it is open, the kernel gives its number to no other disk.

    Refused when there is no block device; with O_EXCL also when the kernel itself uses it.
    """
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _not_opened(error, path) from error
    try:
        if not stat.S_ISBLK(os.fstat(fd).st_mode):
            raise Refused("it is not a block device", where=str(path), hint="name a device of /dev/disk/by-id")
        yield fd
    finally:
        os.close(fd)


def identity_of(fd: int, sysfs: Path = SYSFS) -> Identity:
    """Return the identity of an open block device."""
    number = device_number(os.fstat(fd).st_rdev)
    folder = (sysfs / "dev/block" / number).resolve()
    start = int((folder / "start").read_text()) if is_partition(folder) else None
    size_bytes = _ioctl_u64(fd, _BLKGETSIZE64) or 0
    return Identity(number, size_bytes, serial_of(disk_folder(folder)), _ioctl_u64(fd, _BLKGETDISKSEQ), start)


def is_partition(folder: Path) -> bool:
    """Whether a sysfs folder is a partition's."""
    return (folder / "partition").is_file()


def disk_folder(folder: Path) -> Path:
    """Return the sysfs folder of the disk that a partition is on; of a disk its own. `folder` has no links in it."""
    return folder.parent if is_partition(folder) else folder


def is_read_only(fd: int) -> bool:
    """Whether the kernel refuses writes to an open block device."""
    value = array.array("i", [0])
    fcntl.ioctl(fd, _BLKROGET, value)
    return bool(value[0])


def serial_of(folder: Path) -> str | None:
    """Return the serial number of the disk of a sysfs folder; None where it has none to read.

    NVMe and MMC keep it in device/serial, virtio and user-mode Linux in serial, SCSI and SATA in the page 0x80 of the
    vital product data: four bytes of header, the last two of them the length, then the number.
    """
    for file in (folder / "device/serial", folder / "serial"):
        try:
            if serial := file.read_text(errors="replace").strip("\0 \n"):
                return serial
        except OSError:
            continue  # another kind of disk
    try:
        page = (folder / "device/vpd_pg80").read_bytes()
    except OSError:
        return None
    length = int.from_bytes(page[2:_VPD_HEADER_BYTES], "big")
    return page[_VPD_HEADER_BYTES : _VPD_HEADER_BYTES + length].decode(errors="replace").strip("\0 ") or None


def device_number(st_rdev: int) -> str:
    """Return the "major:minor" of a device number as stat(2) gives it."""
    return f"{os.major(st_rdev)}:{os.minor(st_rdev)}"


def _ioctl_u64(fd: int, request: int) -> int | None:
    value = array.array("Q", [0])
    try:
        fcntl.ioctl(fd, request, value)
    except OSError:
        return None  # a kernel before 5.15 has no diskseq
    return value[0]


def _not_opened(error: OSError, path: Path) -> PlinthError:
    if error.errno == errno.EBUSY:
        return Refused(
            "the kernel says that the device is in use: mounted in some namespace, swap, or part of an array",
            where=str(path),
            hint="lsblk and /proc/mounts may show by whom; free it, or name another device",
        )
    if error.errno in (errno.ENXIO, errno.ENOMEDIUM):
        return Refused("no disk is behind it", where=str(path), hint="name a device of /dev/disk/by-id")
    return from_os_error(error, "open the device", path)


class Signature(NamedTuple):
    """One signature: "ext4", "linux_raid_member", "gpt", ...; `offset_bytes` is where on the device its magic is."""

    type: str
    offset_bytes: int
    label: str | None
    uuid: str | None

    def __str__(self) -> str:
        label = f" labelled {self.label!r}" if self.label else ""
        return f"{self.type}{label} at byte {self.offset_bytes}"


def signatures_command(device: Path) -> tuple[str, ...]:
    """Return the command that shows the signatures on `device`; it changes nothing."""
    return ("wipefs", "--no-act", "--json", str(device))


def signatures_of(device: Path, runner: Runner) -> tuple[Signature, ...]:
    """Return every signature of a device or file. Raises a PlinthError when it cannot be read."""
    completed = runner.run(signatures_command(device))
    if not completed.stdout.strip():
        return ()  # as some versions say that there is none
    try:
        rows = json.loads(completed.stdout)["signatures"]
        return tuple(Signature(row["type"], int(row["offset"], 16), row["label"], row["uuid"]) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"cannot determine what is on the device: wipefs answered in an unknown form ({error})",
            where=" ".join(completed.argv),
            details=completed.stdout.splitlines()[:5],
        ) from error


def device_label(device: Path, runner: Runner) -> str | None:
    """Return the label of the file system on a block device, read from it by blkid; None without one."""
    return _probed(device, "LABEL", runner)


def filesystem_uuid(device: Path, runner: Runner) -> str | None:
    """Return the identity of the file system on a block device: blkid's cache may have that of what was there 2 s ago."""
    return _probed(device, "UUID", runner)


def partuuid_of(partition: Path, runner: Runner) -> str | None:
    """Return the PARTUUID of a partition as the table of its disk has it now, which a link in /dev/disk may have outlived."""
    return _probed(partition, "PART_ENTRY_UUID", runner)


def _probed(device: Path, tag: str, runner: Runner) -> str | None:
    """Return what blkid reads from a block device, past its cache."""
    try:
        return runner.run(("blkid", "-p", "-o", "value", "-s", tag, str(device))).stdout.strip() or None
    except CommandError as error:
        if error.completed.exit_code == _BLKID_NOTHING_FOUND:
            return None
        raise
