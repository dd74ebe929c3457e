"""Recordings of emulated storages, and images of them: made, mounted, taken down, and what happens when something fails."""

import os
import signal
import time
from pathlib import Path

import pytest

from emulated_disks import images_at
from making import from_toml
from plinth.model.errors import Refused, RunError, UsageError
from plinth.run.power_cuts.recorded_disks import undo_left_images
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage.devices.disk_daemon import daemons
from plinth.storage.devices.disk_recording import read_recording
from plinth.storage.kinds.emulated import Emulated
from plinth.system.clean import clean
from plinth.system.journal import Journal, journal_path
from plinth.system.mounts import mounts_within
from plinth.system.runner import CommandError, Runner
from storage_tables import MEMORY
from typed import of, present

DISK = '[storage.s]\nkind = "emulated"\nprofile = "ideal"\nsize = "{size}"\non = "memory"\n{further}\n' + MEMORY


def disk(filesystem: str = "ext4", further: str = "") -> str:
    size = {"ext4": "64MiB", "xfs": "300MiB", "btrfs": "128MiB"}[filesystem]
    return DISK.format(size=size, further=f'filesystem = "{filesystem}"\n{further}')


def synced(path: Path, content: bytes) -> int:
    """Write a file durably; returns the time when it was so."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return time.monotonic_ns()


def recorded(made, scratch: Path, text: str):
    """A storage, its recording of two files, and when each was durable."""
    made.prepare(text)
    storage = of(Emulated, made.storages["s"])
    place = scratch / "recording"
    storage.start_recording(place, made.runner, made.journal)
    moments = [synced(storage.mount_point / name, name.encode() * 10_000) for name in ("first", "second")]
    storage.stop_recording()
    return storage, [read_recording(folder) for folder in storage.recording_folders(place)], moments


@pytest.mark.long
@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_an_image_is_mounted_next_to_the_storage_with_what_was_durable_then(
    made, scratch: Path, filesystem: str
) -> None:
    storage, recordings, moments = recorded(made, scratch, disk(filesystem))
    images = [
        storage.image(f"at-{number}", images_at(recordings, moment, "drop", 0)) for number, moment in enumerate(moments)
    ]
    for image in images:
        image.attach(made.runner, made.journal)
        image.mount(made.runner, made.journal)
    first, second = (image.mount_point for image in images)
    assert (first / "first").read_bytes() == (second / "first").read_bytes() == b"first" * 10_000
    assert not (first / "second").exists() or (first / "second").read_bytes() != b"second" * 10_000
    assert (second / "second").read_bytes() == b"second" * 10_000
    (second / "first").unlink()
    os.sync()
    assert (storage.mount_point / "first").exists()
    assert present(images[0].disks()[0].status().image).point == recordings[0].point_at(moments[0])
    for image in images:
        image.teardown(made.runner, made.journal)
        assert not image.folder.exists()
        assert daemons(image.folder / "disk-1") == []
    assert [entry.step.id for entry in made.journal.entries if entry.step.id.startswith("image.")] == []
    made.undo()
    assert not (scratch / "recording").exists()


def test_a_btrfs_is_mounted_once_the_recorded_one_is_gone_and_one_image_after_the_other(made, scratch: Path) -> None:
    storage, recordings, moments = recorded(made, scratch, disk("btrfs"))
    images = [
        storage.image(f"at-{number}", images_at(recordings, moment, "drop", 3))
        for number, moment in enumerate(reversed(moments))
    ]
    images[0].attach(made.runner, made.journal)
    with pytest.raises(Refused, match="a btrfs of the same identity") as error:
        images[0].mount(made.runner, made.journal)
    assert "one image of it at a time" in (error.value.hint or "")
    images[0].teardown(made.runner, made.journal)
    storage.teardown(made.runner, made.journal)
    found = []
    for image in images:
        image.attach(made.runner, made.journal)
        found.append((image.mount(made.runner, made.journal) / "second").exists())
        assert (image.mount_point / "first").read_bytes() == b"first" * 10_000
        image.teardown(made.runner, made.journal)
    assert found[0]


def test_an_image_of_several_disks_is_cut_at_one_moment(made, scratch: Path) -> None:
    text = '[storage.pair]\nkind = "btrfs"\nmembers = ["s"]\ndata_profile = "raid1"\n' + disk(
        "btrfs", "count = 2"
    ).replace('filesystem = "btrfs"\n', "")
    made.prepare(text)
    storage, pair = made.storages["s"], made.storages["pair"]
    place = scratch / "recording"
    storage.start_recording(place, made.runner, made.journal)
    moment_ns = synced(pair.mount_point / "file", b"both" * 10_000)
    storage.stop_recording()
    recordings = [read_recording(folder) for folder in storage.recording_folders(place)]
    assert [folder.name for folder in sorted(place.iterdir()) if folder.is_dir()] == ["disk-1", "disk-2"]
    image = storage.image("both", images_at(recordings, moment_ns, "subset", 5))
    image.attach(made.runner, made.journal)
    assert len(image.devices) == 2
    assert [control.status().image.seed for control in image.disks()] == [5, 6]
    image.teardown(made.runner, made.journal)


def test_a_file_system_that_cannot_be_mounted_is_a_result(made, scratch: Path) -> None:
    made.prepare(disk("ext4"))
    storage = of(Emulated, made.storages["s"])
    (control,) = storage.disks()
    storage.start_recording(scratch / "recording", made.runner, made.journal)
    # What a disk leaves that has lost its first blocks.
    with (Path(storage.configs[0].mount) / "disk.img").open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), bytes(65536), 0)
    control.flush_now()
    storage.stop_recording()
    recording = read_recording(*storage.recording_folders(scratch / "recording"))
    image = storage.image("broken", [recording.image(recording.last_point)])
    image.attach(made.runner, made.journal)
    with pytest.raises(CommandError, match="mount failed"):
        image.mount(made.runner, made.journal)
    assert image.devices[0].exists(), "it can be looked at"
    image.teardown(made.runner, made.journal)
    assert not image.folder.exists()


def test_an_image_that_cannot_be_served_leaves_nothing(made, scratch: Path) -> None:
    storage, (recording,), _ = recorded(made, scratch, disk())
    image = storage.image("none", [recording.image(recording.last_point + 1)])
    with pytest.raises(UsageError, match="serve the image none") as error:
        image.attach(made.runner, made.journal)
    assert any("there is no point" in line for line in error.value.details), error.value.details
    assert not image.folder.exists()
    assert [entry.step.id for entry in made.journal.entries if entry.step.id.startswith("image.")] == []


def test_a_recording_on_the_storage_itself_is_refused_and_one_that_exists_is_left_alone(made, scratch: Path) -> None:
    made.prepare(disk())
    storage = of(Emulated, made.storages["s"])
    with pytest.raises(Refused, match="a recording of storage s cannot be stored in it"):
        storage.start_recording(storage.mount_point / "recording", made.runner, made.journal)
    (scratch / "recording").mkdir()
    (scratch / "recording/mine").touch()
    with pytest.raises(Refused):
        storage.start_recording(scratch / "recording", made.runner, made.journal)
    made.undo()
    assert (scratch / "recording/mine").exists()


def test_what_the_place_has_no_room_for_is_reported_when_it_stops(made, scratch: Path) -> None:
    made.prepare(
        disk() + '\n[storage.small]\nkind = "tmpfs"\nsize = "8MiB"\n',
    )
    storage, small = made.storages["s"], made.storages["small"]
    storage.start_recording(small.mount_point / "recording", made.runner, made.journal)
    synced(storage.mount_point / "file", os.urandom(2**24))
    with pytest.raises(RunError, match=r"stop recording storage s: .*No space left on device"):
        storage.stop_recording()
    made.undo()


def test_nothing_is_left_of_recording_and_image_after_a_kill(made, state_dir: Path, scratch: Path, in_child) -> None:
    place = scratch / "recording"

    def die() -> None:
        storages = from_toml(disk())
        journal = Journal.create("dies", UNDO_HANDLERS)
        runner = Runner()
        for storage in storages.values():
            storage.prepare(runner, journal)
        storage = of(Emulated, storages["s"])
        storage.start_recording(place, runner, journal)
        synced(storage.mount_point / "file", b"x" * 100_000)
        (folder,) = storage.recording_folders(place)
        image = storage.image("left", [read_recording(folder).image(0)])
        image.attach(runner, journal)
        image.mount(runner, journal)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die).signal == signal.SIGKILL
    assert place.exists()
    error = clean(UNDO_HANDLERS, "dies").error()
    assert error is None, error.details
    assert not place.exists()
    assert mounts_within(state_dir) == []


def test_what_a_killed_atlas_left_is_undone_and_the_disk_is_recorded_again(
    state_dir: Path, scratch: Path, in_child
) -> None:
    """Killed while the disk was recorded again and an image was served; the storage itself is kept."""
    first, second = scratch / "first", scratch / "second"

    def die() -> None:
        storages = from_toml(disk())
        journal, runner = Journal.create("dies", UNDO_HANDLERS), Runner()
        for storage in storages.values():
            storage.prepare(runner, journal)
        storage = of(Emulated, storages["s"])
        storage.start_recording(first, runner, journal)
        storage.stop_recording()
        image = storage.image("image-1", [read_recording(storage.recording_folders(first)[0]).image(0)])
        image.attach(runner, journal)
        image.mount(runner, journal)
        storage.start_recording(second, runner, journal)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die).signal == signal.SIGKILL
    runner, storages = Runner(), from_toml(disk())
    storage = of(Emulated, storages["s"])
    journal = Journal.take_over(journal_path("dies"), UNDO_HANDLERS)
    assert journal is not None
    try:
        mounted = len(mounts_within(state_dir))
        assert undo_left_images(list(storages.values()), [], journal, runner) == []
        assert not first.exists() and not second.exists()
        assert len(mounts_within(state_dir)) == mounted - 2, "the image and the disk that serves it"
        assert storage.failure() is None
        assert not [entry for entry in journal.entries if entry.step.id.startswith(("image.", "recording."))]
        storage.start_recording(second, runner, journal)
        synced(storage.mount_point / "file", b"again")
        (status,) = storage.stop_recording()
        assert status.records > 0
    finally:
        assert journal.undo_all(runner) == ()
        journal.close()


def test_a_folder_of_others_where_an_image_would_be_is_left_alone(made, scratch: Path) -> None:
    storage, recordings, _ = recorded(made, scratch, disk())
    image = storage.image("taken", [recordings[0].image(0)])
    image.folder.mkdir()
    (image.folder / "theirs").write_text("kept")
    with pytest.raises(Refused, match="serve the image taken"):
        image.attach(made.runner, made.journal)
    image.teardown(made.runner, made.journal)
    assert (image.folder / "theirs").read_text() == "kept"
    (image.folder / "theirs").unlink()
    image.folder.rmdir()
    image.attach(made.runner, made.journal)
    image.teardown(made.runner, made.journal)
    assert not image.folder.exists()
