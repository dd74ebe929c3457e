"""md and lvm, where the kernel has their drivers: made as planned, read back, taken down, killed after every command.

Run inside user-mode-linux by test_arrays.py; the usual collection passes it over. A command takes a quarter of a second in
there, so all tests share their members, and what they make of them is left raw: file systems on it and PostgreSQL are
postgres_inside.py's.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from making import check_declared, from_toml
from plinth.model.errors import MissingCapability, PlinthError, Refused
from plinth.model.facts import StorageFacts
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage.folder import FolderStorage
from plinth.storage.requirements import require_driver
from plinth.system.clean import clean
from plinth.system.journal import Journal
from plinth.system.paths import work_dir
from plinth.system.runner import CommandRecord, Runner

MEMBERS = "abcd"
MEMBER = '[storage.{name}]\nkind = "file"\nsize = "24MiB"\npath = "{path}"\n'
TOP = '[storage.top]\nkind = "btrfs"\nmembers = ["s"]\n'  # never made: it only takes s raw
READERS = ("test", "wipefs", "lvs", "pvs", "--examine")  # of commands that change nothing


class Bench:
    """Members that are there for all tests, and what is made of them."""

    def __init__(self, path: Path, state: Path) -> None:
        self.path = path
        self.state = state
        self.runner = Runner()

    def storage(self, kind: str, members: str, more: str = "") -> FolderStorage:
        """The storage s, of the first so many members."""
        toml = "".join(MEMBER.format(name=name, path=self.path) for name in MEMBERS)
        names = ", ".join(f'"{name}"' for name in members)
        toml += f'[storage.s]\nkind = "{kind}"\nmembers = [{names}]\n{more}' + TOP
        storage = from_toml(toml)["s"]
        assert isinstance(storage, FolderStorage)
        return storage


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """On a disk with its own file system: files in memory can have no direct I/O in this kernel."""
    runner = Runner()
    runner.run(("mkfs.ext4", "-q", "/dev/ubda"))
    path = Path("/mnt")
    runner.run(("mount", "/dev/ubda", str(path)))
    state = path / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLINTH_STATE_DIR", str(state))
        bench = Bench(path, state)
        members = [bench.storage("lvm", MEMBERS).other(name) for name in MEMBERS]
        journal = Journal.create("members", UNDO_HANDLERS)
        for member in members:
            member.prepare(runner, journal)
        yield bench
        assert journal.undo_all(runner) == ()
        journal.close()
        assert list(work_dir().iterdir()) == []
    runner.run(("umount", str(path)))


@pytest.fixture
def journal(bench: Bench) -> Iterator[Journal]:
    """The journal of a run, of which nothing stays, however the test ends."""
    journal = Journal.create("t1", UNDO_HANDLERS)
    try:
        yield journal
    finally:
        kept = journal.undo_all(bench.runner)
        journal.close()
    assert kept == (), [(each.error.message, each.error.details) for each in kept]
    nothing_left()


def nothing_left() -> None:
    """Arrays, volumes, nodes, and folders of anything but the members."""
    assert [folder.name for kind in ("md*", "dm-*") for folder in Path("/sys/block").glob(kind)] == []
    assert list(Path("/dev/md").glob("*")) == []
    assert sorted(path.name for path in work_dir().iterdir()) == [f"plinth-t1-{name}" for name in MEMBERS]


def values(facts: StorageFacts, kind: str) -> dict[str, object]:
    (node,) = [node for node in facts.stack if node.kind == kind]
    return {fact.name: fact.value for fact in node.facts}


USUAL = (
    "raid0",
    "striped",
)  # the others, and deaths at every command, when the outer test asks for those that are long
CASES = {
    "raid0": ("md", "ab", 'level = 0\nchunk_size = "64KiB"\n', {"chunk_size": "65536"}),
    "raid1": ("md", "ab", "level = 1\n", {}),
    "raid10": ("md", "abcd", "level = 10\n", {}),
    "raid5": ("md", "abc", 'level = 5\nchunk_size = "32KiB"\n', {"chunk_size": "32768"}),
    "linear": ("lvm", "ab", "", {"segtype": "linear", "stripes": "1"}),
    "striped": (
        "lvm",
        "ab",
        'layout = "striped"\nstripe_size = "16KiB"\nsize = "36MiB"\n',
        {"segtype": "striped", "stripes": "2", "stripe_size": "16384", "size_bytes": 40 * 2**20},  # of whole extents
    ),
}


@pytest.mark.parametrize(
    "case", [case if case in USUAL else pytest.param(case, marks=pytest.mark.long) for case in CASES]
)
def test_made_as_planned_read_back_and_taken_down(bench: Bench, journal: Journal, case: str) -> None:
    kind, members, more, expected = CASES[case]
    storage = bench.storage(kind, members, more)
    commands: list[CommandRecord] = []
    facts = storage.prepare(Runner(commands.append), journal)
    planned = [step.argv for step in storage.steps() if step.argv]
    assert list(dict.fromkeys(command.argv for command in commands if command.argv in planned)) == planned
    assert [node.kind for node in facts.stack].count("loop") == len(members)
    found = values(facts, "md" if kind == "md" else "dm")
    assert {name: found[name] for name in expected} == expected
    if kind == "md":
        assert found["level"] == case
    capacity = storage.capacity_bytes()
    assert capacity is not None
    assert 0.75 * capacity < facts.total_bytes < 1.2 * capacity
    with storage.member_paths()[0].open("r+b") as device:
        device.write(os.urandom(2**16))
    storage.teardown(bench.runner, journal)
    assert journal.entries == ()
    assert not storage.member_paths()[0].exists()


def test_a_name_that_is_taken_and_members_that_bear_something_are_refused(bench: Bench, journal: Journal) -> None:
    array = bench.storage("md", "ab", "level = 0\n")
    array.prepare(bench.runner, journal)
    with pytest.raises(Refused, match="there already"):
        bench.storage("md", "cd", "level = 0\n").check(bench.runner)
    array.teardown(bench.runner, journal)
    member = array.member_paths_of(["a"])[0]
    bench.runner.run(("mkfs.ext4", "-q", str(member)))
    for kind, more in (("md", "level = 0\n"), ("lvm", "")):
        with pytest.raises(Refused, match="ext4") as error:
            bench.storage(kind, "ab", more).prepare(bench.runner, journal)
        assert error.value.where == str(member)
    bench.runner.run(("wipefs", "-q", "-a", str(member)))


def test_what_mdadm_and_lvm_refuse_is_reported_with_their_words_and_undone(bench: Bench, journal: Journal) -> None:
    for kind, members, more, step, words in (
        ("md", "a", "level = 5\n", "make a RAID 5", "'1' is an unusual number of drives"),
        ("lvm", "a", 'size = "1GiB"\n', "make a linear volume", "insufficient free space"),
    ):
        with pytest.raises(PlinthError) as error:
            bench.storage(kind, members, more).prepare(bench.runner, journal)
        assert error.value.exit_code == 1
        assert step in error.value.message
        assert words in " ".join(error.value.details)
        assert journal.entries == ()
        nothing_left()


def test_a_driver_that_the_kernel_lacks_is_named_with_what_modprobe_says(tmp_path: Path) -> None:
    with pytest.raises(MissingCapability, match=r"md driver: not in this kernel; modprobe no_such says: .*not found"):
        require_driver("md driver", "no_such", tmp_path / "mdstat", Runner())


class DyingRunner(Runner):
    """Ends this process by SIGKILL right after command number `last`, of those that change something."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._left = last

    def run(self, *args, **options):
        completed = super().run(*args, **options)
        self._left -= not any(word in READERS for word in args[0])
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return completed


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "members", "more"), [("md", "ab", "level = 1\n"), ("lvm", "a", "")], ids=["md", "lvm"]
)
def test_clean_after_kill_at_every_command(
    bench: Bench, in_child: Callable, kind: str, members: str, more: str
) -> None:
    def make_and_undo(die_after: int) -> None:
        runner, journal = DyingRunner(die_after), Journal.create("dies", UNDO_HANDLERS)
        storage = bench.storage(kind, members, more)
        storage.prepare(runner, journal)  # refuses members that still have anything
        storage.teardown(runner, journal)
        journal.close()

    for die_after in range(1, 20):
        ended = in_child(lambda die_after=die_after: make_and_undo(die_after))
        if ended.signal is not None:
            error = clean(UNDO_HANDLERS, "dies").error()
            assert error is None, f"after command {die_after}: {error.details}"
            assert clean(UNDO_HANDLERS, "dies").runs == ()
        nothing_left()
        if ended.signal is None:
            assert die_after > 4
            return
        assert ended.signal == signal.SIGKILL
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize(("kind", "more"), [("md", "level = 1\n"), ("lvm", 'layout = "striped"\n')])
def test_it_runs_the_programs_that_it_declares(bench: Bench, journal: Journal, kind: str, more: str) -> None:
    check_declared(bench.storage(kind, "ab", more), journal)
