"""Places that cannot be probed, or whose figures mean less than they seem: each is reported, none is a zero."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from disks import loop_device
from emulated_disks import run, served
from plinth.model.disk import Fault
from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import meanings
from plinth.model.probe import FsyncOptions, FsyncProbe
from plinth.probe.fsync_probe import FsyncTarget, cases
from plinth.probe.place import devices
from plinth.probe.plausible import FEWEST_OPS, MOST_FLUSHES_OF_ROTATING_PER_S, judge
from probing import QUICK, Answer, Command, left_in, mounted

MIB = 2**20
BRIEF = (*QUICK, "--only", "one_block")


def refused(done: Answer, exit_code: int, *said: str) -> None:
    assert done.exit_code == exit_code, done.stderr
    assert done.stdout == ""
    for words in said:
        assert words in done.stderr


def fault(words: str) -> Fault:
    return TypeAdapter(Fault).validate_python(words)


def test_a_path_that_is_no_directory(probe: Command, scratch: Path):
    (scratch / "file").touch()
    refused(probe("fsync", scratch / "nothing"), 2, "no such directory", str(scratch / "nothing"))
    refused(probe("fsync", scratch / "file"), 2, "not a directory")
    refused(probe("fsync", scratch / "file/below"), 2, "not a directory")


def test_a_block_device_is_never_written_to(probe: Command, scratch: Path):
    with loop_device(scratch / "image", 32 * MIB) as node:
        refused(probe("fsync", node), 2, "never to a block device")
    assert (scratch / "image").read_bytes() == bytes(32 * MIB)


def test_a_read_only_file_system(probe: Command, scratch: Path):
    with mounted(scratch / "m", "-t", "tmpfs", "-o", "ro", "none") as point:
        refused(probe("fsync", point), 5, "read-only", str(point))


def test_a_full_file_system(probe: Command, scratch: Path):
    with mounted(scratch / "m", "-t", "tmpfs", "-o", "size=8m", "none") as point:
        refused(probe("fsync", point), 5, "no space left")
        assert not list(point.iterdir())


def test_one_that_is_full_once_a_second_file_grows(probe: Command, scratch: Path):
    with mounted(scratch / "m", "-t", "tmpfs", "-o", "size=17m", "none") as point:
        done = probe("fsync", point, *QUICK, "--json", "--only", "unsynced,extending", "--methods", "fdatasync")
        (found,) = [FsyncProbe.model_validate(one) for one in json.loads(done.stdout)]
    assert done.exit_code == 1
    unsynced, extending = found.results
    assert unsynced.figure is not None
    assert extending.figure is None and extending.failed
    assert "No space left" in (extending.unavailable or "")


def test_no_permission(scratch: Path, in_child):
    scratch.chmod(0o755)
    closed = scratch / "closed"
    closed.mkdir(mode=0o700)

    def as_another(place: Path) -> str:
        from plinth.cli.application import application
        from plinth.model.errors import MissingCapability

        with pytest.raises(MissingCapability) as refusal:
            application()(["probe", "fsync", str(place)], exit_on_error=False, print_error=False)
        assert not refusal.value.details, "of a file that was never made nothing is left"
        return f"{refusal.value.message} {refusal.value.hint}"

    for place in (scratch, closed):
        assert "permission denied" in in_child(lambda place=place: as_another(place), "nobody").value


def test_file_systems_of_the_kernel_make_no_files(probe: Command):
    refused(probe("fsync", "/proc"), 5, "makes no files", "/proc")
    assert probe("fsync", "/sys").exit_code == 5


def test_tmpfs_forgets(probe: Command, scratch: Path):
    with mounted(scratch / "m", "-t", "tmpfs", "none") as point:
        (found,) = probe.fsync(point, "--only", "one_block")
    assert found.plausibility.verdict == "volatile"
    assert "power cut loses" in found.plausibility.reasons[0]
    assert "tmpfs keeps files in memory" in found.notes[0]
    assert [gap.what for gap in found.gaps] == ["flushes at the device"]
    assert all(result.device_flushes is None for result in found.results)


def test_an_overlay_is_reported_with_its_layers(probe: Command, scratch: Path):
    for name in ("lower", "upper", "work"):
        (scratch / name).mkdir()
    layers = f"lowerdir={scratch}/lower,upperdir={scratch}/upper,workdir={scratch}/work"
    with mounted(scratch / "m", "-t", "overlay", "-o", layers, "none") as point:
        (found,) = probe.fsync(point, "--only", "one_block")
    assert found.facts.filesystem == "overlay"
    assert any("upper layer" in note for note in found.notes)


def test_a_network_file_system_is_reported():
    facts = place(StackNode(kind="network", name="server:/export"), filesystem="nfs4")
    assert any("server:/export" in meaning.words for meaning in meanings(facts))
    assert judge(facts, measured(median_us=900), None).verdict == "unknown"
    assert judge(facts, measured(median_us=2), None).verdict == "suspicious"


def test_a_disk_that_gives_errors_is_no_zero(probe: Command, scratch: Path):
    with served(scratch) as disk, disk.filesystem() as directory:
        fdatasync = cases(FsyncOptions(methods=("fdatasync",), groups=("one_block",)))[0]
        with FsyncTarget(directory) as target:
            disk.control.arm(fault("flush,nth=3,count=all"))
            measured = target.measure(fdatasync, 0.2)
        assert measured.failed and measured.figure is None
        assert "Input/output error" in (measured.unavailable or "")
        assert disk.control.status().faults[0].fired > 0
        assert not left_in(directory)


def test_a_disk_that_gives_errors_from_the_start_is_an_error(probe: Command, scratch: Path):
    with served(scratch) as disk, disk.filesystem() as directory:
        disk.control.arm(fault("flush,nth=1,count=all"))
        refused(probe("fsync", directory, *BRIEF), 1, "Input/output error", str(directory), "is left")


def test_a_disk_that_can_no_longer_be_read_either_is_an_error(probe: Command, scratch: Path):
    with served(scratch) as disk, disk.filesystem() as directory:
        for words in ("read,nth=1,count=all", "write,nth=1,count=all"):
            disk.control.arm(fault(words))
        refused(probe("fsync", directory, *BRIEF), 1, "Input/output error", str(directory), "is left cannot be seen")


@contextmanager
def filesystem(scratch: Path, knobs: dict[str, str], *options: str) -> Iterator[Path]:
    """ext4 on a disk without a latency, whose loop device's queue is set so; set back, since that outlives the device."""
    with served(scratch) as emulated, emulated.loop() as node:
        queue = Path("/sys/block") / Path(node).name / "queue"
        before = {knob: (queue / knob).read_text() for knob in knobs}
        try:
            for knob, value in knobs.items():
                (queue / knob).write_text(value)
            run("mkfs.ext4", "-q", node)
            with mounted(scratch / "m", *options, node) as point:
                yield point
        finally:
            for knob, value in before.items():
                (queue / knob).write_text(value)


