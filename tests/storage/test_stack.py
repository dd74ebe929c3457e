"""The storage stack of a place: real loop devices, partitions, overlays and binds; arrays and drives from sysfs's files."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from disks import wait_for_detached
from plinth.model.errors import PlinthError, UsageError
from plinth.model.facts import StackNode, StorageFacts
from plinth.storage import describe
from plinth.storage.inspect.stack import Stack, read_stack
from plinth.system.mounts import mount_of


def run(*argv: object) -> str:
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def machine() -> Iterator[ExitStack]:
    """What a test sets up on the machine, undone backwards."""
    with ExitStack() as stack:
        yield stack


def mount(machine: ExitStack, point: Path, *argv: object) -> Path:
    point.mkdir(exist_ok=True)
    run("mount", *argv, point)
    machine.callback(run, "umount", point)
    return point


def attach(machine: ExitStack, file: Path, *options: str) -> Path:
    device = Path(run("losetup", "--show", "-f", *options, file))
    machine.callback(wait_for_detached, device)
    machine.callback(run, "losetup", "-d", device)
    return device


def shape(stack: Stack | StorageFacts) -> list[tuple[str, str]]:
    nodes = stack.nodes if isinstance(stack, Stack) else stack.stack
    return [(node.kind, node.name) for node in nodes]


def values(node: StackNode) -> dict[str, object]:
    return {fact.name: fact.value for fact in node.facts}


@pytest.fixture
def in_memory(scratch: Path, machine: ExitStack) -> Path:
    """A tmpfs for loop files."""
    return mount(machine, scratch / "memory", "-t", "tmpfs", "-o", "size=64m", "plinth-test")


@pytest.fixture
def ext4(scratch: Path, machine: ExitStack, in_memory: Path) -> Path:
    """An ext4 file system on a loop device on a file in a tmpfs."""
    image = in_memory / "disk.img"
    image.touch()
    os.truncate(image, 32 << 20)
    device = attach(machine, image)
    run("mkfs.ext4", "-q", device)
    return mount(machine, scratch / "ext4", "-o", "noatime,data=writeback,barrier=0", device)


def test_a_loop_device_is_followed_into_its_file_and_is_as_volatile_as_that(ext4: Path, in_memory: Path) -> None:
    facts = describe(ext4)
    loop = Path(mount_of(ext4).source).name
    assert shape(facts) == [
        ("mount", str(ext4)),
        ("filesystem", "ext4"),
        ("loop", loop),
        ("mount", str(in_memory)),
        ("filesystem", "tmpfs"),
        ("memory", "memory"),
    ]
    assert (facts.filesystem, facts.block_devices) == ("ext4", (loop,))
    assert {"noatime", "nobarrier", "data=writeback"} <= set(facts.mount_options)
    assert facts.volatile
    assert facts.volatile_reason == f"tmpfs on {in_memory} keeps its files in memory"
    in_effect = values(facts.stack[1])["options_in_effect"]
    assert isinstance(in_effect, list)
    assert "nobarrier" in in_effect
    assert "data=writeback" in in_effect
    found = values(facts.stack[2])
    assert found["backing_file"] == str(in_memory / "disk.img")
    assert found["size_bytes"] == 32 << 20
    assert found["direct_io"] is False


def test_every_fact_says_where_it_was_read_and_is_what_is_there(ext4: Path) -> None:
    for node in describe(ext4).stack:
        for fact in node.facts:
            if fact.source.startswith("/sys/"):
                raw = Path(fact.source).read_text().strip()
                if fact.name == "size_bytes":
                    assert fact.value == int(raw) * 512
                elif fact.name == "scheduler":
                    assert fact.value == raw or f"[{fact.value}]" in raw
                elif isinstance(fact.value, bool):
                    assert fact.value == (raw == "1")
                else:
                    assert str(fact.value) == raw
            else:
                assert fact.source in ("/proc/self/mountinfo", "statvfs(3)") or Path(fact.source).exists()


def test_a_queue_setting_is_read_as_it_is_now(ext4: Path) -> None:
    loop = Path(mount_of(ext4).source).name
    knob = Path(f"/sys/block/{loop}/queue/read_ahead_kb")
    before = knob.read_text()
    try:
        knob.write_text("64")
        assert values(describe(ext4).stack[2])["read_ahead_kb"] == 64
    finally:
        knob.write_text(before)  # it outlives losetup -d


def test_the_disk_is_below_its_partition(scratch: Path, machine: ExitStack) -> None:
    image = scratch / "disk.img"
    image.touch()
    os.truncate(image, 32 << 20)
    device = attach(machine, image, "--partscan")
    run("addpart", device, 1, 2048, 60000)  # of 512 bytes; no partition table is needed
    machine.callback(run, "delpart", device, 1)
    run("mkfs.ext4", "-q", f"{device}p1")
    point = mount(machine, scratch / "mnt", f"{device}p1")
    facts = describe(point)
    below = mount_of(scratch)
    assert shape(facts)[2:5] == [("partition", f"{device.name}p1"), ("loop", device.name), ("mount", below.point)]
    assert values(facts.stack[2])["start_bytes"] == 2048 * 512
    assert facts.block_devices[:2] == (f"{device.name}p1", device.name)
    # From there on it is what the scratch directory itself is stored on.
    assert shape(facts)[4:] == shape(describe(scratch))
    assert facts.block_devices[2:] == describe(scratch).block_devices


def test_a_loop_file_that_was_deleted_is_a_gap(ext4: Path, in_memory: Path) -> None:
    (in_memory / "disk.img").unlink()
    facts = describe(ext4)
    assert shape(facts)[-1][0] == "loop"
    assert [gap.reason for gap in facts.gaps if "what backs" in gap.what] == ["No such file or directory"]


def test_an_overlay_is_stored_in_its_upper_directory(scratch: Path, machine: ExitStack, in_memory: Path) -> None:
    for name in ("lower", "upper", "work"):
        (in_memory / name).mkdir()
    layers = f"lowerdir={in_memory}/lower,upperdir={in_memory}/upper,workdir={in_memory}/work"
    point = mount(machine, scratch / "merged", "-t", "overlay", "-o", layers, "overlay")
    facts = describe(point)
    assert shape(facts) == [
        ("mount", str(point)),
        ("filesystem", "overlay"),
        ("mount", str(in_memory)),
        ("filesystem", "tmpfs"),
        ("memory", "memory"),
    ]
    assert facts.volatile


def test_an_overlay_whose_upper_directory_is_hidden_is_a_gap(
    scratch: Path, machine: ExitStack, in_memory: Path
) -> None:
    for name in ("lower", "upper", "work"):
        (in_memory / name).mkdir()
    layers = f"lowerdir={in_memory}/lower,upperdir={in_memory}/upper,workdir={in_memory}/work"
    point = mount(machine, scratch / "merged", "-t", "overlay", "-o", layers, "overlay")
    mount(machine, in_memory, "-t", "tmpfs", "plinth-test-cover")
    facts = describe(point)
    assert shape(facts) == [("mount", str(point)), ("filesystem", "overlay")]
    (gap,) = facts.gaps
    assert (gap.what, f"{in_memory}/upper cannot be seen" in gap.reason) == (f"{point}: the devices below", True)


def test_part_of_a_file_system_says_which(scratch: Path, machine: ExitStack, in_memory: Path) -> None:
    (in_memory / "part").mkdir()
    point = mount(machine, scratch / "bound", "--bind", in_memory / "part")
    facts = describe(point)
    assert values(facts.stack[0])["root"] == "/part"
    assert facts.volatile


def test_a_file_system_without_a_device_is_a_gap_and_not_taken_for_lasting_by_silence() -> None:
    facts = describe(Path("/proc"))
    (gap,) = facts.gaps
    assert "no block device" in gap.reason
    assert facts.block_devices == ()


def test_a_file_is_where_its_directory_is(ext4: Path) -> None:
    (ext4 / "file").write_text("")
    assert shape(describe(ext4 / "file")) == shape(describe(ext4))


def test_a_path_that_is_not_there(scratch: Path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        describe(scratch / "missing")
    (scratch / "loop").symlink_to(scratch / "loop")
    with pytest.raises(PlinthError, match="symbolic link"):
        describe(scratch / "loop")


# Drives and arrays that a test machine has not: sysfs as the kernel's documentation and such machines show it.

QUEUE = {
    "rotational": "0",
    "logical_block_size": "512",
    "physical_block_size": "4096",
    "nr_requests": "1023",
    "read_ahead_kb": "128",
    "discard_max_bytes": "2199023255040",
    "wbt_lat_usec": "2000",
    "scheduler": "[none] mq-deadline kyber",
    "write_cache": "write back",
    "fua": "1",
}


class Sysfs:
    """A folder laid out like /sys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def device(self, path: str, number: str, queue: bool = True, slaves: tuple[str, ...] = (), **files: str) -> None:
        folder = self.folder / "devices" / path
        content = {"size": "2048", "ro": "0", "dev": number, **{k.replace("__", "/"): v for k, v in files.items()}}
        if queue:
            content |= {f"queue/{name}": value for name, value in QUEUE.items()}
        for name, text in content.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode() + b"\n")
        for link, target in [
            (self.folder / "dev/block" / number, folder),
            *((folder / "slaves" / Path(slave).name, self.folder / "devices" / slave) for slave in slaves),
        ]:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)


