"""The state of a block device that the guards decide on, read once; the decisions themselves, in `decide`, read
nothing."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plinth.model.errors import Refused
from plinth.storage.devices.block_device import (
    SYSFS,
    Identity,
    Signature,
    disk_folder,
    identity_of,
    is_partition,
    is_read_only,
    opened,
    partuuid_of,
    resolve,
    serial_of,
    signatures_of,
)
from plinth.storage.devices.device_ends import read_ends
from plinth.storage.guards.uses import (
    NotExamined,
    Numbers,
    Use,
    btrfs_on,
    loops_on,
    mounts_everywhere,
    opened_by,
    outside_processes,
    swap_areas,
    swaps,
)
from plinth.storage.inspect.stack import read_stack
from plinth.system.runner import Runner


@dataclass(frozen=True)
class DeviceState:
    """A block device as it was found. `uses`, `holders` and `ancestors` name the disk or the partition that is used.

    Of a partition, the uses of its whole disk are among them, those of its neighbours are not; `partuuid` is as the
    partition table has it.
    `unseen` is where users of it might be that we could not look at; `blank_ends` says that its first and last MiB
    hold nothing but zeros.
    """

    id: str
    name: str
    is_partition: bool
    identity: Identity
    model: str | None
    read_only: bool
    partitions: tuple[str, ...] = ()
    holders: tuple[Use, ...] = ()
    uses: tuple[Use, ...] = ()
    signatures: tuple[tuple[str, Signature], ...] = ()
    ancestors: tuple[Use, ...] = ()
    claimed: str | None = None
    twins: tuple[str, ...] = ()
    """Other disks that seem to be the same one, reached by another path."""
    blank_ends: bool = True
    unseen: tuple[NotExamined, ...] = ()
    partuuid: str | None = None
    overlapping: tuple[str, ...] = ()


def read_state(id_path: str, keep: Iterable[Path], runner: Runner, sysfs: Path = SYSFS) -> DeviceState:
    """Look at the device of a stable id. `keep` are places whose devices must not be touched. Changes nothing."""
    node, folder = resolve(id_path, sysfs)
    with opened(node) as fd:
        identity = identity_of(fd, sysfs)
        partitions = sorted(entry.name for entry in folder.iterdir() if is_partition(entry))
        own = [folder, *map(folder.joinpath, partitions)]
        used = [*own, disk_folder(folder)] if is_partition(folder) else own
        numbers = _numbers(used)
        mounted, unseen_mounts = mounts_everywhere(numbers)
        loops, unseen_loops = loops_on(numbers, sysfs)
        open_files, unseen_files = opened_by(numbers)
        return DeviceState(
            id=id_path,
            name=folder.name,
            is_partition=is_partition(folder),
            identity=identity,
            model=_text(disk_folder(folder) / "device/model"),
            read_only=is_read_only(fd),
            partitions=tuple(partitions),
            holders=_holders(used),
            uses=(*mounted, *swaps(numbers), *loops, *btrfs_on(numbers, sysfs), *open_files),
            signatures=_signatures(node, [node, *(Path("/dev") / name for name in partitions)], runner),
            ancestors=_ancestors(_numbers(own), keep, sysfs),
            claimed=_claimed(node),
            twins=_twins(disk_folder(folder), identity, sysfs),
            blank_ends=not any(data.strip(b"\0") for data in read_ends(fd, identity.size_bytes)),
            unseen=(*unseen_mounts, *unseen_loops, *unseen_files, *outside_processes()),
            partuuid=partuuid_of(node, runner) if is_partition(folder) else None,
            overlapping=_overlapping(folder) if is_partition(folder) else (),
        )


def _numbers(folders: Iterable[Path]) -> Numbers:
    return {(folder / "dev").read_text().strip(): folder.name for folder in folders}


def _overlapping(folder: Path) -> tuple[str, ...]:
    """Return the other partitions of its disk that share sectors with a partition, which the kernel's claims do not show."""

    def sectors(part: Path) -> range:
        start = int((part / "start").read_text())
        return range(start, start + int((part / "size").read_text()))

    ours = sectors(folder)
    others = [part for part in sorted(disk_folder(folder).iterdir()) if is_partition(part) and part != folder]
    return tuple(
        part.name for part in others if max(ours.start, sectors(part).start) < min(ours.stop, sectors(part).stop)
    )


def _holders(folders: Iterable[Path]) -> tuple[Use, ...]:
    return tuple(
        Use(part.name, holder.name)
        for part in folders
        if (part / "holders").is_dir()
        for holder in sorted((part / "holders").iterdir())
    )


def _signatures(disk: Path, nodes: list[Path], runner: Runner) -> tuple[tuple[str, Signature], ...]:
    """Return signatures by kernel name; of several copies of one kind (a GPT, the labels of ZFS) only the first."""
    found = {}
    for node in nodes:
        if node != disk and not node.exists():
            continue  # a partition that no node was made for; the table that lists it is found on the disk
        for signature in signatures_of(node, runner):
            found.setdefault((node.name, signature.type), signature)
    return tuple((name, signature) for (name, _), signature in found.items())


def _ancestors(numbers: Numbers, keep: Iterable[Path], sysfs: Path) -> tuple[Use, ...]:
    """Return which of these devices are under what this machine and this run live on."""
    ours = set(numbers.values())
    found: dict[Use, None] = {}
    for place in (Path("/"), *keep, *(area for area in swap_areas() if area.is_file())):
        existing = next(path for path in (place, *place.parents) if os.access(path, os.F_OK))
        for name in read_stack(existing, sysfs).block_devices:
            if name in ours:
                found[Use(name, str(place))] = None
    return tuple(found)


def _claimed(node: Path) -> str | None:
    try:
        with opened(node, os.O_RDONLY | os.O_EXCL):
            return None
    except Refused as error:
        return error.message


def _twins(folder: Path, identity: Identity, sysfs: Path) -> tuple[str, ...]:
    """Return disks of the same serial number and size, such as the other path to a disk with two ports: its claims are not seen here.

    Namespaces of one NVMe drive share the serial number, and differ in their wwid; hidden ones are paths within the kernel.
    """
    if identity.serial is None:
        return ()
    size = _text(folder / "size")
    return tuple(
        other.name
        for other in sorted((sysfs / "block").iterdir())
        if other.name != folder.name
        and serial_of(other) == identity.serial
        and _text(other / "size") == size
        and _text(other / "hidden") != "1"
        and _wwid(other) == _wwid(folder)
    )


def _wwid(folder: Path) -> str | None:
    return _text(folder / "wwid") or _text(folder / "device/wwid")


def _text(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace").strip() or None
    except OSError:
        return None