def probed_at_speed(probe: Command, point: Path) -> FsyncProbe:
    """A probe whose own figures show what a disk without a latency can do.

    On a machine that has no CPU for it there are few flushes, or slow ones, which any disk could do: no sign against it.
    """
    for seconds in (0.3, 1.0, 3.0, 9.0):
        (found,) = probe.fsync(point, "--only", "one_block", "--methods", "fdatasync", seconds=seconds)
        (result,) = found.results
        figure = result.figure
        assert figure is not None, result.unavailable
        if figure.ops >= FEWEST_OPS and 1e9 / figure.median_ns > MOST_FLUSHES_OF_ROTATING_PER_S:
            return found
    raise AssertionError(
        f"in {seconds} s this machine came to {figure.ops} flushes of {figure.median_ns} ns: too busy to tell"
    )


@pytest.mark.parametrize(
    ("knobs", "options", "said"),
    [
        ({"write_cache": "write through"}, (), "write through"),
        ({}, ("-o", "barrier=0"), "barrier"),
        ({"rotational": "1"}, (), "no platter turns so fast"),
    ],
    ids=["no cache to flush", "no barriers", "a disk that turns too fast"],
)
def test_flushes_that_cannot_be_true_are_suspicious(
    probe: Command, scratch: Path, knobs: dict[str, str], options: tuple[str, ...], said: str
):
    with filesystem(scratch, knobs, *options) as point:
        found = probed_at_speed(probe, point)
    verdict = found.plausibility
    assert verdict.verdict == "suspicious", verdict
    assert any(said in reason for reason in verdict.reasons), verdict