@pytest.fixture
def sysfs(scratch: Path) -> Sysfs:
    return Sysfs(scratch / "sys")


def stack_on(sysfs: Sysfs, scratch: Path) -> Stack:
    """The stack of `scratch`, as if its file system were on the device that `sysfs` has for its number."""
    return read_stack(scratch, sysfs.folder)


def test_an_array_of_partitions_under_lvm(sysfs: Sysfs, scratch: Path) -> None:
    number = mount_of(scratch).device
    for disk, minor in (("nvme0n1", 0), ("nvme1n1", 1)):
        sysfs.device(
            f"pci/{disk}",
            f"259:{minor}",
            device__model="SAMSUNG MZQL21T9HCJR-00A07           ",
            device__serial="S64GNE0R123456      ",
            device__firmware_rev="GDC5602Q",
        )
        sysfs.device(f"pci/{disk}/{disk}p1", f"259:{minor + 10}", queue=False, partition="1", start="2048")
    sysfs.device(
        "virtual/md0",
        "9:0",
        slaves=("pci/nvme0n1/nvme0n1p1", "pci/nvme1n1/nvme1n1p1"),
        md__level="raid0",
        md__raid_disks="2",
        md__chunk_size="524288",
        md__layout="0",
        md__array_state="clean",
        md__consistency_policy="none",
    )
    sysfs.device("virtual/dm-0", number, slaves=("virtual/md0",), dm__name="vg-pg", dm__uuid="LVM-abcdef")
    stack = stack_on(sysfs, scratch)
    assert shape(stack)[2:] == [
        ("dm", "dm-0"),
        ("md", "md0"),
        ("partition", "nvme0n1p1"),
        ("disk", "nvme0n1"),
        ("partition", "nvme1n1p1"),
        ("disk", "nvme1n1"),
    ]
    assert stack.block_devices == ("dm-0", "md0", "nvme0n1p1", "nvme0n1", "nvme1n1p1", "nvme1n1")
    assert stack.volatile_reason is None
    array, drive = values(stack.nodes[3]), values(stack.nodes[5])
    assert (array["level"], array["chunk_size"], array["members"]) == ("raid0", "524288", ["nvme0n1p1", "nvme1n1p1"])
    assert drive == {
        "size_bytes": 1048576,
        "read_only": False,
        "model": "SAMSUNG MZQL21T9HCJR-00A07",
        "serial": "...123456",
        "firmware": "GDC5602Q",
        "rotational": False,
        "logical_block_bytes": 512,
        "physical_block_bytes": 4096,
        "nr_requests": 1023,
        "read_ahead_kb": 128,
        "discard_max_bytes": 2199023255040,
        "wbt_lat_usec": 2000,
        "scheduler": "none",
        "write_cache": "write back",
        "fua": True,
    }
    assert [gap for gap in stack.gaps if "options_in_effect" not in gap.what] == []


