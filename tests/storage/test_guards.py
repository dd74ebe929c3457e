"""Every guard, with something that tries to get past it: loop devices dressed as disks, never anything else."""

import hashlib
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import signature_bytes
from disks import (
    MIB,
    SERIAL,
    WORD,
    Disk,
    command,
    disk,
    in_private_mounts,
    loop_device,
    serial_number,
    wait_for_detached,
)
from holding import (
    mapped_and_closed,
    opened_by_a_thread_of_a_zombie,
    opened_by_a_thread_with_files_of_its_own,
    opened_by_another,
    registered_with_io_uring,
    waiting,
)
from plinth.model.errors import PlinthError, Refused
from plinth.storage.devices.block_device import BY_ID
from plinth.storage.guards import DeviceGuard, RequestedDevice, reasons_against
from plinth.storage.guards.state import read_state
from plinth.storage.guards.uses import NotExamined
from plinth.system.runner import Runner

Attack = Callable[[Disk, Path, ExitStack], None]


def found_guards(
    target: Disk, requested: RequestedDevice | None = None, destroy: tuple[str, ...] = (WORD,)
) -> dict[str, str]:
    """Which guards refuse the disk: name to reason; the last reason of each."""
    state = read_state(str(target.id), [], Runner())
    return {reason.guard: reason.text for reason in reasons_against(state, requested or target.requested, destroy)}


def attacked(scratch: Path, attack: Attack) -> dict[str, str]:
    """The guards that refuse a disk that `attack` was done to, which stays as the attack left it."""

    def attempt() -> dict[str, str]:
        with disk(scratch) as target, ExitStack() as undo:
            attack(target, scratch, undo)
            before = digest_of_what_is_ours(target.node)
            found = found_guards(target)
            with pytest.raises(Refused) as refused:
                DeviceGuard("nvme", target.requested, [], [WORD]).check(Runner())
            assert refused.value.exit_code == 4
            assert refused.value.where == "storage.nvme"
            assert refused.value.hint
            assert digest_of_what_is_ours(target.node) == before
            return found

    return in_private_mounts(attempt)


def digest_of_what_is_ours(node: Path) -> str:
    """Of all that is on a disk but the pages of a swap area, which the kernel may write at any time."""
    content = node.read_bytes()
    page = mmap.PAGESIZE
    if content[page - 10 : page] == b"SWAPSPACE2":  # mkswap(8): the version and the last page, 1 KiB into the first one
        last_page = int.from_bytes(content[1028:1032], sys.byteorder)
        content = content[:page] + content[(last_page + 1) * page :]
    return hashlib.sha256(content).hexdigest()


def test_a_blank_disk_that_is_named_right_in_all_ways_is_taken(scratch: Path) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch) as target:
            DeviceGuard("nvme", target.requested, [], [WORD]).check(Runner())
            return found_guards(target)

    assert in_private_mounts(attempt) == {}


# In use. What is mounted is so read-only: else the kernel writes to it (superblock, inode tables) when it has the time.


def make_ext4(target: Disk) -> None:
    command("mkfs.ext4", "-q", target.node)


def mounted_here(target: Disk, scratch: Path, undo: ExitStack) -> None:
    make_ext4(target)
    (scratch / "here").mkdir()
    command("mount", "-o", "ro", target.node, scratch / "here")
    undo.callback(command, "umount", scratch / "here")


def mounted_as_btrfs(target: Disk, scratch: Path, undo: ExitStack) -> None:
    """The kernel lists it under another device: it is the second member."""
    other = undo.enter_context(loop_device(scratch / "other.img", 128 * MIB))
    command("truncate", "-s", "128M", target.image)
    command("losetup", "--set-capacity", target.node)
    command("mkfs.btrfs", "-q", "-d", "single", other, target.node)
    (scratch / "here").mkdir()
    command("mount", "-o", f"ro,device={target.node}", other, scratch / "here")
    undo.callback(command, "umount", scratch / "here")


def mounted_in_another_namespace(target: Disk, scratch: Path, undo: ExitStack) -> None:
    make_ext4(target)
    (scratch / "there").mkdir()
    undo.enter_context(
        waiting(
            "unshare", "--mount", "sh", "-c", f"mount -o ro {target.node} {scratch}/there && echo ready && read end"
        )
    )