def place(*nodes: StackNode, filesystem: str = "ext4", **more) -> StorageFacts:
    return StorageFacts.model_validate(
        {
            "name": "x",
            "kind": "directory",
            "path": "/x",
            "filesystem": filesystem,
            "mount_options": (),
            "total_bytes": 1,
            "free_bytes": 1,
            "volatile": False,
            "stack": nodes,
            **more,
        }
    )


def disk(name: str, rotational: bool) -> StackNode:
    fact = {"name": "rotational", "value": rotational, "source": "/sys"}
    return StackNode.model_validate({"kind": "disk", "name": name, "facts": [fact]})


def measured(median_us: float, device_flushes: int | None = None):
    from plinth.probe.fsync_probe import Round, merged

    latency_ns = round(median_us * 1000)
    figure = {"ops": 100, "flushes": 100, "elapsed_ns": latency_ns * 100, "min_ns": latency_ns, "max_ns": latency_ns}
    case = cases(FsyncOptions(methods=("fdatasync",), groups=("one_block",)))[0]
    return [merged(case, [Round(figure | {"buckets": [(latency_ns, 100)]}, None)], device_flushes)]


EMULATED = StackNode(kind="emulated disk", name="hdd-7200")


@pytest.mark.parametrize(
    ("facts", "median_us", "seen", "verdict"),
    [
        (place(disk("sda", True)), 8300, 100, "plausible"),
        (place(disk("sda", True)), 1900, 100, "suspicious"),
        (place(disk("nvme0n1", False)), 30, 100, "plausible"),
        (place(disk("nvme0n1", False)), 3, 100, "suspicious"),
        (place(disk("nvme0n1", False)), 30, 0, "suspicious"),
        (place(disk("nvme0n1", False)), 30, 32, "suspicious"),
        (place(disk("vda", True)), 100, 100, "unknown"),
        (place(disk("vda", True)), 8300, 100, "plausible"),
        (place(disk("vda", False)), 100, 100, "plausible"),
        (place(EMULATED, disk("sda", True)), 100, 100, "plausible"),
        (place(disk("nvme0n1", False), volatile=True, volatile_reason="it lies"), 30, 100, "volatile"),
        (place(), 30, None, "unknown"),
    ],
)
def test_verdicts(facts: StorageFacts, median_us: float, seen: int | None, verdict: str):
    device = next((node.name for node in devices(facts)), "loop1" if EMULATED in facts.stack else None)
    found = judge(facts, measured(median_us, seen), device)
    assert found.verdict == verdict, found
    assert all(found.reasons)


def test_flushes_of_the_file_system_itself_are_not_those_of_fsync():
    facts = place(disk("nvme0n1", False), mount_options=("rw", "nobarrier"))
    (reason,) = judge(facts, measured(30, 32), "nvme0n1").reasons
    assert "returned 100 times, and nvme0n1 was sent only 32 flushes" in reason
    assert "mounted with nobarrier" in reason


def test_a_place_where_nothing_durable_was_measured_has_no_verdict():
    assert judge(place(disk("sda", False)), [], "sda").verdict == "unknown"