def test_a_scsi_drive_has_its_serial_in_its_vital_product_data(sysfs: Sysfs, scratch: Path) -> None:
    sysfs.device(
        "pci/sda",
        mount_of(scratch).device,
        device__model="ST3000DM001-1CH1",
        device__vpd_pg80="\0\x80\0\x14            W1F0ABCD",
        device__rev="CC24",
    )
    found = values(stack_on(sysfs, scratch).nodes[2])
    assert (found["serial"], found["firmware"]) == ("...F0ABCD", "CC24")


def test_two_partitions_of_one_disk_count_it_once(sysfs: Sysfs, scratch: Path) -> None:
    sysfs.device("pci/sda", "8:0", device__model="m", device__serial="s", device__rev="r")
    for part in (1, 2):
        sysfs.device(f"pci/sda/sda{part}", f"8:{part}", queue=False, partition=str(part), start="2048")
    sysfs.device(
        "virtual/dm-0", mount_of(scratch).device, slaves=("pci/sda/sda1", "pci/sda/sda2"), dm__name="n", dm__uuid="u"
    )
    assert [name for _, name in shape(stack_on(sysfs, scratch))[2:]] == ["dm-0", "sda1", "sda", "sda2"]


@pytest.mark.parametrize(("name", "kind"), [("zram0", "zram"), ("ram1", "brd")])
def test_devices_in_memory_are_volatile(sysfs: Sysfs, scratch: Path, name: str, kind: str) -> None:
    sysfs.device(f"virtual/{name}", mount_of(scratch).device, comp_algorithm="lzo [zstd] lz4")
    stack = stack_on(sysfs, scratch)
    assert shape(stack)[2] == (kind, name)
    assert stack.volatile_reason == f"{name} keeps its blocks in memory"


def test_a_member_in_memory_makes_the_whole_array_volatile(sysfs: Sysfs, scratch: Path) -> None:
    sysfs.device("virtual/zram0", "252:0", comp_algorithm="[lzo]")
    sysfs.device("pci/sda", "8:0", device__model="m", device__serial="s", device__rev="r")
    sysfs.device("virtual/md0", mount_of(scratch).device, slaves=("pci/sda", "virtual/zram0"), md__level="raid1")
    assert stack_on(sysfs, scratch).volatile_reason == "zram0 keeps its blocks in memory"


def test_what_a_driver_does_not_report_is_a_gap_with_the_file_and_never_a_zero(sysfs: Sysfs, scratch: Path) -> None:
    sysfs.device("virtual/vdb", mount_of(scratch).device, serial="", queue=False)
    stack = stack_on(sysfs, scratch)
    folder = sysfs.folder / "devices/virtual/vdb"
    gaps = {gap.what: gap.reason for gap in stack.gaps}
    assert gaps["vdb: model"] == f"{folder}/device/model: No such file or directory"
    assert f"{folder}/serial: empty" in gaps["vdb: serial"]
    assert gaps["vdb: write_cache"] == f"{folder}/queue/write_cache: No such file or directory"
    assert set(values(stack.nodes[2])) == {"size_bytes", "read_only"}