def mounted_in_a_namespace_without_process(target: Disk, scratch: Path, undo: ExitStack) -> None:
    """Nothing but an open file keeps the namespace; no mount table that can be read names the mount."""
    make_ext4(target)
    (scratch / "there").mkdir()
    script = f"mount -o ro {target.node} {scratch}/there && echo ready && read end"
    with waiting("unshare", "--mount", "sh", "-c", script) as pid:
        undo.callback(os.close, os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY))


def swapped_to(target: Disk, scratch: Path, undo: ExitStack) -> None:
    command("mkswap", "-q", target.node, f"{10 * mmap.PAGESIZE // 1024}")  # the smallest that it makes
    command("swapon", target.node)
    undo.callback(command, "swapoff", target.node)


def under_a_loop_device(target: Disk, scratch: Path, undo: ExitStack) -> None:
    undo.enter_context(loop_device(target.node))


def under_a_loop_device_on_its_partition(target: Disk, scratch: Path, undo: ExitStack) -> None:
    partitioned(target, scratch, undo)
    undo.enter_context(loop_device(Path(f"{target.node}p1")))


def claimed(target: Disk, scratch: Path, undo: ExitStack) -> None:
    fd = os.open(target.node, os.O_RDONLY | os.O_EXCL)
    undo.callback(os.close, fd)


def reached_by_another_path(target: Disk, scratch: Path, undo: ExitStack) -> None:
    """The same disk once more, as one with two ports is; it is the other one that is mounted."""
    other = undo.enter_context(loop_device(scratch / "other.img", target.size_bytes))
    undo.enter_context(serial_number(other, SERIAL))
    command("mkfs.ext4", "-q", other)
    (scratch / "other").mkdir()
    command("mount", other, scratch / "other")
    undo.callback(command, "umount", scratch / "other")


def read_only(target: Disk, scratch: Path, undo: ExitStack) -> None:
    command("blockdev", "--setro", target.node)
    undo.callback(command, "blockdev", "--setrw", target.node)  # else the next file on this loop device is, too


def partitioned(target: Disk, scratch: Path, undo: ExitStack) -> None:
    write(target, 446, signature_bytes.mbr(first_sector=2048, sectors=16384))
    command("partx", "--update", target.node)
    undo.callback(command, "partx", "--delete", target.node)


def write(target: Disk, at: int, data: bytes) -> None:
    with target.node.open("r+b") as device:
        device.seek(at)
        device.write(data)


