"""Directory and tmpfs: made, read, taken down; as root and not; in places where they cannot be."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability, PlinthError, Refused, UsageError
from plinth.model.storage import DirectoryStorage, TmpfsStorage
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.clean import clean
from plinth.system.directory import found_label
from plinth.system.journal import Journal
from plinth.system.mounts import mount_of
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir
from plinth.system.runner import CommandRecord, Runner

SHM = Path("/dev/shm")


def directory(path: Path | str | None = None) -> DirectoryStorage:
    return DirectoryStorage(kind="directory", path=None if path is None else str(path))


def tmpfs(size_bytes: int = 2**20) -> TmpfsStorage:
    return TmpfsStorage(kind="tmpfs", size=size_bytes)


@pytest.fixture
def journal(state_dir: Path) -> Iterator[Journal]:
    """The journal of a run, which must leave nothing behind."""
    journal = Journal.create("t1", UNDO_HANDLERS)
    yield journal
    assert journal.undo_all(Runner()) == ()
    journal.close()


def write_as_owner(path: Path) -> None:
    """The user who runs servers can use it."""
    Runner().run(["sh", "-c", 'echo hello > "$0/file" && cat "$0/file"', str(path)], owner=server_owner())


@pytest.mark.parametrize("spec", [directory(), tmpfs()], ids=["directory", "tmpfs"])
def test_making_one_touches_nothing_and_shows_all(make_storage, state_dir: Path, spec) -> None:
    storage = make_storage(spec)
    assert storage.mount_point == work_dir() / "plinth-t1-s"
    assert storage.steps()[0].undo is not None
    storage.needs_from()
    assert not state_dir.exists()


@pytest.mark.parametrize("spec", [directory(), tmpfs()], ids=["directory", "tmpfs"])
def test_it_is_made_for_the_server_user_as_planned_and_taken_down(make_storage, journal: Journal, spec) -> None:
    storage = make_storage(spec)
    commands: list[CommandRecord] = []
    planned = storage.steps()
    facts = storage.prepare(Runner(commands.append), journal)

    assert [entry.step for entry in journal.entries] == planned
    ran = [command.argv for command in commands]
    assert [step.argv for step in planned if step.argv] == [argv for argv in ran if argv[0] != "test"]
    assert (facts.name, facts.kind, facts.path) == ("s", spec.kind, str(storage.mount_point))
    assert facts == storage.facts(Runner()).model_copy(update={"free_bytes": facts.free_bytes, "stack": facts.stack})
    found = storage.mount_point.stat()
    assert (found.st_uid, found.st_mode & 0o777) == (server_owner().uid, 0o700)
    assert found_label(storage.mount_point) == "plinth-t1"
    write_as_owner(storage.mount_point)

    storage.teardown(Runner(), journal)
    assert list(work_dir().iterdir()) == []
    assert journal.entries == ()
    storage.teardown(Runner(), journal)


def test_a_directory_in_a_named_place_that_is_a_link(make_storage, journal: Journal, scratch: Path) -> None:
    (scratch / "real").mkdir()
    (scratch / "link").symlink_to(scratch / "real")
    storage = make_storage(directory(scratch / "link"))
    assert storage.mount_point == scratch / "real" / "plinth-t1-s"
    assert storage.needs_from() == scratch / "real"
    storage.prepare(Runner(), journal)
    storage.teardown(Runner(), journal)
    assert list((scratch / "real").iterdir()) == []


def test_a_tmpfs_is_of_its_size_volatile_and_holds_no_more(make_storage, journal: Journal) -> None:
    storage = make_storage(tmpfs(1_000_001))
    facts = storage.prepare(Runner(), journal)
    assert facts.total_bytes == 1_003_520  # whole pages
    assert facts.volatile
    assert "memory" in (facts.volatile_reason or "")
    assert facts.filesystem == "tmpfs"
    assert {"nosuid", "nodev"} <= set(facts.mount_options)
    assert (facts.notes, facts.gaps, facts.block_devices) == ((), (), ())
    assert mount_of(storage.mount_point).source == "plinth-t1"
    with pytest.raises(OSError, match="No space left"):
        (storage.mount_point / "file").write_bytes(bytes(1_003_521))
    assert storage.needs_from() == "memory"


def test_more_than_there_is_memory_is_noted(make_storage) -> None:
    assert make_storage(tmpfs(2**30), memory_bytes=2**30).notes() == ()
    (note,) = make_storage(tmpfs(2**31), memory_bytes=2**30).notes()
    assert "2.0 GiB is more than the memory available (1.0 GiB)" in note


def test_a_tmpfs_of_no_size_would_have_no_limit(make_storage, journal: Journal) -> None:
    for can_mount in (True, False):
        with pytest.raises(UsageError, match="no limit") as error:
            make_storage(tmpfs(0), can_mount=can_mount).prepare(Runner(), journal)
        assert error.value.where == "storage.s.size"


def test_without_the_right_to_mount_shared_memory_is_used(make_storage, journal: Journal) -> None:
    storage = make_storage(tmpfs(), can_mount=False)
    assert storage.mount_point == SHM / "plinth-t1-s"
    assert storage.needs_from() == SHM
    facts = storage.prepare(Runner(), journal)
    assert (facts.kind, facts.filesystem, facts.volatile) == ("tmpfs", "tmpfs", True)
    assert "is used instead of the tmpfs" in facts.notes[0]
    assert [entry.step.argv for entry in journal.entries] == [None]
    write_as_owner(storage.mount_point)
    storage.teardown(Runner(), journal)
    assert not storage.mount_point.exists()


def test_without_enough_shared_memory_it_is_refused_before_anything_is_made(make_storage, journal: Journal) -> None:
    with pytest.raises(MissingCapability, match=r"asks for 1\.0 PiB") as error:
        make_storage(tmpfs(2**50), can_mount=False).prepare(Runner(), journal)
    assert (error.value.exit_code, journal.entries) == (5, ())


def test_all_of_it_without_root(make_storage, scratch: Path, in_child) -> None:
    scratch.chmod(0o777)
    place = scratch / "place"
    place.mkdir()
    place.chmod(0o777)

    def run() -> list[tuple[str, int, tuple[str, ...]]]:
        journal = Journal.create("t1", UNDO_HANDLERS)
        made = []
        for spec in (directory(), directory(place), tmpfs()):
            storage = make_storage(spec, can_mount=False)
            facts = storage.prepare(Runner(), journal)
            write_as_owner(storage.mount_point)
            made.append((facts.path, storage.mount_point.stat().st_uid, facts.notes))
            storage.teardown(Runner(), journal)
        storage = make_storage(tmpfs(), can_mount=False)
        storage.prepare(Runner(), journal)
        journal.close()
        result = clean(UNDO_HANDLERS)
        assert result.error() is None
        assert len(result.runs) == 1
        assert not storage.mount_point.exists()
        return made

    in_work, in_place, in_memory = in_child(run, user="nobody").value
    assert in_work == (str(work_dir() / "plinth-t1-s"), 65534, ())
    assert in_place == (str(place / "plinth-t1-s"), 65534, ())
    assert in_memory[:2] == (str(SHM / "plinth-t1-s"), 65534)
    assert "We may not mount here" in in_memory[2][0]
    assert list(place.iterdir()) == []


def test_mounting_without_the_right_fails_with_what_mount_says(make_storage, scratch: Path, in_child) -> None:
    scratch.chmod(0o777)

    def mount() -> tuple[int, str, list[Path]]:
        journal = Journal.create("t1", UNDO_HANDLERS)
        with pytest.raises(PlinthError) as error:
            make_storage(tmpfs(), can_mount=True).prepare(Runner(), journal)
        assert journal.undo_all(Runner()) == ()
        journal.close()
        return error.value.exit_code, " ".join(error.value.details), list(work_dir().iterdir())

    exit_code, details, left = in_child(mount, user="nobody").value
    assert (exit_code, left) == (1, [])
    assert "must be superuser" in details


def missing(scratch: Path) -> Path:
    return scratch / "missing"


def a_file(scratch: Path) -> Path:
    (scratch / "file").write_text("precious")
    return scratch / "file"


def below_a_file(scratch: Path) -> Path:
    return a_file(scratch) / "below"


def link_to_itself(scratch: Path) -> Path:
    (scratch / "loop").symlink_to(scratch / "loop")
    return scratch / "loop" / "x"


def closed_to_the_server(scratch: Path) -> Path:
    (scratch / "closed" / "inner").mkdir(parents=True)
    (scratch / "closed").chmod(0o700)
    return scratch / "closed" / "inner"


def taken_by_a_directory(scratch: Path) -> Path:
    (scratch / "plinth-t1-s").mkdir()
    (scratch / "plinth-t1-s" / "file").write_text("precious")
    return scratch


def taken_by_a_link(scratch: Path) -> Path:
    (scratch / "precious").mkdir()
    (scratch / "plinth-t1-s").symlink_to(scratch / "precious")
    return scratch


@pytest.mark.parametrize(
    ("place", "kind", "exit_code", "message"),
    [
        (missing, UsageError, 2, "no such directory"),
        (a_file, UsageError, 2, "not a directory"),
        (below_a_file, UsageError, 2, "not a directory"),
        (link_to_itself, Refused, 4, "symbolic link"),
        (closed_to_the_server, MissingCapability, 5, "user [a-z]+, who runs the server, may not enter .*/closed,"),
        (taken_by_a_directory, Refused, 4, "there already"),
        (taken_by_a_link, Refused, 4, "there already"),
    ],
)
def test_places_that_will_not_do(
    make_storage, state_dir: Path, scratch: Path, place, kind: type[PlinthError], exit_code: int, message: str
) -> None:
    path = place(scratch)
    before = sorted(scratch.rglob("*"))
    journal = Journal.create("t1", UNDO_HANDLERS)
    with pytest.raises(kind, match=message) as error:
        make_storage(directory(path)).prepare(Runner(), journal)
    assert error.value.exit_code == exit_code
    assert error.value.where
    assert error.value.hint
    assert journal.entries == ()
    journal.close()
    assert [path for path in sorted(scratch.rglob("*")) if state_dir not in (path, *path.parents)] == before


def test_a_place_that_we_may_not_write_to(make_storage, scratch: Path, in_child) -> None:
    (scratch / "readable").mkdir(mode=0o755)
    state = scratch / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)

    def prepare() -> tuple[int, str]:
        journal = Journal.create("t1", UNDO_HANDLERS)
        with pytest.raises(MissingCapability, match="may not write") as error:
            make_storage(directory(scratch / "readable")).prepare(Runner(), journal)
        journal.close()
        return error.value.exit_code, error.value.hint or ""

    assert in_child(prepare, user="nobody").value == (5, "give user id 65534 the right to")


@pytest.fixture
def tiny(scratch: Path) -> Iterator[Path]:
    """A file system of 64 KiB and 8 inodes."""
    point = scratch / "tiny"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=8", "tiny", point], check=True)
    yield point
    subprocess.run(["umount", point], check=True)


def test_a_full_place_is_refused_before_anything_is_made(make_storage, journal: Journal, tiny: Path) -> None:
    (tiny / "filler").write_bytes(bytes(65536))
    with pytest.raises(MissingCapability, match="no space left on its file system") as error:
        make_storage(directory(tiny)).prepare(Runner(), journal)
    assert (error.value.exit_code, error.value.where) == (5, str(tiny))
    (tiny / "filler").unlink()
    for number in range(7):
        (tiny / str(number)).touch()
    with pytest.raises(MissingCapability, match="no inodes left on its file system"):
        make_storage(directory(tiny)).prepare(Runner(), journal)
    assert journal.entries == ()


def test_a_place_that_fills_up_in_the_middle_leaves_nothing(make_storage, journal: Journal, tiny: Path) -> None:
    for number in range(6):  # one inode is left: enough for the directory, not for the label in it
        (tiny / str(number)).touch()
    with pytest.raises(MissingCapability, match="no inodes left") as error:
        make_storage(directory(tiny)).prepare(Runner(), journal)
    assert error.value.exit_code == 5
    assert journal.undo_all(Runner()) == ()
    assert len(list(tiny.iterdir())) == 6


def test_a_read_only_place(make_storage, journal: Journal, tiny: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", tiny], check=True)
    with pytest.raises(MissingCapability, match="mounted read-only"):
        make_storage(directory(tiny)).prepare(Runner(), journal)


def test_a_mount_that_was_replaced_is_not_taken_for_what_was_asked(make_storage, journal: Journal) -> None:
    storage = make_storage(tmpfs(2**20))
    storage.prepare(Runner(), journal)
    subprocess.run(["mount", "-o", "remount,size=2m", storage.mount_point], check=True)
    with pytest.raises(PlinthError, match=r"asked for a tmpfs of 1048576 bytes .* got a tmpfs of 2097152 bytes"):
        storage.confirm()


def test_a_storage_in_use_cannot_be_taken_down_and_stays_in_the_journal(make_storage, journal: Journal) -> None:
    storage = make_storage(tmpfs())
    storage.prepare(Runner(), journal)
    with (storage.mount_point / "file").open("w"):
        with pytest.raises(PlinthError, match="umount failed"):
            storage.teardown(Runner(), journal)
        assert [entry.step.id for entry in journal.entries] == ["storage.s.directory", "storage.s.mount"]
    storage.teardown(Runner(), journal)
    assert journal.entries == ()
