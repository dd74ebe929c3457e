"""The storage stack below a directory, followed down: mount, file system, partition, array, disk; loop files and overlays too."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from plinth.model.base import Gap
from plinth.model.errors import PlinthError
from plinth.model.facts import StackNode
from plinth.model.place import EMULATED, MEMORY, NETWORK
from plinth.storage.devices.disk_control import LocalDiskControl
from plinth.storage.devices.disk_daemon import daemons
from plinth.storage.inspect.block import SYSFS, device_folder, filesystem_of, read_device
from plinth.system.daemon import Daemon
from plinth.system.mounts import MOUNTINFO, Mount, mount_of
from plinth.system.readings import Readings

_STAT_BLOCK_BYTES = 512
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "lustre", "afs", "ocfs2", "gfs2")


class Stack(NamedTuple):
    """The layers, the top first. `volatile_reason` is None when no layer loses its content in a power cut."""

    mount: Mount
    nodes: tuple[StackNode, ...]
    block_devices: tuple[str, ...]
    volatile_reason: str | None
    gaps: tuple[Gap, ...]


class Members(NamedTuple):
    """A stack that is not mounted: it begins with devices or files."""

    nodes: tuple[StackNode, ...]
    block_devices: tuple[str, ...]
    volatile_reason: str | None
    gaps: tuple[Gap, ...]


def read_stack(path: Path, sysfs: Path = SYSFS) -> Stack:
    """Return the stack under `path`. OSError when there is no such path; what cannot be read further down is a gap."""
    walk = _Walk(sysfs)
    mount = walk.down_from(path)
    return Stack(
        mount,
        tuple(walk.nodes),
        tuple(walk.devices),
        "; ".join(walk.volatile_reasons) or None,
        tuple(walk.gaps),
    )


def read_members(paths: Sequence[Path], sysfs: Path = SYSFS, depth: int = 0) -> Members:
    """Return raw block devices or files and what is below them, from `depth` down. OSError when there is no such path."""
    walk = _Walk(sysfs, depth)
    for path in paths:
        walk.from_member(path)
    return Members(tuple(walk.nodes), tuple(walk.devices), "; ".join(walk.volatile_reasons) or None, tuple(walk.gaps))


class _Walk:
    def __init__(self, sysfs: Path, depth: int = 0) -> None:
        self._sysfs = sysfs
        self._depth = depth
        self._seen: set[int] = set()
        self.nodes: list[StackNode] = []
        self.devices: list[str] = []
        self.volatile_reasons: list[str] = []
        self.gaps: list[Gap] = []

    def down_from(self, path: Path) -> Mount:
        """Add everything from the mount of `path` down."""
        mount = mount_of(path)
        if mount.id not in self._seen:  # two loop files may be in one file system
            self._seen.add(mount.id)
            self._add_mount(mount)
            with self._deeper():
                self._add_filesystem(mount, path)
                with self._deeper():
                    self._below(mount)
        return mount

    def from_member(self, path: Path) -> None:
        """Add a block device or a file, and everything below it."""
        found = path.stat()
        if stat.S_ISBLK(found.st_mode):
            number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
            folder = device_folder(number, self._sysfs)
            if folder is None:
                raise FileNotFoundError(errno.ENOENT, f"no block device has the number {number}", str(path))
            self._add_device(folder)
            return
        readings = Readings(str(path))
        readings.add("size_bytes", found.st_size, "stat(2)")
        readings.add("allocated_bytes", found.st_blocks * _STAT_BLOCK_BYTES, "stat(2)")
        self._add("file", str(path), readings)
        with self._deeper():
            self.down_from(path)

    def _add_mount(self, mount: Mount) -> None:
        readings = Readings(mount.point)
        readings.add("source", mount.source, str(MOUNTINFO))
        readings.add("root", mount.root, str(MOUNTINFO))
        readings.add("options", list(mount.options), str(MOUNTINFO))
        self._add("mount", mount.point, readings)

    def _add_filesystem(self, mount: Mount, path: Path) -> None:
        readings = Readings(mount.filesystem)
        readings.add("options", list(mount.super_options), str(MOUNTINFO))
        space = os.statvfs(path)
        readings.add("block_bytes", space.f_frsize, "statvfs(3)")
        readings.add("total_bytes", space.f_blocks * space.f_frsize, "statvfs(3)")
        readings.add("free_bytes", space.f_bavail * space.f_frsize, "statvfs(3)")
        readings.add("free_inodes", space.f_favail, "statvfs(3)")
        if mount.filesystem == "ext4" and (folder := device_folder(mount.device, self._sysfs)):
            # The mount table names only what differs from the default; this file names all.
            readings.read(
                "options_in_effect",
                Path("/proc/fs/ext4") / folder.name / "options",
                convert=lambda text: text.split("\n"),
            )
        self._add("filesystem", mount.filesystem, readings)

    def _below(self, mount: Mount) -> None:
        folder = device_folder(mount.device, self._sysfs)
        kind = mount.filesystem
        if kind in _IN_MEMORY:
            self._append(StackNode(kind=MEMORY, name=MEMORY))
            self.volatile_reasons.append(f"{kind} on {mount.point} keeps its files in memory")
        elif folder is not None:
            self._add_device(folder)
        elif kind == "overlay":
            self._below_overlay(mount)
        elif kind == "btrfs":
            self._below_btrfs(mount)
        elif kind in _NETWORK:
            self._append(StackNode(kind=NETWORK, name=mount.source))
            self._gap(mount, "it is stored on another machine, or on this machine's host, which Plinth does not ask")
        elif kind.partition(".")[0] == "fuse" and (found := daemons(Path(mount.point), mount.source)):
            self._below_emulated(mount, found[0])
        elif kind == "zfs":
            self._gap(mount, f"ZFS keeps that to itself: zpool status {mount.source.partition('/')[0]}")
        else:
            self._gap(mount, f"no block device has the number {mount.device} of this {kind} file system")

    def _below_overlay(self, mount: Mount) -> None:
        upper = next((o.partition("=")[2] for o in mount.super_options if o.startswith("upperdir=")), None)
        if upper is None:
            self._gap(mount, "the overlay names no upper directory: it cannot be written to")
        elif not os.access(upper, os.F_OK):
            self._gap(mount, f"its upper directory {upper} cannot be seen from here, as is usual in a container")
        else:
            self.down_from(Path(upper))

    def _below_btrfs(self, mount: Mount) -> None:
        """Add the devices of a btrfs, which numbers its mounts itself, and lists its devices by file system."""
        filesystem = filesystem_of(Path(mount.source).resolve().name, self._sysfs)
        if filesystem is None:
            self._gap(mount, f"no file system in {self._sysfs / 'fs/btrfs'} has the device {mount.source}")
            return
        for member in sorted(link.resolve() for link in (filesystem / "devices").iterdir()):
            self._add_device(member)

    def _below_emulated(self, mount: Mount, daemon: Daemon) -> None:
        """Add the emulated disk as a layer; its data are stored where its backing file is."""
        try:
            status = LocalDiskControl(daemon.control).status()
        except PlinthError as error:
            self._gap(mount, error.message)
            return
        readings = Readings(status.profile)
        source = str(daemon.control)
        readings.add("size_bytes", status.size_bytes, source)
        readings.add("backing_file", status.backing, source)
        readings.add("seed", status.seed, source)
        for name, value in status.physics.model_dump(exclude_none=True).items():
            readings.add(name, value, source)
        readings.add("faults", [fault.words for fault in status.faults], source)
        readings.add("lie", status.lie.words if status.lie else None, source)
        self._add(EMULATED, status.profile, readings)
        if status.lie is not None:
            self.volatile_reasons.append(
                f"the emulated disk {status.profile} lies about flushes ({status.lie.words}), so that it loses at a "
                "power cut what it has acknowledged"
            )
        with self._deeper():
            self._below_file(status.profile, Path(status.backing))

    def _add_device(self, folder: Path) -> None:
        device = read_device(folder)
        if device.name in self.devices:  # two members of an array may be parts of one disk
            return
        self.devices.append(device.name)
        self._append(device.node)
        self.gaps.extend(device.gaps)
        if device.in_memory:
            self.volatile_reasons.append(f"{device.name} keeps its blocks in memory")
        with self._deeper():
            for below in device.below:
                self._add_device(below)
            if device.backing_file is not None:
                self._below_file(device.name, device.backing_file)

    def _below_file(self, name: str, file: Path) -> None:
        try:
            self.down_from(file)
        except OSError as error:
            self.gaps.append(Gap(what=f"{name}: what backs {file}", reason=error.strerror or str(error)))

    def _gap(self, mount: Mount, reason: str) -> None:
        self.gaps.append(Gap(what=f"{mount.point}: the devices below", reason=reason))

    def _add(self, kind: str, name: str, readings: Readings) -> None:
        self._append(StackNode(kind=kind, name=name, facts=tuple(readings.facts)))
        self.gaps.extend(readings.gaps)

    def _append(self, node: StackNode) -> None:
        self.nodes.append(node.model_copy(update={"depth": self._depth}))

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