@pytest.mark.parametrize(
    ("attack", "guard", "says"),
    [
        (mounted_here, "use", "ext4 on {scratch}/here"),
        (mounted_here, "claim", "in use"),
        (mounted_as_btrfs, "use", "is in use: btrfs "),
        (mounted_as_btrfs, "claim", "in use"),
        (mounted_in_another_namespace, "use", "there in the mount namespace of process"),
        (mounted_in_another_namespace, "claim", "mounted in some namespace"),
        (mounted_in_a_namespace_without_process, "claim", "mounted in some namespace"),
        (swapped_to, "use", "is in use: swap"),
        (swapped_to, "claim", "in use"),
        (under_a_loop_device, "use", "is in use: loop device loop"),
        (under_a_loop_device_on_its_partition, "use", "is in use: loop device loop"),
        (claimed, "claim", "in use"),
        (opened_by_another, "use", "(sh)"),
        (mapped_and_closed, "use", "mapped into its memory"),
        (opened_by_a_thread_of_a_zombie, "use", "is in use: process"),
        (opened_by_a_thread_with_files_of_its_own, "use", "is in use: process"),
        (registered_with_io_uring, "use", "registered with io_uring"),
        (reached_by_another_path, "twin", "has the same serial number and size"),
        (read_only, "read-only", "is read-only"),
        (partitioned, "signature", "it has partitions: loop"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_device_in_use_is_refused(scratch: Path, attack: Attack, guard: str, says: str) -> None:
    found = attacked(scratch, attack)
    assert says.format(scratch=scratch) in found.get(guard, ""), found


def test_what_the_machine_lives_on_is_refused(scratch: Path) -> None:
    """A place to keep, a swap file and a loop file: each on a file system on the disk, unmounted where we look from."""

    def attempt() -> list[str]:
        with disk(scratch) as target:
            make_ext4(target)
            (scratch / "state").mkdir()
            command("mount", target.node, scratch / "state")
            try:
                (scratch / "state/upper.img").write_bytes(bytes(16 * MIB))
                with loop_device(scratch / "state/upper.img") as upper:
                    command("mkfs.ext4", "-q", upper)
                    (scratch / "upper").mkdir()
                    command("mount", upper, scratch / "upper")
                    state = read_state(str(target.id), [scratch / "upper" / "not" / "yet", scratch / "state"], Runner())
                    command("umount", scratch / "upper")
                wait_for_detached(upper)
            finally:
                command("umount", scratch / "state")
            reasons = reasons_against(state, target.requested, [WORD])
            return [reason.text for reason in reasons if reason.guard == "ancestor"]

    through_loop, direct = in_private_mounts(attempt)
    assert through_loop.startswith(f"{scratch}/upper/not/yet is stored on loop")
    assert direct.startswith(f"{scratch}/state is stored on loop")


# Not the one that was named


@pytest.mark.parametrize(
    ("change", "guard", "says"),
    [
        ({"serial": "S4EVNF0M512346"}, "serial", "its serial number is 'S4EVNF0M512345', not 'S4EVNF0M512346'"),
        ({"serial": "512345"}, "serial", "not '512345'"),
        ({"serial": SERIAL.lower()}, "serial", SERIAL.lower()),
        ({"size_bytes": 65 * MIB}, "size", "it has 64.0 MiB (67108864 bytes), not 65.0 MiB"),
        ({"size_bytes": 63 * MIB}, "size", "not 63.0 MiB"),
    ],
)
def test_another_serial_or_size_is_refused(scratch: Path, change: dict, guard: str, says: str) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch) as target:
            named = {"id": str(target.id), "serial": target.serial, "size_bytes": target.size_bytes} | change
            return found_guards(target, RequestedDevice(**named))

    assert says in in_private_mounts(attempt).get(guard, "")


def test_a_size_as_drives_are_sold_is_the_drives(scratch: Path) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch) as target:
            return found_guards(target, RequestedDevice(str(target.id), target.serial, 67 * 10**6))

    assert in_private_mounts(attempt) == {}


def test_a_disk_without_serial_is_refused(scratch: Path) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch, serial=None) as target:
            return found_guards(target, RequestedDevice(str(target.id), SERIAL, target.size_bytes))

    assert "reports no serial number" in in_private_mounts(attempt)["serial"]


@pytest.mark.parametrize("words", [(), ("51234",), ("12345",), ("S4EVNF0M512345",), ("yes", "--yes"), ("512345 ",)])
def test_without_the_right_word_nothing_is_destroyed(scratch: Path, words: tuple[str, ...]) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch) as target:
            return found_guards(target, destroy=words)

    found = in_private_mounts(attempt)
    assert list(found) == ["word"]
    assert "the command line does not say" in found["word"]


def test_a_partition_is_refused(scratch: Path) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch) as target, ExitStack() as undo:
            partitioned(target, scratch, undo)
            part = target._replace(id=BY_ID / "ata-disk-part1")
            part.id.symlink_to(f"../../{target.node.name}p1")
            return found_guards(part)

    assert "only by its PARTUUID is one taken" in in_private_mounts(attempt)["partition"]


# Names that are not stable, or lead astray


def test_only_links_in_by_id_are_taken(scratch: Path) -> None:
    def attempt() -> dict[str, str]:
        with disk(scratch) as target:
            (BY_ID / "folder").mkdir()
            (BY_ID / "to-file").symlink_to(target.image)
            (BY_ID / "chain").symlink_to(target.id)
            (BY_ID / "dangling").symlink_to("../../nothing")
            (BY_ID / "to-null").symlink_to("/dev/null")
            os.mknod(BY_ID / "node", 0o600 | 0o060000, target.node.stat().st_rdev)
            (BY_ID / "to-node").symlink_to("node")
            os.mknod("/dev/shm/astray", 0o600 | 0o060000, target.node.stat().st_rdev)
            (BY_ID / "astray").symlink_to("/dev/shm/astray")
            (scratch / "by-id").symlink_to(BY_ID)
            refusals = {}
            for name in (
                str(target.node),
                f"/dev/disk/../disk/by-id/{target.id.name}",
                f"{BY_ID}//{target.id.name}",
                f"{BY_ID}/folder/../{target.id.name}",
                f"{scratch}/by-id/{target.id.name}",
                f"{BY_ID}/",
                f"{BY_ID}/..",
                *(
                    f"{BY_ID}/{name}"
                    for name in ("folder", "to-file", "dangling", "to-null", "node", "to-node", "astray")
                ),
            ):
                try:
                    read_state(name, [], Runner())
                except PlinthError as error:
                    refusals[name] = (error.exit_code, error.message)
                else:
                    refusals[name] = (0, "taken")
            Path("/dev/shm/astray").unlink()
            assert read_state(f"{BY_ID}/chain", [], Runner()).name == target.node.name
            return refusals

    refusals = in_private_mounts(attempt)
    assert len(refusals) == 14
    assert {name: said for name, said in refusals.items() if said[0] != 4} == {}
    said = {name.removeprefix(f"{BY_ID}/"): message for name, (_, message) in refusals.items()}
    assert "leads astray: to /dev/shm/astray" in said["astray"]
    assert "no link to a device" in said["node"]
    assert "no link to a device" in said["to-node"]


