"""A storage is judged by everything below it: real stacks whose top alone keeps what it acknowledges."""

import subprocess
from pathlib import Path

import pytest

from plinth.analyse.safety import storage_findings
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.plan import DATA_ROLE
from plinth.server.facts import preloaded
from plinth.system.runner import Runner
from plinth.system.unmount import umount_command
from waiting import wait_until

TOP = '[storage.s]\nkind = "loop"\nsize = "64MiB"\non = "base"\n'
BASES = {
    "a loop": ('kind = "loop"\nsize = "160MiB"', None),
    "a loop without barriers": ('kind = "loop"\nsize = "160MiB"\nmount_options = ["nobarrier"]', "nobarrier"),
    "a loop that says write through": (
        'kind = "loop"\nsize = "160MiB"\nqueue = { write_cache = "write through" }',
        "the kernel sends",
    ),
    "an emulated disk": ('kind = "emulated"\nprofile = "ideal"\nsize = "160MiB"', None),
    "a disk that ignores flushes": (
        'kind = "emulated"\nprofile = "ideal"\nsize = "160MiB"\nlie = "ignore-flush"',
        "lies about flushes",
    ),
}


def losing(facts: StorageFacts) -> list[str]:
    return [why for grade, why in storage_findings(DATA_ROLE, facts) if grade == "does not keep"]


@pytest.mark.long
@pytest.mark.parametrize("base", BASES)
def test_a_loop_is_judged_by_the_storage_that_its_file_is_on(made, base: str) -> None:
    keys, said = BASES[base]
    found = losing(made.prepare(f"{TOP}[storage.base]\n{keys}\n")["s"])
    assert any(said in why for why in found) if said else found == [], found


@pytest.mark.parametrize("option", ["barrier", "nobarrier"])
def test_a_loop_is_judged_by_a_mount_of_the_users_own(made, scratch: Path, option: str) -> None:
    image, point, runner = scratch / "image", scratch / "mine", Runner()
    with image.open("wb") as file:
        file.truncate(160 * 2**20)
    runner.run(["mkfs.ext4", "-q", str(image)])
    point.mkdir()
    runner.run(["mount", "-o", f"loop,{option}", str(image), str(point)])
    try:
        place = point / "disks"
        place.mkdir()
        facts = made.prepare(f'[storage.s]\nkind = "loop"\nsize = "64MiB"\npath = "{place}"\n')["s"]
        found = losing(facts)
        made.undo()
    finally:
        runner.run(umount_command(point))
    assert any(f"stored on {point}, which is mounted with nobarrier" in why for why in found) == (option == "nobarrier")
    assert bool(found) == (option == "nobarrier"), found


def stack(*nodes: tuple[str, str, dict[str, object]]) -> StorageFacts:
    return StorageFacts(
        name="disk",
        kind="loop",
        path="/disk",
        filesystem="xfs",
        mount_options=("rw",),
        total_bytes=1,
        free_bytes=1,
        volatile=False,
        stack=tuple(
            StackNode(
                kind=kind,
                name=name,
                facts=tuple(Fact.model_validate({"name": k, "value": v, "source": "test"}) for k, v in facts.items()),
            )
            for kind, name, facts in [("mount", "/disk", {}), ("filesystem", "xfs", {}), *nodes]
        ),
    )


MOUNT = ("mount", "/below", {"options": ["rw"]})


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([("loop", "loop0", {"write_cache": "write back"}), MOUNT, ("filesystem", "ext4", {"options": ["rw"]})], None),
        ([MOUNT, ("filesystem", "ext4", {"options_in_effect": ["rw", "nobarrier"]})], "nobarrier"),
        ([MOUNT, ("filesystem", "xfs", {"options": ["rw", "nobarrier"]})], "nobarrier"),
        ([MOUNT, ("filesystem", "btrfs", {"options": ["rw", "nobarrier"]})], "nobarrier"),
        ([MOUNT, ("filesystem", "f2fs", {"options": ["fsync_mode=nobarrier"]})], "fsync_mode=nobarrier"),
        ([("mount", "/", {"options": ["volatile"]}), ("filesystem", "overlay", {})], "a volatile overlay"),
        ([MOUNT, ("filesystem", "overlay", {"options": ["upperdir=/x", "volatile"]})], "a volatile overlay"),
        ([MOUNT, ("filesystem", "ext4", {"options": ["data=writeback"]})], None),
        ([("disk", "sda", {"write_cache": "write through"})], None),  # as of a disk without a cache
        ([("zfs", "tank", {"dataset.sync": "disabled"})], "sync = disabled"),
        ([("zfs", "tank", {"pool.sync": "standard", "dataset.sync": "always"})], None),
        ([("zfs", "tank", {"dataset.logbias": "throughput"})], None),
    ],
)
def test_every_layer_is_judged(nodes: list[tuple[str, str, dict[str, object]]], said: str | None) -> None:
    found = losing(stack(*nodes))
    assert any(said in why for why in found) if said else found == [], found


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([MOUNT, ("filesystem", "nfs4", {}), ("network", "server:/export", {})], "stored elsewhere (server:/export)"),
        ([MOUNT, ("filesystem", "fuse.sshfs", {})], "a program serves (fuse.sshfs)"),
        ([MOUNT, ("filesystem", "fuse", {}), ("emulated disk", "disk", {})], None),
        ([MOUNT, ("filesystem", "fuse.zfs", {}), ("zfs", "tank", {})], None),
    ],
)
def test_what_another_program_or_machine_does_with_a_flush_is_not_known(
    nodes: list[tuple[str, str, dict[str, object]]], said: str | None
) -> None:
    found = [why for grade, why in storage_findings(DATA_ROLE, stack(*nodes)) if grade == "unknown"]
    assert any(said in why for why in found) if said else found == [], found


def test_a_directory_that_a_program_serves_is_not_known_to_keep(made, scratch: Path) -> None:
    behind, point, runner = scratch / "behind", scratch / "served", Runner()
    behind.mkdir()
    point.mkdir()
    runner.run(["bindfs", str(behind), str(point)])
    try:
        facts = made.prepare(f'[storage.s]\nkind = "directory"\npath = "{point}"\n')["s"]
        found = storage_findings(DATA_ROLE, facts)
        made.undo()
    finally:
        runner.run(umount_command(point))
    assert [grade for grade, _ in found] == ["unknown"], found


def test_libraries_before_a_servers_own_are_found() -> None:
    with subprocess.Popen(
        ["sleep", "60"], env={"LD_PRELOAD": "/nowhere/libeatmydata.so:/nowhere/b.so"}, stderr=subprocess.DEVNULL
    ) as child:
        try:
            # While a program begins, its environment is empty, although /proc/PID/exe is the program already.
            wait_until(lambda: b"LD_PRELOAD" in Path(f"/proc/{child.pid}/environ").read_bytes().split(b"=")[0])
            libraries, gaps = preloaded(child.pid)
        finally:
            child.kill()
    assert libraries[:2] == ("/nowhere/libeatmydata.so", "/nowhere/b.so")
    assert gaps == ()
    assert preloaded(2**22 + 1)[1], "a process that is not there is a gap"
