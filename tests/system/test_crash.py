"""kill -9 after every single call that changes the disk, in a run and in a clean: nothing stays, nothing else goes."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from killing import kill_after, kill_in_write
from making import host
from plinth.model.storage import DirectoryStorage, StorageSpec, TmpfsStorage
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage import Storage, make
from plinth.system.clean import clean
from plinth.system.journal import Journal
from plinth.system.mounts import mounts_within
from plinth.system.owner import server_owner
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import Runner

HOST = host(memory_bytes=2**30)


def storages(elsewhere: Path) -> list[Storage]:
    specs: dict[str, StorageSpec] = {
        "disk": DirectoryStorage(kind="directory"),
        "other": DirectoryStorage(kind="directory", path=str(elsewhere)),
        "memory": TmpfsStorage(kind="tmpfs", size=2**20),
    }
    return list(make(specs, run_id="crash", host=HOST, owner=server_owner(), work_root=work_dir()).values())


def use(elsewhere: Path) -> Journal:
    """Make every storage and put something into each."""
    journal = Journal.create("crash", UNDO_HANDLERS)
    for storage in storages(elsewhere):
        storage.prepare(Runner(), journal)
        (storage.mount_point / "pgdata").mkdir()
        (storage.mount_point / "pgdata" / "PG_VERSION").write_text("18\n")
    return journal


def whole_run(elsewhere: Path) -> None:
    journal = use(elsewhere)
    for storage in storages(elsewhere):
        storage.teardown(Runner(), journal)
    journal.close()


def check_clean(state_dir: Path, elsewhere: Path) -> None:
    """Nothing of ours is left, and everything of others is."""
    assert mounts_within(state_dir) == []
    assert list((state_dir / "journal").glob("*")) == []
    assert sorted(path.name for path in work_dir().iterdir()) == ["foreign"]
    assert (work_dir() / "foreign" / "file").read_text() == "foreign"
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [("foreign", "foreign")]


@pytest.fixture
def elsewhere(scratch: Path, state_dir: Path) -> Path:
    """A place named by an experiment, with a foreign file; the work directory has one, too."""
    path = scratch / "elsewhere"
    path.mkdir()
    (path / "foreign").write_text("foreign")
    ensure(work_dir() / "foreign")
    (work_dir() / "foreign" / "file").write_text("foreign")
    return path


def every_kill(in_child: Callable, kill: Callable, action: Callable[[], object], after: Callable[[int], None]) -> int:
    """Run `action` in child after child, each killed one call later, until one lives to the end; returns how many died."""
    for calls in range(1, 1000):

        def dying(calls: int = calls) -> None:
            with pytest.MonkeyPatch.context() as patch:
                kill(calls, patch)
                action()

        ended = in_child(dying)
        after(calls)
        if ended.signal is None:
            return calls - 1
        assert ended.signal == signal.SIGKILL
    raise AssertionError("it never came to its end")


@pytest.mark.long
@pytest.mark.parametrize(("kill", "at_least"), [(kill_after, 50), (kill_in_write, 15)])
def test_clean_after_kill_at_every_call_of_a_run(
    state_dir: Path, elsewhere: Path, in_child: Callable, kill: Callable, at_least: int
) -> None:
    def clean_twice(calls: int) -> None:
        error = clean(UNDO_HANDLERS).error()
        assert error is None, f"after call {calls}: {error.details}"
        check_clean(state_dir, elsewhere)
        assert clean(UNDO_HANDLERS).runs == ()
        check_clean(state_dir, elsewhere)

    assert every_kill(in_child, kill, lambda: whole_run(elsewhere), clean_twice) >= at_least


@pytest.mark.long
@pytest.mark.parametrize(("kill", "at_least"), [(kill_after, 15), (kill_in_write, 5)])
def test_clean_after_kill_at_every_call_of_a_clean(
    state_dir: Path, elsewhere: Path, in_child: Callable, kill: Callable, at_least: int
) -> None:
    def die_in_use() -> None:
        use(elsewhere)
        os.kill(os.getpid(), signal.SIGKILL)

    def clean_and_begin_again(calls: int) -> None:
        error = clean(UNDO_HANDLERS).error()
        assert error is None, f"after call {calls}: {error.details}"
        check_clean(state_dir, elsewhere)
        in_child(die_in_use)

    in_child(die_in_use)
    assert len(mounts_within(state_dir)) == 1
    assert every_kill(in_child, kill, lambda: clean(UNDO_HANDLERS), clean_and_begin_again) >= at_least
    clean(UNDO_HANDLERS)
    check_clean(state_dir, elsewhere)
