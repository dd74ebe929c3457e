"""Loop devices that look like real disks: a serial number in sysfs and a stable id in /dev/disk/by-id.

Both are mounts in a mount namespace that only the calling process is in, so that nothing of this machine changes.
"""

import ctypes
import hashlib
import os
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from children import run_in_child
from plinth.storage.devices.block_device import BY_ID, BY_PARTUUID, device_number
from plinth.storage.guards import RequestedDevice
from plinth.storage.guards.uses import opened_by
from waiting import wait_until

MIB = 2**20
SERIAL = "S4EVNF0M512345"
WORD = "512345"
_CLONE_NEWNS = 0x00020000
_libc = ctypes.CDLL(None, use_errno=True)


class Disk(NamedTuple):
    """A disk: its node such as /dev/loop3, the stable id that leads to it, and the file that backs it."""

    node: Path
    id: Path
    serial: str
    size_bytes: int
    image: Path

    @property
    def requested(self) -> RequestedDevice:
        return RequestedDevice(str(self.id), self.serial, self.size_bytes)

    @property
    def number(self) -> str:
        return device_number(self.node.stat().st_rdev)


def command(*argv: str | Path) -> str:
    """Run a command that must succeed; its output."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout.strip()


def in_private_mounts(function: Callable[[], Any]) -> Any:
    """What `function` returns in a forked child with its own mount namespace; what it raises fails the test."""
    # A point to mount on, where no udev has made one. It stays: removing it would detach what other tests have mounted there.
    BY_ID.parent.mkdir(exist_ok=True)
    return run_in_child(lambda: _isolated(function)).value


def _isolated(function: Callable[[], Any]) -> Any:
    if _libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    command("mount", "--make-rprivate", "/")
    command("mount", "-t", "tmpfs", "ids", BY_ID.parent)
    BY_ID.mkdir()
    BY_PARTUUID.mkdir()
    return function()


def dev_without(*patterns: str) -> None:
    """Our own /dev, with all devices that were there but those of these names. Call it in private mounts."""
    former = [(node.name, node.lstat()) for node in Path("/dev").iterdir()]
    links = {node.name: node.readlink() for node in Path("/dev").iterdir() if node.is_symlink()}
    command("mount", "-t", "tmpfs", "-o", "mode=0755", "dev", "/dev")
    for name, found in former:
        is_device = stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)
        if is_device and not any(fnmatch(name, pattern) for pattern in patterns):
            os.mknod(f"/dev/{name}", found.st_mode, found.st_rdev)
            Path("/dev", name).chmod(found.st_mode & 0o7777)  # which the umask has cut
    for name, target in links.items():
        Path("/dev", name).symlink_to(target)


def without_program(program: str, scratch: Path) -> None:
    """Let a program that is installed be none that can be run. Call it in private mounts."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert found is not None, "else this shows nothing"
    (scratch / "not-executable").touch(0o644)
    command("mount", "--bind", scratch / "not-executable", os.path.realpath(found))


def wait_for_detached(node: Path) -> None:
    """Wait until a loop device is detached: the kernel does so once nobody has it open, and another test may be looking at all of them."""
    wait_until(lambda: not Path(f"/sys/block/{node.name}/loop").exists(), f"{node} to be detached")


def wait_for_others(node: Path) -> None:
    """Wait until nobody else has a new loop device open: the losetup of another test may have found the same one free, and been too late."""
    number = {device_number(node.stat().st_rdev): node.name}
    wait_until(lambda: not opened_by(number)[0], f"{node} to be closed by others")


def attach_again(node: Path, image: Path) -> None:
    """Attach a loop device that was detached to another image. Another test may have found it free, and gives it back when it ends."""

    def attached() -> bool:
        return subprocess.run(["losetup", node, image], capture_output=True, check=False).returncode == 0

    wait_until(attached, f"{node} to be free", timeout_s=240)
    wait_for_others(node)


@contextmanager
def loop_device(image: Path, size_bytes: int = 0) -> Iterator[Path]:
    """A loop device on `image`, which is made of that size when one is given."""
    if size_bytes:
        with image.open("wb") as file:
            file.truncate(size_bytes)
    node = Path(command("losetup", "--show", "--find", image))
    try:
        wait_for_others(node)
        yield node
    finally:
        command("losetup", "--detach", node)


@contextmanager
def disk(scratch: Path, name: str = "disk", size_bytes: int = 64 * MIB, serial: str | None = SERIAL) -> Iterator[Disk]:
    """A blank disk. Call it where `in_private_mounts` has led to."""
    image = scratch / f"{name}.img"
    with loop_device(image, size_bytes) as node:
        id_path = BY_ID / f"ata-{name}_{serial}"
        id_path.symlink_to(f"../../{node.name}")
        with serial_number(node, serial):
            yield Disk(node, id_path, serial or "", size_bytes, image)
        id_path.unlink()


@contextmanager
def partitioned_disk(
    image: Path, node: Path, *sizes_bytes: int, first_byte: int = MIB
) -> Iterator[tuple[Disk, list[Disk]]]:
    """A disk on the loop device `node` with partitions, one behind the other in the table of its master boot record; with
    links by PARTUUID. Its serial number comes last: an overlay on sysfs does not see partitions that change below it.
    """
    starts = [first_byte + sum(sizes_bytes[:number]) for number in range(len(sizes_bytes))]
    entries = [
        struct.pack("<B3sB3sII", 0, bytes(3), 0x83, bytes(3), start // 512, size // 512)
        for start, size in zip(starts, sizes_bytes, strict=True)
    ]
    with node.open("r+b") as device:
        device.seek(440)  # the disk's id, with which each PARTUUID begins
        device.write(struct.pack("<IH", 0x0A1B2C3D, 0) + b"".join(entries).ljust(64, b"\0") + b"\x55\xaa")
    command("partx", "--update", node)
    parts = []
    for number, size_bytes in enumerate(sizes_bytes, start=1):
        link = BY_PARTUUID / f"0a1b2c3d-{number:02x}"
        link.symlink_to(f"../../{node.name}p{number}")
        parts.append(Disk(Path(f"{node}p{number}"), link, SERIAL, size_bytes, image))
    try:
        with serial_number(node, SERIAL):
            yield Disk(node, BY_ID / "ata-disk", SERIAL, image.stat().st_size, image), parts
    finally:
        command("partx", "--delete", node)
        for part in parts:
            part.id.unlink(missing_ok=True)


@contextmanager
def serial_number(node: Path, serial: str | None) -> Iterator[None]:
    """Give a device a serial number in sysfs, as virtio disks have it: an overlay on its folder there."""
    if serial is None:
        yield
        return
    sysfs = (Path("/sys/block") / node.name).resolve()
    parts = Path(tempfile.mkdtemp(dir=BY_ID.parent))  # which is our own tmpfs
    for part in ("upper", "work"):
        (parts / part).mkdir()
    (parts / "upper/serial").write_text(serial)
    options = f"lowerdir={sysfs},upperdir={parts}/upper,workdir={parts}/work"
    command("mount", "-t", "overlay", "serial", "-o", options, sysfs)
    try:
        yield
    finally:
        command("umount", sysfs)


def digest(node: Path) -> str:
    """Of all that is on a disk, to show that nothing was written."""
    with node.open("rb") as device:
        return hashlib.file_digest(device, "sha256").hexdigest()
