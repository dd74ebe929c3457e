"""Between check and use: if anything changes after a disk was checked, nothing is written to another one or a used one."""

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from disks import MIB, WORD, Disk, attach_again, command, digest, disk, in_private_mounts, loop_device, wait_for_others
from holding import (
    mapped_and_closed,
    opened_by_a_thread_of_a_zombie,
    opened_by_a_thread_with_files_of_its_own,
    opened_by_another,
    registered_with_io_uring,
)
from plinth.model.errors import PlinthError, Refused
from plinth.storage.guards import DeviceGuard, held_devices
from plinth.system.runner import Runner

Change = Callable[[Disk, Path, ExitStack], None]


def same_name_another_disk(target: Disk, scratch: Path, undo: ExitStack) -> None:
    """Pulled out and another put in: node, device number, size and serial number are as before."""
    other = scratch / "other.img"
    other.write_bytes(b"precious".ljust(target.size_bytes, b"\0"))
    command("losetup", "--detach", target.node)
    attach_again(target.node, other)


def grown(target: Disk, scratch: Path, undo: ExitStack) -> None:
    command("truncate", "--size", str(2 * target.size_bytes), target.image)
    command("losetup", "--set-capacity", target.node)


def id_leads_to_another(target: Disk, scratch: Path, undo: ExitStack) -> None:
    node = undo.enter_context(loop_device(scratch / "other.img", target.size_bytes))
    target.id.unlink()
    target.id.symlink_to(f"../../{node.name}")


def mounted(target: Disk, scratch: Path, undo: ExitStack) -> None:
    command("mkfs.ext4", "-q", target.node)
    (scratch / "here").mkdir()
    # Read only: ext4 writes to what is mounted whenever it likes, and here nobody may have written.
    command("mount", "-o", "ro,noload", target.node, scratch / "here")
    undo.callback(command, "umount", scratch / "here")


def formatted(target: Disk, scratch: Path, undo: ExitStack) -> None:
    command("mkfs.ext4", "-q", target.node)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (same_name_another_disk, "it is not the disk that was checked: diskseq was"),
        (grown, "size bytes was 67108864, is 134217728"),
        (id_leads_to_another, "it is not the disk that was checked: number was"),
        (mounted, "in use: mounted in some namespace"),
        (formatted, "it now has ext4"),
        (opened_by_another, "it is in use now: process"),
        (mapped_and_closed, "mapped into its memory"),
        (opened_by_a_thread_of_a_zombie, "it is in use now: process"),
        (opened_by_a_thread_with_files_of_its_own, "it is in use now: process"),
        (registered_with_io_uring, "registered with io_uring"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_changes_after_the_check_is_seen_before_the_write(scratch: Path, change: Change, says: str) -> None:
    def attempt() -> str:
        with disk(scratch) as target, ExitStack() as undo:
            guard = DeviceGuard("nvme", target.requested, [], [WORD])
            guard.check(Runner())
            change(target, scratch, undo)
            before = digest(target.node)
            with pytest.raises(Refused) as refused, guard.held(target.node, Runner()):
                command("mkfs.ext4", "-q", "-F", target.node)
            assert digest(target.node) == before
            return refused.value.message

    assert says in in_private_mounts(attempt)


def test_without_change_the_command_runs(scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch) as target:
            guard = DeviceGuard("nvme", target.requested, [], [WORD])
            guard.check(Runner())
            with guard.held(target.node, Runner()):
                command("mkfs.ext4", "-q", "-L", "p-ours", target.node)
            return command("blkid", "-p", "-o", "value", "-s", "LABEL", target.node)

    assert in_private_mounts(attempt) == "p-ours"


def test_while_it_is_held_its_name_goes_to_no_other_disk(scratch: Path) -> None:
    """Pulled out while the tool runs: the name stays with what was pulled until the tool has ended."""

    def attempt() -> tuple[str, bool]:
        with disk(scratch) as target:
            guard = DeviceGuard("nvme", target.requested, [], [WORD])
            guard.check(Runner())
            with guard.held(target.node, Runner()):
                command("losetup", "--detach", target.node)
                stood_on = command("losetup", "--noheadings", "--output", "BACK-FILE", target.node)
                with loop_device(scratch / "other.img", MIB) as other:
                    another = other != target.node
            attach_again(target.node, target.image)
            return stood_on, another

    stood_on, another = in_private_mounts(attempt)
    assert stood_on.startswith(str(scratch / "disk.img"))
    assert another


# Loop devices of ours


@pytest.fixture
def image(scratch: Path) -> Path:
    path = scratch / "image"
    with path.open("wb") as file:
        file.truncate(64 * MIB)
    return path


def test_a_loop_device_on_our_file_is_ours(scratch: Path, image: Path) -> None:
    with loop_device(image) as node:
        link = scratch / "device"
        link.symlink_to(node)
        with held_devices([link], {link: image}, Runner()):
            command("mkfs.ext4", "-q", link)
        with pytest.raises(Refused, match="it now has ext4"), held_devices([link], {link: image}, Runner()):
            raise AssertionError("not reached")


def another_file_in_its_place(link: Path, image: Path) -> None:
    image.rename(image.with_name("moved"))
    image.write_bytes(bytes(64 * MIB))


def another_file_attached(link: Path, image: Path) -> None:
    other = image.with_name("precious")
    other.write_bytes(bytes(64 * MIB))
    command("losetup", "--detach", link)
    command("losetup", link.resolve(), other)


def detached(link: Path, image: Path) -> None:
    command("losetup", "--detach", link)


def link_led_to_a_disk(link: Path, image: Path) -> None:
    link.unlink()
    link.symlink_to("/dev/null")


def link_led_to_a_file(link: Path, image: Path) -> None:
    link.unlink()
    link.symlink_to(image)


def link_gone(link: Path, image: Path) -> None:
    link.unlink()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (another_file_in_its_place, "is not backed by our file"),
        (another_file_attached, "is not backed by our file"),
        (detached, "is not backed by our file|no disk is behind it"),
        (link_led_to_a_disk, "not a block device"),
        (link_led_to_a_file, "not a block device"),
        (link_gone, "no such directory"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_loop_device_that_is_no_longer_ours_is_not_written_to(
    scratch: Path, image: Path, change: Callable[[Path, Path], None], says: str
) -> None:
    link = scratch / "device"
    node = Path(command("losetup", "--show", "--find", image))
    wait_for_others(node)
    link.symlink_to(node)
    try:
        change(link, image)
        with pytest.raises(PlinthError, match=says), held_devices([link], {link: image}, Runner()):
            subprocess.run(["mkfs.ext4", "-q", link], check=True)
        assert not any(image.read_bytes())
    finally:
        if change is not detached:
            command("losetup", "--detach", node)


def test_a_loop_device_that_is_mounted_is_not_written_to(scratch: Path, image: Path) -> None:
    with loop_device(image) as node:
        command("mkfs.ext4", "-q", node)
        (scratch / "here").mkdir()
        command("mount", node, scratch / "here")
        try:
            with pytest.raises(Refused, match="in use"), held_devices([node], {node: image}, Runner()):
                raise AssertionError("not reached")
        finally:
            command("umount", scratch / "here")
