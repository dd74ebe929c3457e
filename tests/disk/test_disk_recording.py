"""Recordings of a served disk, and the images that are served of them."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulated_disks import MIB, ServedDisk, images_at, run, served
from plinth.cli import main
from plinth.model.choices import CutMode
from plinth.model.disk import CutReport, IgnoreFlush, Physics
from plinth.model.disk_recording import ImageSource
from plinth.model.errors import Refused, RunError, UsageError
from plinth.storage.devices.disk_recording import read_recording
from typed import present
from waiting import wait_until

SIZE_BYTES = 32 * MIB
MODES: tuple[CutMode, ...] = ("drop", "subset", "prefix", "torn")


@pytest.fixture
def disk(scratch: Path) -> Iterator[ServedDisk]:
    """An ideal disk that is small enough to be compared as a whole."""
    with served(scratch, size_bytes=SIZE_BYTES) as found:
        yield found


def folder(scratch: Path, name: str = "recording") -> Path:
    made = scratch / name
    made.mkdir()
    return made


def served_image(scratch: Path, image: ImageSource, name: str = "image", **more: Any):
    return served(folder(scratch, name), size_bytes=SIZE_BYTES, image=image, **more)


def content(path: Path) -> bytes:
    return path.read_bytes()


def write(file_fd: int, offset: int, byte: int, length: int = 8192) -> None:
    assert os.pwrite(file_fd, bytes([byte]) * length, offset) == length


def test_an_image_is_what_the_cut_of_the_served_disk_has_left(disk: ServedDisk, scratch: Path):
    place = folder(scratch)
    with disk.image.open("r+b", buffering=0) as file:
        write(file.fileno(), 0, 1)
        disk.control.start_recording(place)
        cuts: list[tuple[CutMode, int, CutReport, bytes]] = []
        for seed, mode in enumerate(MODES):
            for number in range(8):
                write(file.fileno(), number * MIB, 2 * seed, 65536)
            os.fsync(file.fileno())
            for number in range(8):
                write(file.fileno(), number * MIB + 4096, 2 * seed + 1, 65536)
            cut_ns = time.monotonic_ns()
            report = disk.control.power_cut(mode, seed)
            assert report.writes_dropped + report.writes_torn > 0
            cuts.append((mode, cut_ns, report, content(disk.backing)))
            disk.control.power_on()
    stopped = disk.control.stop_recording()
    recording = read_recording(place)
    assert stopped.records == recording.last_point
    for seed, (mode, cut_ns, report, left) in enumerate(cuts):
        source = recording.image(recording.point_at(cut_ns), mode, seed)
        with served_image(scratch, source, mode) as image:
            assert content(image.image) == left
            status = image.control.status()
            assert status.image is not None
            assert status.image.cut.model_dump() == report.model_dump(exclude={"requests_failed"})


def test_points_are_found_by_flush_and_by_time(disk: ServedDisk, scratch: Path):
    place = folder(scratch)
    moments: list[int] = []
    disk.control.start_recording(place)
    with disk.image.open("r+b", buffering=0) as file:
        for number in range(3):
            write(file.fileno(), number * 8192, number + 1)
            os.fsync(file.fileno())
            moments.append(time.monotonic_ns())
    disk.control.stop_recording()
    recording = read_recording(place)
    assert recording.is_complete
    assert len(recording.flush_points()) == len(recording.change_points()) == 3
    assert list(recording.flush_points()) == [recording.point_at(moment) for moment in moments]
    assert recording.time_ns(0) == recording.began_ns <= recording.time_ns(recording.last_point) < moments[-1]
    for number, moment in enumerate(moments):
        (source,) = images_at([recording], moment, "drop", 0)
        with served_image(scratch, source, f"image-{number}") as image:
            found = [page[0] for page in (content(image.image)[at * 8192 :][:8192] for at in range(3))]
            assert found == [1, 2, 3][: number + 1] + [0] * (2 - number), "what a flush covered is there"


def test_images_of_a_recording_are_written_to_side_by_side_and_it_stays_as_it_was(disk: ServedDisk, scratch: Path):
    place = folder(scratch)
    with disk.filesystem() as point:
        (point / "before").write_bytes(b"before" * 1000)
        os.sync()
        disk.control.start_recording(place)
        (point / "kept").write_bytes(b"kept" * 1000)
        os.sync()
    disk.control.stop_recording()
    files = {path.name: content(path) for path in place.iterdir()}
    recording = read_recording(place)
    last = recording.image(recording.last_point)
    with served_image(scratch, last, "one") as one, served_image(scratch, last, "two") as two:
        with one.filesystem(made=True) as left, two.filesystem(made=True) as right:
            for at, name in ((left, "left"), (right, "right")):
                assert (at / "before").read_bytes() == b"before" * 1000
                assert (at / "kept").read_bytes() == b"kept" * 1000
                (at / "kept").unlink()
                (at / name).write_bytes(name.encode() * 1_000_000)
        assert one.backing.stat().st_blocks * 512 < 20 * MIB, "an overlay has what was written only"
        # An image is a disk: it is there when it is cut, too.
        one.control.power_cut("drop")
        one.control.power_on()
        with one.filesystem(made=True) as left:
            assert sorted(path.name for path in left.iterdir() if path.is_file()) == ["before", "left"]
    assert {path.name: content(path) for path in place.iterdir()} == files


def test_a_lie_during_the_recording_is_in_its_images(disk: ServedDisk, scratch: Path):
    place = folder(scratch)
    disk.control.start_recording(place)
    disk.control.set_lie(IgnoreFlush())
    with disk.image.open("r+b", buffering=0) as file:
        write(file.fileno(), 0, 1)
        os.fsync(file.fileno())
    disk.control.stop_recording()
    recording = read_recording(place)
    assert len(recording.flush_points()) == 1
    with served_image(scratch, recording.image(recording.last_point)) as image:
        assert content(image.image)[:8192] == bytes(8192)


def test_a_full_place_ends_the_recording_with_an_error_and_the_disk_continues(disk: ServedDisk, scratch: Path):
    place = folder(scratch)
    run("mount", "-t", "tmpfs", "-o", "size=4m", "plinth-test-small", str(place))
    try:
        disk.control.start_recording(place)
        with disk.image.open("r+b", buffering=0) as file:
            for number in range(16):
                write(file.fileno(), number * MIB, 1, MIB)
            wait_until(lambda: present(disk.control.status().recording).error is not None, "the place is full")
            write(file.fileno(), 0, 9)
            os.fsync(file.fileno())
        with pytest.raises(
            RunError, match=r"not recorded to the end: cannot write to .*No space left on device"
        ) as error:
            disk.control.stop_recording()
        assert error.value.where == str(place)
        assert "free space" in (error.value.hint or "")
        assert disk.control.status().recording is None
        recording = read_recording(place)
        assert not recording.is_complete
        assert 0 < recording.last_point < 16
        with served_image(scratch, recording.image(recording.last_point, "prefix")) as image:
            assert image.control.status().image is not None
    finally:
        run("umount", str(place))


def test_a_killed_daemon_leaves_a_recording_that_can_be_read(scratch: Path):
    place = folder(scratch)
    with served(folder(scratch, "disk"), size_bytes=SIZE_BYTES) as disk:
        disk.control.start_recording(place)
        with disk.image.open("r+b", buffering=0) as file:
            for number in range(40):
                write(file.fileno(), number * 8192, 1)
            os.fsync(file.fileno())
            wait_until(lambda: (place / "data").stat().st_size >= 40 * 8192, "the writer has written it")
        disk.signal(signal.SIGKILL)
    recording = read_recording(place)
    assert not recording.is_complete
    assert recording.last_point >= 40


@pytest.mark.parametrize("where", ["on the disk", "not empty", "missing"])
def test_a_place_that_is_none_is_refused(disk: ServedDisk, scratch: Path, where: str):
    if where == "on the disk":
        with disk.filesystem() as point, pytest.raises(UsageError, match="is on the disk itself") as error:
            disk.control.start_recording(point)
    else:
        place = scratch / "recording"
        if where == "not empty":
            place.mkdir()
            (place / "base").touch()
        with pytest.raises(UsageError, match=r"File exists|No such file") as error:
            disk.control.start_recording(place)
    assert "an empty folder that is not on this disk" in (error.value.hint or "")
    assert disk.control.status().recording is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"point": 9}, "has the points 0 to 0; there is no point 9"),
        ({"recording": "/nowhere"}, "/nowhere/records"),
    ],
)
def test_an_image_that_cannot_be_is_refused(disk: ServedDisk, scratch: Path, change: dict[str, Any], message: str):
    place = folder(scratch)
    disk.control.start_recording(place)
    disk.control.stop_recording()
    source = read_recording(place).image(0)
    with pytest.raises(AssertionError, match=message):
        with served_image(scratch, source.model_copy(update=change)):
            pass
    with pytest.raises(AssertionError, match=r"the disk has 4194304 bytes, and the recording in .* is of one of"):
        with served(folder(scratch, "small"), size_bytes=4 * MIB, image=source):
            pass


def test_a_folder_without_a_recording_and_one_that_is_damaged_are_refused(disk: ServedDisk, scratch: Path):
    place = folder(scratch)
    for name in ("base", "records", "data"):
        (place / name).write_bytes(bytes(100))
    with pytest.raises(Refused, match="holds no recording of a disk"):
        read_recording(place)
    other = folder(scratch, "other")
    disk.control.start_recording(other)
    with disk.image.open("r+b", buffering=0) as file:
        write(file.fileno(), 0, 1)
    disk.control.stop_recording()
    with (other / "data").open("r+b") as file:
        file.write(b"2")
    with pytest.raises(Refused, match="damaged: the data of record 0"):
        read_recording(other)
    assert read_recording(other, verify=False).is_complete


def test_a_recording_by_hand(disk: ServedDisk, scratch: Path, capsys: pytest.CaptureFixture[str]):
    control, place = disk.config.control, str(folder(scratch))

    def said(*words: str) -> str:
        assert main(["disk", *words]) == 0
        return capsys.readouterr().out

    assert json.loads(said("record", control, place))["copied_by"] in ("reflink", "copy")
    disk.control.set_physics(Physics(atomic_write_size=4096))
    with disk.image.open("r+b", buffering=0) as file:
        write(file.fileno(), 0, 1)
        os.fsync(file.fileno())
    assert json.loads(said("status", control, "--json"))["recording"]["records"] == 4
    assert json.loads(said("record", control, "--stop"))["data_bytes"] == 8192
    shown = said("points", place)
    assert "points 0 to 4, " in shown
    assert ", 1 flushes" in shown
    assert json.loads(said("points", place, "--json"))["flush_points"] == [4]
    assert main(["disk", "record", control]) == 2
    assert "name the folder to record in, or --stop" in capsys.readouterr().err
    assert main(["disk", "record", control, "--stop"]) == 2
    assert "the disk is not being recorded" in capsys.readouterr().err


def test_the_command_that_serves_an_image_says_which(scratch: Path):
    with served(folder(scratch, "disk"), size_bytes=SIZE_BYTES) as disk:
        disk.control.start_recording(folder(scratch))
        disk.control.stop_recording()
    source = ImageSource(recording=str(scratch / "recording"), point=0, mode="torn", seed=3)
    with served_image(scratch, source) as image:
        assert image.control.status().image is not None
        arguments = Path(f"/proc/{image.process.pid}/cmdline").read_text().split("\0")
        served_image_of = json.loads(arguments[arguments.index("--config") + 1])["image"]
        assert ImageSource.model_validate(served_image_of) == source
        assert subprocess.run(["cmp", image.image, scratch / "recording/base"], check=False).returncode == 0
