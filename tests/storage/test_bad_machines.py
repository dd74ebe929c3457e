"""Machines that cannot make what is asked, and file systems that cannot take it: reported with step and exit code, undone."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disks import dev_without, in_private_mounts, without_program
from making import from_toml
from plinth.model.errors import MissingCapability, PlinthError, Refused
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.journal import Journal
from plinth.system.paths import work_dir
from plinth.system.runner import Runner
from storage_tables import loop


class Failed:
    """What a storage that could not be made failed, and which of its steps were left in the journal."""

    def __init__(self, error: PlinthError, left: list[str]) -> None:
        self.kind = type(error)
        self.exit_code, self.message, self.where = error.exit_code, error.message, error.where
        self.hint, self.details = error.hint, error.details
        self.left = left


def failing(toml: str) -> Failed:
    """Make the storages of `toml`, the last of which cannot be made; undo the others."""
    journal = Journal.create("t1", UNDO_HANDLERS)
    *others, last = from_toml(toml).values()
    for storage in others:
        storage.prepare(Runner(), journal)
    with pytest.raises(PlinthError) as caught:
        last.prepare(Runner(), journal)
    left = [entry.step.id for entry in journal.entries if entry.step.id.startswith(last.step_id(""))]
    assert journal.undo_all(Runner()) == ()
    journal.close()
    return Failed(caught.value, left)


@pytest.fixture
def undone(state_dir: Path, made) -> Iterator[Callable[[str], Failed]]:
    """`failing`, where nothing may be left afterwards: see the fixture `made`, of which only that is used."""
    made.journal.close()
    yield failing
    made.journal = Journal.create("t1", UNDO_HANDLERS)


@pytest.mark.parametrize(
    ("toml", "program", "package"),
    [
        (loop("ext4"), "mkfs.ext4", "e2fsprogs"),
        (loop("xfs"), "mkfs.xfs", "xfsprogs"),
        (loop("btrfs"), "mkfs.btrfs", "btrfs-progs"),
        (loop("ext4"), "losetup", "mount"),
    ],
)
def test_a_tool_that_is_missing_is_named_with_its_package(undone, scratch: Path, toml, program, package) -> None:
    def without() -> Failed:
        without_program(program, scratch)
        return failing(toml)

    failed = in_private_mounts(without)
    assert (failed.kind, failed.exit_code, failed.left) == (MissingCapability, 5, [])
    assert failed.message == f"storage s: {program}: there is no such program"
    assert failed.hint == f"Debian and Ubuntu have it in package {package}"


@pytest.mark.parametrize(
    ("device", "toml", "message"),
    [
        ("loop-control", loop("ext4"), "no loop devices here"),
        ("fuse", '[storage.s]\nkind = "emulated"\nprofile = "ideal"\nsize = "64MiB"\n', "this system has no FUSE"),
    ],
)
def test_a_device_of_the_kernel_that_is_missing_is_reported_before_anything_is_made(
    undone, device, toml, message
) -> None:
    def without() -> Failed:
        dev_without(device)
        return failing(toml)

    failed = in_private_mounts(without)
    assert (failed.kind, failed.exit_code, failed.left) == (MissingCapability, 5, [])
    assert message in failed.message
    assert failed.hint


def test_no_loop_device_left(undone) -> None:
    """The kernel hands out number after number; with no node in /dev for them, as in a container, none can be had."""

    def without() -> Failed:
        dev_without("loop[0-9]*")
        return failing(loop("ext4"))

    failed = in_private_mounts(without)
    assert (failed.kind, failed.exit_code, failed.left) == (MissingCapability, 5, [])
    assert "storage s: attach " in failed.message
    assert "no loop device is available" in failed.message
    assert any("losetup" in line for line in failed.details)


@pytest.mark.long
@pytest.mark.parametrize(
    ("toml", "step", "words"),
    [
        (loop("ext4", mkfs_options='["-O", "bogus"]'), "make the file system ext4 on", "bogus"),
        (loop("xfs", mkfs_options='["-m", "crc=7"]'), "make the file system xfs on", "-m crc"),
        (loop("btrfs", mkfs_options='["--csum", "bogus"]'), "make the file system btrfs on", "bogus"),
        (loop("xfs").replace("320MiB", "32MiB"), "make the file system xfs on", "300MB"),
        (loop("btrfs").replace("128MiB", "32MiB"), "make the file system btrfs on", "too small"),
        (loop("ext4", mount_options='["commit=bogus"]'), "mount it on", "commit"),
        (loop("xfs", mount_options='["logbsize=7"]'), "mount it on", "logbufsize"),
        (loop("btrfs", mount_options='["compress=bogus"]'), "mount it on", "compress"),
    ],
)
def test_what_mkfs_or_mount_refuses_is_reported_in_their_words_or_the_kernels(undone, toml, step, words) -> None:
    failed = undone(toml)
    assert (failed.exit_code, failed.left) == (5, [])
    assert failed.message.startswith(f"storage s: {step} ")
    assert failed.where.split()[0] in ("mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mount")
    assert any(words in line for line in failed.details), failed.details


def test_a_name_that_is_taken_is_refused(undone, state_dir: Path) -> None:
    folder = work_dir() / "plinth-t1-s"
    folder.mkdir(parents=True)
    (folder / "file").write_text("precious")
    failed = undone('[storage.s]\nkind = "loop"\nsize = "64MiB"\n')
    assert (failed.kind, failed.exit_code, failed.left) == (Refused, 4, [])
    assert "it is there already" in failed.message
    assert (folder / "file").read_text() == "precious"
    shutil.rmtree(folder)


def test_a_place_without_room_for_the_file_system_shows_what_the_kernel_said(undone) -> None:
    """The file is sparse: that there is no room shows when mkfs writes to it."""
    failed = undone(loop("ext4").replace("64MiB", "1GiB").replace("2GiB", "8MiB"))
    assert (failed.kind.__name__, failed.exit_code, failed.left) == ("CommandError", 1, [])
    assert failed.message.startswith("storage s: make the file system ext4 on ")
    assert any("error" in line.lower() for line in failed.details), failed.details


def test_a_place_that_fills_up_later_is_reported_as_the_reason(made) -> None:
    made.prepare(loop("ext4").replace("64MiB", "256MiB").replace("2GiB", "64MiB"))
    storage = made.storages["s"]
    assert storage.failure() is None
    with pytest.raises(OSError):
        with (storage.mount_point / "file").open("wb") as file:
            for _ in range(100):
                file.write(os.urandom(2**20))
                file.flush()
                os.fsync(file.fileno())
    assert "no space left in" in storage.failure()
    assert "for the sparse files of storage s to grow" in storage.failure()


def test_a_file_system_that_cannot_do_direct_io_says_what_to_set(undone, scratch: Path) -> None:
    (scratch / "old").mkdir()
    subprocess.run(["mount", "-t", "ramfs", "old", scratch / "old"], check=True)
    try:
        failed = undone(f'[storage.s]\nkind = "loop"\nsize = "8MiB"\npath = "{scratch / "old"}"\n')
        assert failed.left == []
        assert "direct_io = false" in (failed.hint or "")
    finally:
        subprocess.run(["umount", scratch / "old"], check=True)
