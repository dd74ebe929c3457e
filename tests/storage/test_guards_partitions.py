"""Partitions as devices: by PARTUUID, guarded as disks are, and their neighbours left alone. On loop devices dressed as disks."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from disks import MIB, SERIAL, WORD, Disk, command, digest, in_private_mounts, loop_device, partitioned_disk
from plinth.model.errors import Refused
from plinth.model.storage import DeviceStorage
from plinth.observe.facts import host_facts
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage import make
from plinth.storage.devices.block_device import BY_ID, BY_PARTUUID
from plinth.storage.guards import DeviceGuard, RequestedDevice, reasons_against
from plinth.storage.guards.state import read_state
from plinth.system.journal import Journal
from plinth.system.mounts import mounts_within
from plinth.system.owner import server_owner
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import Runner

DISK_BYTES = 96 * MIB
PART_BYTES = 32 * MIB
PART_WORD = "c3d-02"
"""The end of the PARTUUID of the second partition."""


def on_two(scratch: Path, function: Callable[[Disk, Disk, Disk, ExitStack], object]) -> object:
    """What `function` returns of a disk and its two partitions, the first of which is mounted with a file on it."""

    def attempt() -> object:
        with (
            loop_device(scratch / "disk.img", DISK_BYTES) as node,
            partitioned_disk(scratch / "disk.img", node, PART_BYTES, PART_BYTES) as (whole, (first, second)),
            ExitStack() as undo,
        ):
            command("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", first.node)
            (scratch / "neighbour").mkdir()
            command("mount", first.node, scratch / "neighbour")
            undo.callback(command, "umount", scratch / "neighbour")
            (scratch / "neighbour/file").write_text("of another user")
            return function(whole, first, second, undo)

    return in_private_mounts(attempt)


def found_guards(
    target: Disk, requested: RequestedDevice | None = None, destroy: tuple[str, ...] = (PART_WORD,)
) -> dict[str, str]:
    """Which guards refuse it: name to reason; the last reason of each."""
    state = read_state(str(target.id), [], Runner())
    return {reason.guard: reason.text for reason in reasons_against(state, requested or target.requested, destroy)}


def test_a_blank_partition_is_taken_next_to_one_that_is_in_use(scratch: Path) -> None:
    def attempt(whole: Disk, first: Disk, second: Disk, undo: ExitStack) -> list[dict[str, str]]:
        assert second.requested.word == PART_WORD
        DeviceGuard("part", second.requested, [], [PART_WORD]).check(Runner())
        return [found_guards(second), found_guards(second, destroy=(WORD,)), found_guards(first, destroy=("c3d-01",))]

    taken, by_the_word_of_the_disk, neighbour = on_two(scratch, attempt)  # pyright: ignore[reportGeneralTypeIssues]
    assert taken == {}
    assert list(by_the_word_of_the_disk) == ["word"]
    assert {"use", "claim", "signature"} <= set(neighbour)


def mounted(whole: Disk, second: Disk, scratch: Path, undo: ExitStack) -> None:
    command("mkfs.ext4", "-q", second.node)
    (scratch / "here").mkdir()
    command("mount", second.node, scratch / "here")
    undo.callback(command, "umount", scratch / "here")


def formatted(whole: Disk, second: Disk, scratch: Path, undo: ExitStack) -> None:
    command("mkfs.ext4", "-q", second.node)


def under_a_loop_device(whole: Disk, second: Disk, scratch: Path, undo: ExitStack) -> None:
    undo.enter_context(loop_device(second.node))


def disk_under_a_loop_device(whole: Disk, second: Disk, scratch: Path, undo: ExitStack) -> None:
    undo.enter_context(loop_device(whole.node))


def claimed(whole: Disk, second: Disk, scratch: Path, undo: ExitStack) -> None:
    undo.callback(os.close, os.open(second.node, os.O_RDONLY | os.O_EXCL))


def read_only(whole: Disk, second: Disk, scratch: Path, undo: ExitStack) -> None:
    command("blockdev", "--setro", second.node)
    undo.callback(command, "blockdev", "--setrw", second.node)


@pytest.mark.parametrize(
    ("attack", "guard", "says"),
    [
        (mounted, "use", "p2 is in use: ext4 on "),
        (mounted, "claim", "in use"),
        (formatted, "signature", "p2 has a signature: ext4"),
        (under_a_loop_device, "use", "p2 is in use: loop device loop"),
        (disk_under_a_loop_device, "use", "is in use: loop device loop"),
        (claimed, "claim", "in use"),
        (read_only, "read-only", "p2 is read-only"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_partition_in_use_is_refused(
    scratch: Path, attack: Callable[[Disk, Disk, Path, ExitStack], None], guard: str, says: str
) -> None:
    def attempt(whole: Disk, first: Disk, second: Disk, undo: ExitStack) -> dict[str, str]:
        attack(whole, second, scratch, undo)
        with pytest.raises(Refused):
            DeviceGuard("part", second.requested, [], [PART_WORD]).check(Runner())
        return found_guards(second)

    found = on_two(scratch, attempt)
    assert isinstance(found, dict)
    assert says in found.get(guard, ""), found


def test_what_this_machine_lives_on_is_refused_and_its_neighbour_is_not(scratch: Path) -> None:
    def attempt(whole: Disk, first: Disk, second: Disk, undo: ExitStack) -> list[list[str]]:
        keep = [scratch / "neighbour/not/yet"]
        states = [read_state(str(part.id), keep, Runner()) for part in (first, second)]
        return [[device for device, _ in state.ancestors] for state in states]

    of_first, of_second = on_two(scratch, attempt)  # pyright: ignore[reportGeneralTypeIssues]
    assert [name[-2:] for name in of_first] == ["p1"]
    assert of_second == []


def test_a_name_that_is_of_another_partition_or_none_is_refused(scratch: Path) -> None:
    """A link that is out of date, a link to the whole disk, and a partition by its link in by-id."""

    def attempt(whole: Disk, first: Disk, second: Disk, undo: ExitStack) -> list[str]:
        stale = second._replace(id=BY_PARTUUID / "0a1b2c3d-07")
        stale.id.symlink_to(f"../../{second.node.name}")
        to_disk = whole._replace(id=BY_PARTUUID / "0a1b2c3d-08")
        to_disk.id.symlink_to(f"../../{whole.node.name}")
        by_id = second._replace(id=BY_ID / "ata-disk-part2")
        by_id.id.symlink_to(f"../../{second.node.name}")
        return [found_guards(part).get("partition", "taken") for part in (stale, to_disk, by_id)]

    stale, to_disk, by_id = on_two(scratch, attempt)  # pyright: ignore[reportGeneralTypeIssues]
    assert "is 0a1b2c3d-02, not 0a1b2c3d-07" in stale
    assert "is none, not 0a1b2c3d-08" in to_disk
    assert "only by its PARTUUID is one taken" in by_id


@pytest.mark.parametrize(
    ("change", "guard", "says"),
    [
        ({"serial": "S4EVNF0M512346"}, "serial", f"its serial number is {SERIAL!r}"),
        ({"size_bytes": DISK_BYTES}, "size", "it has 32.0 MiB"),
    ],
)
def test_the_serial_is_that_of_its_disk_and_the_size_its_own(
    scratch: Path, change: dict, guard: str, says: str
) -> None:
    def attempt(whole: Disk, first: Disk, second: Disk, undo: ExitStack) -> dict[str, str]:
        named = {"id": str(second.id), "serial": second.serial, "size_bytes": second.size_bytes} | change
        return found_guards(second, RequestedDevice(**named))

    found = on_two(scratch, attempt)
    assert isinstance(found, dict)
    assert says in found.get(guard, "")


def test_a_partition_that_shares_sectors_with_another_is_refused(scratch: Path) -> None:
    """Which the kernel takes from a table, and whose mounts make no claim on one another."""

    def attempt() -> str:
        image = scratch / "disk.img"
        with loop_device(image, DISK_BYTES) as node, partitioned_disk(image, node, PART_BYTES) as (_, (part,)):
            sysfs = scratch / "sysfs"
            folder = Path(f"/sys/class/block/{part.node.name}").resolve()
            copy_of_sysfs(folder, sysfs, {"start": "2048", "size": "65536"}, {"start": "4096", "size": "8"})
            state = read_state(str(part.id), [], Runner(), sysfs)
            return "; ".join(reason.text for reason in reasons_against(state, part.requested, ["c3d-01"]))

    assert "shares sectors with overlapping" in str(in_private_mounts(attempt))


def copy_of_sysfs(folder: Path, sysfs: Path, own: dict[str, str], other: dict[str, str]) -> None:
    """What is read of a partition there, with another partition on the same disk."""
    disk_folder = sysfs / "devices" / folder.parent.name
    for name, files in ((folder.name, own), ("overlapping", other)):
        (disk_folder / name).mkdir(parents=True)
        for file, text in {**files, "partition": "1", "dev": (folder / "dev").read_text()}.items():
            (disk_folder / name / file).write_text(text)
    (disk_folder / "dev").write_text((folder.parent / "dev").read_text())
    (disk_folder / "serial").write_text(SERIAL)
    (sysfs / "dev/block").mkdir(parents=True)
    (sysfs / "block").mkdir()
    (sysfs / "dev/block" / (folder / "dev").read_text().strip()).symlink_to(disk_folder / folder.name)


def test_a_partition_that_was_moved_since_the_check_is_not_written_to(scratch: Path) -> None:
    def attempt() -> str:
        image = scratch / "disk.img"
        with loop_device(image, DISK_BYTES) as node:
            with partitioned_disk(image, node, PART_BYTES) as (_, (part,)):
                guard = DeviceGuard("part", part.requested, [], [part.requested.word])
                guard.check(Runner())
            with (
                partitioned_disk(image, node, PART_BYTES, first_byte=2 * MIB) as (_, (moved,)),
                pytest.raises(Refused) as refused,
                guard.held(moved.node, Runner()),
            ):
                raise AssertionError("it was held")
        return refused.value.message

    assert "start sector was 2048, is 4096" in str(in_private_mounts(attempt))


def test_a_partition_is_formatted_used_and_given_back_and_the_rest_of_the_disk_is_as_it_was(
    state_dir: Path, scratch: Path
) -> None:
    def attempt(whole: Disk, first: Disk, second: Disk, undo: ExitStack) -> None:
        command("umount", scratch / "neighbour")
        undo.pop_all()
        table, neighbour = whole.node.read_bytes()[:MIB], digest(first.node)
        spec = DeviceStorage(kind="device", id=str(second.id), serial=second.serial, size=second.size_bytes)
        storage = make(
            {"part": spec},
            run_id="t1",
            host=host_facts(),
            owner=server_owner(),
            work_root=ensure(work_dir()),
            destroy=(PART_WORD,),
        )["part"]
        journal = Journal.create("t1", UNDO_HANDLERS)
        facts = storage.prepare(Runner(), journal)
        assert facts.filesystem == "ext4"
        assert second.node.name in facts.block_devices
        command("runuser", "-u", server_owner().name, "--", "touch", storage.mount_point / "file")
        assert digest(first.node) == neighbour
        storage.teardown(Runner(), journal)
        journal.close()
        assert mounts_within(scratch / "state") == []
        assert command("wipefs", "--no-act", second.node) == ""
        assert (whole.node.read_bytes()[:MIB], digest(first.node)) == (table, neighbour)
        assert found_guards(second) == {}

    on_two(scratch, attempt)
