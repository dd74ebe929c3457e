"""A signature of any kind, at the beginning or the end, on the disk or a partition of it, keeps a disk from being taken."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

import signature_bytes
from disks import MIB, WORD, attach_again, command, digest, disk, in_private_mounts, loop_device
from plinth.model.errors import Refused
from plinth.storage.devices.block_device import filesystem_uuid, signatures_of
from plinth.storage.guards import DeviceGuard
from plinth.system.runner import Runner
from signature_bytes import Written

DISK_BYTES = 128 * MIB
LARGE_DISK_BYTES = 320 * MIB  # mkfs.xfs makes nothing smaller than 300 MiB


def reasons(scratch: Path, prepare: Callable[[Path], None], size_bytes: int = DISK_BYTES) -> str:
    """Why a disk that was prepared so is refused; it stays as it was."""

    def attempt() -> str:
        with disk(scratch, size_bytes=size_bytes) as target:
            prepare(target.node)
            before = digest(target.node)
            with pytest.raises(Refused) as refused:
                DeviceGuard("nvme", target.requested, [], [WORD]).check(Runner())
            assert digest(target.node) == before
            assert "wipefs" in (refused.value.hint or "")
            return "; ".join([refused.value.message, *refused.value.details])

    return in_private_mounts(attempt)


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (("mkfs.ext4", "-q"), "ext4"),
        (("mkfs.ext4", "-q", "-O", "journal_dev"), "jbd"),
        (("mkfs.xfs", "-q"), "xfs"),
        (("mkfs.btrfs", "-q"), "btrfs"),
        (("mkswap", "-q"), "swap"),
        (("pvcreate", "-q", "--config", 'devices{scan=["/dev"] global_filter=["a|^NODE$|","r|.*|"]}'), "LVM2_member"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_the_tools_of_the_distribution_make_is_refused(scratch: Path, argv: tuple[str, ...], kind: str) -> None:
    def make(node: Path) -> None:
        command(*(word.replace("NODE", str(node)) for word in argv), node)

    assert f"has a signature: {kind} " in reasons(scratch, make, LARGE_DISK_BYTES if kind == "xfs" else DISK_BYTES)


@pytest.mark.parametrize("content", signature_bytes.ALL, ids=lambda content: content.__name__)
def test_every_other_signature_is_refused(scratch: Path, content: Callable[[int], list[Written]]) -> None:
    def write(node: Path) -> None:
        with node.open("r+b") as device:
            for at, data in content(DISK_BYTES):
                device.seek(at)
                device.write(data)

    assert f"has a signature: {signature_bytes.ALL[content]} " in reasons(scratch, write)


def test_a_signature_inside_a_partition_is_reported_too(scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch, size_bytes=DISK_BYTES) as target, ExitStack() as undo:
            with target.node.open("r+b") as device:
                device.seek(446)
                device.write(signature_bytes.mbr(first_sector=2048, sectors=65536))
            command("partx", "--update", target.node)
            undo.callback(command, "partx", "--delete", target.node)
            command("mkfs.ext4", "-q", "-L", "photographs", f"{target.node}p1")
            with pytest.raises(Refused) as refused:
                DeviceGuard("nvme", target.requested, [], [WORD]).check(Runner())
            return "; ".join([refused.value.message, *refused.value.details])

    reported = in_private_mounts(attempt)
    assert "p1 has a signature: ext4 labelled 'photographs'" in reported
    assert "it has partitions" in reported


def test_a_blank_file_has_no_signature_and_a_labelled_one_its_label(scratch: Path) -> None:
    image = scratch / "image"
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    assert signatures_of(image, Runner()) == ()
    command("mkfs.ext4", "-q", "-L", "p-label", image)
    (found,) = signatures_of(image, Runner())
    assert (found.type, found.offset_bytes, found.label) == ("ext4", 0x438, "p-label")


def test_the_identity_of_a_file_system_is_that_of_what_is_there_now(scratch: Path) -> None:
    """The cache of blkid answers for 2 s with what was there before."""
    identities = [f"{number}{number}{number}{number}0000-0000-4000-8000-000000000000" for number in (1, 2)]
    images = [scratch / f"{number}.img" for number in (1, 2)]
    for image, identity in zip(images, identities, strict=True):
        image.write_bytes(bytes(8 * MIB))
        command("mkfs.ext4", "-q", "-U", identity, image)
    with loop_device(images[0]) as node:
        command("blkid", node)
        command("losetup", "--detach", node)
        attach_again(node, images[1])
        assert filesystem_uuid(node, Runner()) == identities[1]