def test_every_reason_is_reported_at_once(scratch: Path) -> None:
    def attempt() -> tuple[str, ...]:
        with disk(scratch) as target, ExitStack() as undo:
            mounted_here(target, scratch, undo)
            with pytest.raises(Refused) as refused:
                DeviceGuard("nvme", RequestedDevice(str(target.id), "other", 1), [], []).check(Runner())
            return (refused.value.message, *refused.value.details)

    reported = "\n".join(in_private_mounts(attempt))
    for part in ("serial number", "bytes), not", "ext4 on", "in use", "has a signature", "command line"):
        assert part in reported


# What we cannot see


def test_processes_that_cannot_be_seen_are_reported(scratch: Path) -> None:
    """In a container /proc does not show the processes outside; they might have the disk open without any claim."""
    (scratch / "read.py").write_text(
        "import sys\n"
        "from plinth.storage.guards.uses import outside_processes\n"
        "print([unseen.what for unseen in outside_processes()])\n"
    )
    script = [sys.executable, scratch / "read.py"]
    assert command(*script) == "[]"
    inside = command("unshare", "--pid", "--fork", "--mount-proc", *script)
    assert inside == "['processes outside this container']"


def test_processes_that_are_closed_to_us_are_reported(scratch: Path) -> None:
    """Without the capability to look into processes that have it, as in a container with few rights."""
    (scratch / "read.py").write_text(
        "from plinth.storage.guards.uses import opened_by\n"
        "from plinth.storage.guards.uses import mounts_everywhere\n"
        "numbers = {'7:99': 'loop99'}\n"
        "for _, unseen in (mounts_everywhere(numbers), opened_by(numbers)):\n"
        "    print('\\n'.join(str(tuple(one)) for one in unseen))\n"
    )
    with waiting("unshare", "--mount", "sh", "-c", "echo ready; read end") as pid:
        drop = ("setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace")
        reported = command(*drop, sys.executable, scratch / "read.py").splitlines()
        assert f"('mounts of process {pid} (sh)', 'Permission denied')" in reported
        assert f"('open files of process {pid} (sh)', 'Permission denied')" in reported


def test_descriptors_in_flight_are_reported(scratch: Path) -> None:
    """Sent over a socket, closed, and not received yet: of such a file nothing is known but that there is one."""
    program = (
        "import os, socket, sys\n"
        "ours, theirs = socket.socketpair()\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "socket.send_fds(ours, [b'x'], [fd])\n"
        "os.close(fd)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )

    def attempt() -> tuple[int, list[str]]:
        with disk(scratch) as target, ExitStack() as undo:
            write(target, 0, b"x")
            pid = undo.enter_context(waiting(sys.executable, "-c", program, str(target.node)))
            state = read_state(str(target.id), [], Runner())
            return pid, [reason.text for reason in reasons_against(state, target.requested, [WORD])]

    pid, found = in_private_mounts(attempt)
    assert any(f"files that are on their way to process {pid} " in text for text in found), found


def test_a_disk_that_is_not_blank_is_refused_where_users_may_be_unseen(scratch: Path) -> None:
    def attempt() -> list[list[str]]:
        with disk(scratch) as target:
            state = replace(read_state(str(target.id), [], Runner()), unseen=(NotExamined("a place", "closed"),))
            write(target, target.size_bytes - 1, b"x")
            used = replace(read_state(str(target.id), [], Runner()), unseen=state.unseen)
            return [[reason.guard for reason in reasons_against(s, target.requested, [WORD])] for s in (state, used)]

    assert in_private_mounts(attempt) == [[], ["unseen"]]
