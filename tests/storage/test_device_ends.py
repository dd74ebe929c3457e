"""The first and last MiB of a disk: kept before it is used, and back afterwards, unless it has become another's."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from disks import MIB, Disk, command, digest, disk, in_private_mounts, serial_number
from plinth.model.errors import Refused
from plinth.storage.devices.device_ends import DeviceUndoState, restore_ends, save_ends
from plinth.system.directory import make_directory
from plinth.system.owner import server_owner
from plinth.system.runner import Runner

LABEL = "plinth-t1"
FS_LABEL = "p-t1-nvme"


def saved(target: Disk, scratch: Path) -> Path:
    """The folder with the kept ends of a disk."""
    make_directory(scratch / "storage", LABEL, server_owner())
    folder = scratch / "storage/saved"
    save_ends(
        DeviceUndoState(id=str(target.id), serial=target.serial, size_bytes=target.size_bytes, labels=(FS_LABEL,)),
        folder,
    )
    return folder


def scribble(target: Disk) -> None:
    """Data of no known form, at the ends and elsewhere."""
    with target.node.open("r+b") as device:
        for at in (0, 512, MIB - 8, 10 * MIB, target.size_bytes - MIB, target.size_bytes - 8):
            device.seek(at)
            device.write(os.urandom(8))


@pytest.mark.parametrize("used", ["ext4", "btrfs", "nothing", "cut short"])
def test_after_use_the_ends_are_as_they_were(scratch: Path, used: str) -> None:
    def attempt() -> None:
        with disk(scratch, size_bytes=128 * MIB) as target:
            scribble(target)
            before = target.node.read_bytes()
            folder = saved(target, scratch)
            if used in ("ext4", "btrfs"):
                command(f"mkfs.{used}", "-q", "-L", FS_LABEL, target.node)
            elif used == "cut short":
                with target.node.open("r+b") as device:
                    device.write(b"half a superblock")
            restore_ends(folder, LABEL, Runner())
            after = target.node.read_bytes()
            assert (after[:MIB], after[-MIB:]) == (before[:MIB], before[-MIB:])
            if used in ("nothing", "cut short"):
                assert after == before
            restore_ends(folder, LABEL, Runner())  # a second time is no error
            assert target.node.read_bytes() == after

    in_private_mounts(attempt)


def another_file_system(target: Disk, folder: Path) -> None:
    command("mkfs.ext4", "-q", "-L", "photographs", target.node)


def file_system_without_label(target: Disk, folder: Path) -> None:
    command("mkfs.ext4", "-q", target.node)


def ours_next_to_anothers(target: Disk, folder: Path) -> None:
    command("mkfs.btrfs", "-q", "-L", FS_LABEL, target.node)
    with target.node.open("r+b") as device:  # the boot sector leaves room for both
        device.seek(510)
        device.write(b"\x55\xaa")


def claimed(target: Disk, folder: Path) -> None:
    command("mkfs.ext4", "-q", "-L", FS_LABEL, target.node)
    os.open(target.node, os.O_RDONLY | os.O_EXCL)  # closed with the child


def another_run_has_the_folder(target: Disk, folder: Path) -> None:
    (folder.parent / ".plinth-label").write_text("plinth-t2\n")


def cut_short(target: Disk, folder: Path) -> None:
    with (folder / "last").open("r+b") as file:
        file.truncate(MIB - 1)


def changed_by_hand(target: Disk, folder: Path) -> None:
    saved_device = json.loads((folder / "device.json").read_text())
    (folder / "device.json").write_text(json.dumps(saved_device | {"labels": "all"}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (another_file_system, "it has ext4 labelled 'photographs' at byte 1080, which is not ours"),
        (file_system_without_label, "which is not ours"),
        (ours_next_to_anothers, "it has dos at byte 510, which is not ours"),
        (claimed, "in use"),
        (another_run_has_the_folder, "does not have our label"),
        (cut_short, "not whole"),
        (changed_by_hand, "cannot be read"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_has_become_anothers_is_left_alone(scratch: Path, change: Callable[[Disk, Path], None], says: str) -> None:
    def attempt() -> str:
        with disk(scratch, size_bytes=128 * MIB) as target:
            folder = saved(target, scratch)
            change(target, folder)
            before = digest(target.node)
            with pytest.raises(Refused) as refused:
                restore_ends(folder, LABEL, Runner())
            assert digest(target.node) == before
            return refused.value.message

    assert says in in_private_mounts(attempt)


def test_another_disk_under_the_same_id_is_left_alone(scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch) as target:
            folder = saved(target, scratch)
            with serial_number(target.node, "another"):
                with pytest.raises(Refused) as refused:
                    restore_ends(folder, LABEL, Runner())
            return refused.value.message

    assert "it is another disk: serial number another" in in_private_mounts(attempt)


def test_a_save_that_was_cut_short_restores_nothing(scratch: Path) -> None:
    """device.json comes last; before it is there, nothing was written to the disk."""

    def attempt() -> None:
        with disk(scratch) as target:
            scribble(target)
            folder = saved(target, scratch)
            (folder / "device.json").unlink()
            (folder / "first").write_bytes(b"half")
            before = digest(target.node)
            restore_ends(folder, LABEL, Runner())
            assert digest(target.node) == before

    in_private_mounts(attempt)


def test_a_disk_in_use_is_not_kept(scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch) as target:
            os.open(target.node, os.O_RDONLY | os.O_EXCL)
            with pytest.raises(Refused) as refused:
                saved(target, scratch)
            return refused.value.message

    assert "in use" in in_private_mounts(attempt)
