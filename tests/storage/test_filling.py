"""File systems that are filled on purpose: nothing can be written to them, and everything again afterwards."""

import errno
import os
from pathlib import Path

import pytest

from making import Made
from plinth.model.disk import Physics
from plinth.model.errors import Refused
from plinth.storage.filling import FILL_FILE, fill_up, free_again

MEMORY = '[storage.memory]\nkind = "tmpfs"\nsize = "1GiB"\n'
LOOP = '[storage.s]\nkind = "loop"\nsize = "{}"\nfilesystem = "{}"\non = "memory"\n' + MEMORY
KINDS = {
    "ext4": LOOP.format("64MiB", "ext4"),
    "xfs": LOOP.format("320MiB", "xfs"),
    "btrfs": LOOP.format("256MiB", "btrfs"),
    "tmpfs": '[storage.s]\nkind = "tmpfs"\nsize = "64MiB"\n',
    "zfs": '[storage.s]\nkind = "zfs"\ndata = ["m"]\n[storage.m]\nkind = "file"\nsize = "128MiB"\non = "memory"\n'
    + MEMORY,
}
PAGE = bytes(8192)


def room_bytes(folder: Path) -> int:
    """What an ordinary user can write to a new file, up to 16 MiB."""
    path = folder / "tried"
    written = 0
    try:
        with path.open("wb", buffering=0) as file:
            while written < 2**24:
                written += file.write(os.urandom(len(PAGE)))
            os.fsync(file.fileno())
    except OSError as error:
        assert error.errno == errno.ENOSPC
    path.unlink(missing_ok=True)
    return written


@pytest.mark.long
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_file_system_is_full_and_has_its_room_again(made: Made, kind: str) -> None:
    made.prepare(KINDS[kind])
    root = made.storages["s"].mount_point
    assert room_bytes(root) >= 2**24
    size_bytes = fill_up(root)
    assert size_bytes > 2**24
    assert room_bytes(root) < 2**20
    free_again(root)
    assert room_bytes(root) >= 2**24
    free_again(root)  # nothing to do


def test_what_shares_its_file_system_is_not_filled(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="shares its file system"):
        fill_up(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_storage_is_rid_of_the_faults_that_a_killed_trial_left(made: Made) -> None:
    made.prepare(
        '[storage.s]\nkind = "emulated"\nprofile = "ideal"\nphysics.read_latency = "2ms"\nsize = "64MiB"\non = "memory"\n'
        + MEMORY
    )
    storage = made.storages["s"]
    (disk,) = storage.disks()
    before = disk.status().physics
    disk.set_physics(Physics(flush_latency=8_000_000, read_latency=9_000_000))
    fill_up(storage.mount_point)
    storage.end_faults()
    assert disk.status().physics == before
    assert before.read_latency_ns == 2_000_000
    assert not (storage.mount_point / FILL_FILE).exists()
