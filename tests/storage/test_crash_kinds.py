"""kill -9 after every single step of every kind, and in the middle of it; and in a clean: nothing stays, nothing else goes."""

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from children import run_in_child
from leftovers import nothing_left
from making import from_toml
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage.devices import queue
from plinth.storage.kinds import zram
from plinth.storage.protocol import LocalStorage
from plinth.system.clean import clean
from plinth.system.journal import Journal
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler

KNOBS = 'queue = { write_cache = "write through", read_ahead_kb = 64 }\n'
KINDS = {
    "loop": f'[storage.s]\nkind = "loop"\nsize = "24MiB"\n{KNOBS}',
    "zram": '[storage.s]\nkind = "zram"\nsize = "24MiB"\n',
    "emulated": '[storage.s]\nkind = "emulated"\nprofile = "ideal"\nsize = "24MiB"\n',
    "btrfs": '[storage.s]\nkind = "btrfs"\nmembers = ["m", "f"]\ndata_profile = "raid0"\n'
    f'[storage.m]\nkind = "loop"\nsize = "128MiB"\n{KNOBS}'
    '[storage.f]\nkind = "file"\nsize = "128MiB"\n',
    "zfs": '[storage.s]\nkind = "zfs"\ndata = ["m"]\n[storage.m]\nkind = "file"\nsize = "64MiB"\n',
}
# Of what is built on loop devices, or takes a second to start, only what is its own is tried.
OF_ITS_OWN = {
    "emulated": ("stop_process",),
    "btrfs": ("unmount_filesystem", "restore_queue"),
    "zfs": ("unmount", "stop_zfs_fuse", "destroy_pool"),
}
_MOST = 200


@pytest.fixture
def foreign(scratch: Path, state_dir: Path) -> Iterator[Callable[[], None]]:
    """Another user's loop device, mount and files among ours; gives what asserts that they are as they were."""
    ensure(work_dir() / "foreign")
    (work_dir() / "foreign" / "file").write_text("precious")
    image, point = scratch / "foreign.img", scratch / "foreign"
    with image.open("wb") as file:
        file.truncate(2**24)
    point.mkdir()
    loop = subprocess.run(["losetup", "--show", "-f", image], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["mkfs.ext4", "-q", loop], check=True)
    subprocess.run(["mount", loop, point], check=True)
    (point / "file").write_text("precious")

    def intact() -> None:
        assert sorted(path.name for path in work_dir().iterdir()) == ["foreign"]
        assert (work_dir() / "foreign" / "file").read_text() == "precious"
        assert (point / "file").read_text() == "precious"

    with nothing_left(scratch):
        yield intact
    subprocess.run(["umount", point], check=True)
    subprocess.run(["losetup", "-d", loop], check=True)


def make_all(kind: str) -> Journal:
    journal = Journal.create("t1", UNDO_HANDLERS)
    for storage in from_toml(KINDS[kind]).values():
        storage.prepare(Runner(), journal)
        if not storage.is_raw:
            (storage.mount_point / "file").write_text("18\n")
    return journal


class Killer:
    """SIGKILLs this process at point number `last`, of those that lie in steps of the `kinds` that matter."""

    def __init__(self, last: int, kinds: Collection[str]) -> None:
        self._left = last
        self._kinds = kinds
        self._matters = not kinds

    def step(self, undo_kind: str | None) -> None:
        """From now on it is such a step that is done or undone."""
        self._matters = not self._kinds or undo_kind in self._kinds

    def point(self) -> None:
        self._left -= self._matters
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, owner: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        """A point after each call of a function."""
        function = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            self.point()
            return result

        patch.setattr(owner, name, call)


def kill_when_made(killer: Killer, patch: pytest.MonkeyPatch) -> None:
    """Points: a step is recorded, a part of it is done, the whole of it is done."""
    record = Journal.record

    def recording(self: Journal, step: Step) -> Any:
        killer.step(step.undo.kind if step.undo else None)
        return record(self, step)

    patch.setattr(Journal, "record", recording)
    for owner, name in (
        (Journal, "record"),
        (LocalStorage, "_do"),
        (Runner, "run"),
        (Runner, "spawn"),
        (zram, "write_undo_state"),
        (zram, "_diskseq"),  # asked between the making of a device and the writing down of its name
        (queue, "write_undo_state"),
        (queue, "_write"),
    ):
        killer.after(owner, name, patch)


def kill_when_undone(killer: Killer, patch: pytest.MonkeyPatch) -> None:
    """Points: a command is done, a step is undone, it is struck."""

    def killing(handler: UndoHandler) -> UndoHandler:
        def call(what: Undo, runner: Runner) -> None:
            killer.step(what.kind)
            handler.undo(what, runner)
            killer.point()

        return handler._replace(undo=call)

    for kind, handler in UNDO_HANDLERS.items():
        patch.setitem(cast(dict[str, UndoHandler], UNDO_HANDLERS), kind, killing(handler))
    for owner, name in ((Journal, "mark_undone"), (Runner, "run"), (queue, "_write")):
        killer.after(owner, name, patch)


def dies(
    kill: Callable[[Killer, pytest.MonkeyPatch], None], last: int, kinds: Collection[str], action: Callable[[], object]
) -> bool:
    """Whether `action`, in a child, is killed at that point; False when it comes to its end before."""

    def dying() -> None:
        with pytest.MonkeyPatch.context() as patch:
            kill(Killer(last, kinds), patch)
            action()

    ended = run_in_child(dying)
    assert ended.signal in (None, signal.SIGKILL)
    return ended.signal is not None


def clean_twice(points: int) -> None:
    error = clean(UNDO_HANDLERS).error()
    assert error is None, f"killed at point {points}: {error.details}"
    assert clean(UNDO_HANDLERS).runs == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "at_least"),
    [
        ("emulated", 3),
        ("btrfs", 7),
        *(pytest.param(*one, marks=pytest.mark.long) for one in (("loop", 20), ("zram", 20), ("zfs", 8))),
    ],
)
def test_clean_after_kill_at_every_step_of_making_it(foreign: Callable[[], None], kind: str, at_least: int) -> None:
    points = 1
    while dies(kill_when_made, points, OF_ITS_OWN.get(kind, ()), lambda: make_all(kind)):
        clean_twice(points)
        foreign()
        points += 1
        assert points < _MOST
    clean_twice(points)  # the last one came to its end, but nobody undid it
    foreign()
    assert points > at_least, points


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "at_least"),
    [
        ("emulated", 3),
        ("btrfs", 6),
        *(pytest.param(*one, marks=pytest.mark.long) for one in (("loop", 12), ("zram", 9), ("zfs", 6))),
    ],
)
def test_clean_after_kill_at_every_step_of_a_clean(foreign: Callable[[], None], kind: str, at_least: int) -> None:
    def die_in_use() -> None:
        make_all(kind)
        os.kill(os.getpid(), signal.SIGKILL)

    points = 1
    while run_in_child(die_in_use) and dies(
        kill_when_undone, points, OF_ITS_OWN.get(kind, ()), lambda: clean(UNDO_HANDLERS)
    ):
        clean_twice(points)
        foreign()
        points += 1
        assert points < _MOST
    assert clean(UNDO_HANDLERS).runs == ()
    foreign()
    assert points > at_least, points
