"""Each check of a place and of the devices below it: good, bad, and not reported."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabricated import DISKSTATS, NOTHING, Files, device, machine, place
from plinth.doctor import PLACE_CHECKS, ExaminedPlace, Machine, examine, unreachable
from plinth.model.base import Gap
from plinth.model.doctor import Examination, Finding
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.place import RAW
from plinth.storage import describe


def look(
    root: Path, facts: StorageFacts, made: bool = False, files: Files = NOTHING, later: Files = NOTHING
) -> Examination:
    return examine(machine(root, files, later), [ExaminedPlace(facts, made)])


def of_place(examination: Examination) -> list[Finding]:
    return [one for one in examination.findings if one.about != "machine"]


def worst(examination: Examination, check: str) -> Finding:
    (found,) = (one for one in of_place(examination) if one.id == check and one.severity != "ok")
    return found


def test_of_a_good_place_all_is_well(tmp_path: Path) -> None:
    found = of_place(look(tmp_path, place(device(model="SSD 980"))))
    assert {one.severity for one in found} == {"ok"}
    assert {one.id for one in found} == {check.id for check in PLACE_CHECKS}
    assert {one.about for one in found} == {"/tmp"}


def test_of_a_file_system_that_is_small_freeing_space_is_not_advised(tmp_path: Path) -> None:
    large = place(device(), free_bytes=2**26)
    small = large.model_copy(update={"total_bytes": 2**26})
    for facts, advice in ((small, "use a larger file system"), (large, "free some space")):
        remedy = worst(look(tmp_path, facts), "place.room").remedy
        assert remedy is not None and advice in (remedy.advice or "")


IN_MEMORY = StackNode(kind="memory", name="memory")
REMOTE = StackNode(kind="network", name="filer:/export")
EMULATED = StackNode(kind="emulated disk", name="hdd-7200")

BAD: list[tuple[str, StorageFacts, str, str]] = [
    ("place.filesystem", place(REMOTE, filesystem="nfs4"), "warning", "network file system (nfs4, filer:/export)"),
    ("place.filesystem", place(device(), filesystem="overlay"), "warning", "an overlay, as containers have"),
    ("place.filesystem", place(IN_MEMORY, filesystem="tmpfs"), "warning", "tmpfs keeps files in memory"),
    ("place.filesystem", place(filesystem="fuse.sshfs"), "warning", "served by a program"),
    ("place.filesystem", place(device(), filesystem="btrfs"), "note", "writes a changed block to a new location"),
    ("place.kept", place(device(), volatile_reason="zram0 keeps its blocks in memory"), "warning", "zram0 keeps its"),
    ("place.kept", place(device(), options=("rw", "nobarrier")), "problem", "mounted nobarrier"),
    ("place.kept", place(device(), options=("rw", "noatime", "barrier=0")), "problem", "mounted barrier=0"),
    ("place.options", place(device(), options=("rw",)), "warning", "mounted with access times"),
    ("place.options", place(device(), options=("rw", "noatime", "discard")), "note", "mounted discard"),
    ("place.options", place(device(), options=("rw", "relatime", "data=journal")), "warning", "written twice"),
    ("place.options", place(device(), options=("rw", "noatime", "data=writeback")), "note", "data=writeback"),
    ("place.options", place(device(), options=("rw", "noatime", "sync")), "warning", "mounted sync"),
    ("place.writable", place(device(), options=("ro", "noatime")), "problem", "read-only"),
    ("place.writable", place(device(), path="/proc/no-such"), "problem", "may not write to /proc/no-such"),
    ("place.room", place(device(), free_bytes=0), "problem", "0 B of 100.0 GiB are free (0 %)"),
    ("place.room", place(device(), free_bytes=2**29), "warning", "512.0 MiB of"),
    ("place.room", place(device(), free_bytes=5 * 2**30), "warning", "(5 %)"),
    ("device.scheduler", place(device(scheduler="bfq")), "warning", "bfq, on a non-rotational disk"),
    ("device.scheduler", place(device(rotational=True)), "note", "on a rotational disk"),
    ("device.write_cache", place(device(write_cache="write through")), "note", "sends it no flushes"),
    ("device.read_ahead", place(device(read_ahead_kb=0)), "note", "sequential scans wait"),
    ("device.read_ahead", place(device(read_ahead_kb=8192)), "note", "more is read than is requested"),
    ("device.loop", place(device("loop3", "loop", direct_io=False)), "note", "cached a second time"),
    ("device.emulated", place(EMULATED), "note", "hdd-7200: an emulated disk"),
    ("device.cloud_volume", place(device(model="Amazon Elastic Block Store")), "note", "gp2 below 1,000 GiB"),
]


@pytest.mark.parametrize(("check", "facts", "severity", "words"), BAD)
def test_what_would_spoil_a_measurement_is_found(
    tmp_path: Path, check: str, facts: StorageFacts, severity: str, words: str
) -> None:
    found = worst(look(tmp_path, facts), check)
    assert found.severity == severity
    assert words in found.saw
    assert found.why


@pytest.mark.parametrize(
    ("check", "facts", "fix", "undo"),
    [
        (
            "place.kept",
            place(device(), options=("rw", "barrier=0")),
            "sudo mount -o remount,barrier=1 /mnt",
            "sudo mount -o remount,barrier=0 /mnt",
        ),
        (
            "device.scheduler",
            place(device(scheduler="bfq")),
            "echo none | sudo tee /sys/block/sda/queue/scheduler",
            "echo bfq | sudo tee /sys/block/sda/queue/scheduler",
        ),
        (
            "device.read_ahead",
            place(device("cciss/c0d0", read_ahead_kb=4096)),
            "echo 128 | sudo tee /sys/block/cciss!c0d0/queue/read_ahead_kb",
            "echo 4096 | sudo tee /sys/block/cciss!c0d0/queue/read_ahead_kb",
        ),
        (
            "device.loop",
            place(device("loop3", "loop", direct_io=False)),
            "sudo losetup --direct-io=on /dev/loop3",
            "sudo losetup --direct-io=off /dev/loop3",
        ),
    ],
)
def test_each_is_mended_and_set_back_by_a_command(
    tmp_path: Path, check: str, facts: StorageFacts, fix: str, undo: str
) -> None:
    remedy = worst(look(tmp_path, facts), check).remedy
    assert remedy is not None
    assert (remedy.commands, remedy.undo) == ((fix,), (undo,))


def test_what_an_experiment_asked_for_is_no_warning(tmp_path: Path) -> None:
    asked = place(IN_MEMORY, filesystem="tmpfs", volatile_reason="tmpfs keeps its files in memory", free_bytes=2**28)
    found = of_place(look(tmp_path, asked.model_copy(update={"total_bytes": 2**29}), made=True))
    assert {one.about for one in found} == {"disk"}  # by the storage's name
    assert {one.severity for one in found} == {"note", "ok"}


@pytest.mark.parametrize(
    ("check", "facts", "asked"),
    [
        ("place.kept", place(device(), options=("rw", "noatime", "nobarrier")), "barrier=0"),
        ("place.options", place(device(), options=("rw", "noatime", "data=writeback")), "data=writeback"),
        ("place.options", place(device(), options=("rw", "noatime", "data=journal")), "data=journal"),
        ("place.options", place(device(), options=("rw", "noatime", "discard")), "discard"),
        ("place.options", place(device(), options=("rw", "noatime", "sync")), "sync"),
        ("place.options", place(device(), options=("rw",)), "strictatime"),
        ("device.write_cache", place(device(write_cache="write through")), "write_cache=write through"),
        ("device.read_ahead", place(device(read_ahead_kb=8192)), "read_ahead_kb=8192"),
        ("device.loop", place(device("loop3", "loop", direct_io=False)), "direct_io=False"),
    ],
)
def test_what_an_experiment_asks_for_is_said_and_not_advised_against(
    tmp_path: Path, check: str, facts: StorageFacts, asked: str
) -> None:
    def found(*options: str) -> Finding:
        described = ExaminedPlace(facts, made=True, asked=frozenset(options))
        return worst(examine(machine(tmp_path), [described]), check)

    assert found().remedy is not None
    assert found("noatime").remedy is not None
    assert (found(asked).severity, found(asked).remedy) == ("note", None)
    assert found(asked).saw == f"{found().saw}; the experiment asks for it"


def test_a_knob_that_is_asked_for_is_of_the_storage_s_own_device(tmp_path: Path) -> None:
    facts = place(device("loop3", "loop", read_ahead_kb=8192), device("sda", read_ahead_kb=8192))
    described = ExaminedPlace(facts, made=True, asked=frozenset(["read_ahead_kb=8192"]))
    of_loop, of_disk = (
        one for one in of_place(examine(machine(tmp_path), [described])) if one.id == "device.read_ahead"
    )
    assert of_loop.remedy is None
    assert of_disk.remedy is not None


def test_of_a_raw_member_only_its_device_is_examined(tmp_path: Path) -> None:
    raw = place(device(), path="/proc/no-such/device-1", filesystem=RAW, options=(), free_bytes=0)
    examination = look(tmp_path, raw.model_copy(update={"stack": (device(),)}), made=True)
    found = of_place(examination)
    assert {one.id for one in found} == {"place.kept", *(one.id for one in found if one.id.startswith("device."))}
    assert {one.severity for one in found} == {"ok"}
    assert not [gap for gap in examination.gaps if gap.what.startswith("disk:")]


@pytest.mark.parametrize(("busy_ms", "severity"), [(1010, "ok"), (1100, "note"), (1500, "warning")])
def test_a_device_that_others_use_is_reported(tmp_path: Path, busy_ms: int, severity: str) -> None:
    made = machine(tmp_path, later={"/proc/diskstats": DISKSTATS.format(busy_ms=busy_ms)})
    made = replace(made, after=replace(made.after, at_s=made.before.at_s + 1))
    found = [one for one in of_place(examine(made, [ExaminedPlace(place(device()))])) if one.id == "device.at_rest"]
    assert [one.severity for one in found] == [severity]


@pytest.mark.parametrize("missing", ["scheduler", "rotational", "write_cache", "read_ahead_kb"])
def test_what_a_device_does_not_report_is_a_gap_and_the_others_are_looked_at(tmp_path: Path, missing: str) -> None:
    facts = {"scheduler": "none", missing: None}
    first = device("sda", **facts)
    if missing == "scheduler":  # one that tells no scheduler at all has no queue
        first = StackNode(kind="disk", name="sda", facts=(*first.facts, Fact(name="scheduler", value=None, source="x")))
    told = place(first, device("sdb"), gaps=(Gap(what=f"sda: {missing}", reason="Input/output error"),))
    examination = look(
        tmp_path,
        told,
        files={"/proc/diskstats": DISKSTATS.format(busy_ms=1) + DISKSTATS.format(busy_ms=1).replace("sda", "sdb")},
    )
    (gap,) = examination.gaps
    assert gap.reason == f"sda: {missing}: Input/output error"
    assert {one.saw.partition(":")[0] for one in of_place(examination) if one.id.startswith("device.")} >= {"sdb"}


def test_an_unknown_device_is_a_gap_with_its_reason(tmp_path: Path) -> None:
    gap = Gap(what="/mnt: the devices below", reason="ZFS keeps that to itself: zpool status tank")
    examination = look(tmp_path, place(filesystem="zfs", gaps=(gap,)))
    assert {gap.reason for gap in examination.gaps} == {"ZFS keeps that to itself: zpool status tank"}


def test_a_place_that_cannot_be_looked_at_is_a_problem_in_addition_to_the_findings_of_the_machine(
    tmp_path: Path,
) -> None:
    lost = unreachable("/mnt/broken", "cannot look at the storage: Input/output error", "look at the kernel's log")
    examination = examine(machine(tmp_path), (), [lost])
    assert [one.about for one in examination.at_least("problem")] == ["/mnt/broken"]
    assert any(one.about == "machine" for one in examination.findings)


def test_the_weightiest_come_first(tmp_path: Path) -> None:
    facts = place(device(scheduler="bfq", read_ahead_kb=0), options=("ro", "noatime"))
    examination = look(tmp_path, facts)
    assert [one.severity for one in examination.at_least("note")] == ["problem", "warning", "note"]
    assert [one.severity for one in examination.at_least("warning")] == ["problem", "warning"]


def test_this_very_machine_can_be_examined(scratch: Path) -> None:
    examination = examine(
        Machine.watched(0.02), [ExaminedPlace(describe(scratch)), ExaminedPlace(describe(Path("/dev/shm")))]
    )
    assert {one.about for one in examination.findings} == {"machine", str(scratch), "/dev/shm"}
    assert all(gap.reason for gap in examination.gaps)
    assert worst(look(scratch, describe(Path("/dev/shm"))), "place.kept").severity == "warning"
