"""Ballast: file systems that are really filled to a share before anything is stored on them, and what cannot be filled."""

import os
import zlib
from pathlib import Path

import pytest

from making import Made, from_toml
from plinth.model.errors import MissingCapability, RunError
from plinth.model.progress import Progress
from plinth.storage.filling import BALLAST_FILE
from plinth.storage.kinds.loop import Loop
from typed import of

SIZES = {"ext4": "192MiB", "xfs": "320MiB", "btrfs": "256MiB"}
MEMORY = '[storage.memory]\nkind = "tmpfs"\nsize = "1GiB"\n'
LOOP = '[storage.s]\nkind = "loop"\nsize = "{}"\nfilesystem = "{}"\nfill = {}\non = "memory"\n' + MEMORY


def df_share(path: Path) -> float:
    """Use% of df(1)."""
    space = os.statvfs(path)
    used = space.f_blocks - space.f_bfree
    return used / (used + space.f_bavail)


@pytest.mark.long
@pytest.mark.parametrize("fill", [0.5, 0.95])
@pytest.mark.parametrize("filesystem", list(SIZES))
def test_a_file_system_is_filled_with_bytes_that_nothing_compresses(made: Made, filesystem: str, fill: float) -> None:
    facts = made.prepare(LOOP.format(SIZES[filesystem], filesystem, fill))["s"]
    storage = made.storages["s"]
    ballast = storage.mount_point / BALLAST_FILE
    found = ballast.stat()
    assert df_share(storage.mount_point) == pytest.approx(fill, abs=0.02)
    assert found.st_blocks * 512 >= found.st_size, "written, without holes"
    assert found.st_uid == 0
    assert len(zlib.compress(ballast.read_bytes()[: 2**20])) > 2**20
    assert [note for note in facts.notes if f"fill = {fill}" in note and BALLAST_FILE in note]
    assert facts.free_bytes == os.statvfs(storage.mount_point).f_bavail * os.statvfs(storage.mount_point).f_frsize
    image = of(Loop, storage).images.paths[0].stat()
    assert image.st_blocks * 512 > found.st_size, "the storage below holds it, too"
    estimate = storage.ballast_bytes()
    assert estimate == pytest.approx(found.st_size, rel=0.25), "as the plan counts it"


@pytest.mark.long
def test_a_file_system_over_members_is_filled_and_its_members_are_not(made: Made) -> None:
    made.prepare(
        '[storage.s]\nkind = "btrfs"\nmembers = ["m"]\ndata_profile = "raid0"\nfill = 0.7\n'
        '[storage.m]\nkind = "loop"\nsize = "256MiB"\ncount = 2\non = "memory"\n' + MEMORY
    )
    assert df_share(made.storages["s"].mount_point) == pytest.approx(0.7, abs=0.02)
    assert made.storages["m"].ballast_bytes() == 0
    assert [step.id for step in made.storages["m"].steps() if step.id.endswith(".fill")] == []


def test_memory_is_filled_and_free_again_afterwards(made: Made) -> None:
    made.prepare('[storage.s]\nkind = "tmpfs"\nsize = "64MiB"\nfill = 0.85\n')
    point = made.storages["s"].mount_point
    assert df_share(point) == pytest.approx(0.85, abs=0.02)
    made.undo()
    assert not point.exists()


def test_it_is_the_last_step_and_shows_how_far_it_is(made: Made) -> None:
    reported: list[Progress] = []
    made.storages = from_toml(LOOP.format("192MiB", "ext4", 0.85))
    for storage in made.storages.values():
        storage.prepare(made.runner, made.journal, report=reported.append)
    filled = made.storages["s"]
    last = filled.steps()[-1]
    assert (last.id, last.argv) == ("storage.s.fill", None)
    assert "until 0.85 of it is in use" in last.title
    assert {progress.task for progress in reported} == {"fill storage s"}
    assert [progress.done for progress in reported] == sorted({progress.done for progress in reported})
    assert len(reported) > 1
    assert reported[-1].done == reported[-1].total == (filled.mount_point / BALLAST_FILE).stat().st_size


def test_more_in_use_by_the_empty_file_system_than_asked_for_is_an_error_and_all_is_undone(made: Made) -> None:
    with pytest.raises(RunError, match=r"in use by the empty file system, more than fill = 0\.001"):
        made.prepare(LOOP.format("320MiB", "xfs", 0.001))
    assert not made.storages["s"].mount_point.exists()


def test_what_replaces_a_tmpfs_is_not_filled(made: Made) -> None:
    with pytest.raises(MissingCapability, match="not ours alone to fill") as caught:
        made.prepare('[storage.s]\nkind = "tmpfs"\nsize = "64MiB"\nfill = 0.85\n', can_mount=False)
    assert caught.value.where == "storage.s.fill"


@pytest.mark.long
def test_a_pool_that_compresses_is_filled(made: Made) -> None:
    made.prepare(
        '[storage.s]\nkind = "zfs"\ndata = ["v"]\nfill = 0.7\nproperties = { compression = "gzip" }\n'
        '[storage.v]\nkind = "file"\nsize = "128MiB"\ncount = 2\non = "memory"\n' + MEMORY
    )
    storage = made.storages["s"]
    assert df_share(storage.mount_point) == pytest.approx(0.7, abs=0.02)
    assert storage.ballast_bytes() == pytest.approx((storage.mount_point / BALLAST_FILE).stat().st_size, rel=0.25)
