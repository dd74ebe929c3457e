"""The journal's file: what is in it, who may take it over, and what happens to it when things go wrong."""

import errno
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import plinth
from plinth.model.errors import MissingCapability, PlinthError, Refused, UsageError
from plinth.model.progress import Progress
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.clean import clean, kept_runs, left_behind, pending_journals, take_down
from plinth.system.directory import make_directory
from plinth.system.journal import JOURNAL_VERSION, Journal, StillRunning, journal_path
from plinth.system.namespaces import own_namespaces
from plinth.system.owner import server_owner
from plinth.system.paths import ensure, work_dir
from plinth.system.process import ProcessMark
from plinth.system.runner import Runner


def directory_step(path: Path, journal: Journal, name: str = "test.directory") -> Step:
    return Step(
        id=name, title=f"make {path.name}", undo=Undo(kind="remove_directory", path=str(path), label=journal.label)
    )


def lines_of(journal: Journal) -> list[dict]:
    return [json.loads(line) for line in journal.path.read_text().splitlines()]


def made(journal: Journal, name: str) -> Path:
    """A directory of ours, journaled."""
    path = ensure(work_dir()) / name
    journal.record(directory_step(path, journal, f"test.{name}"))
    make_directory(path, journal.label, server_owner())
    return path


def test_a_step_is_on_disk_when_record_returns_and_struck_when_undone(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    step = directory_step(state_dir / "d", journal)
    entry = journal.record(step)
    header, recorded = lines_of(journal)
    mark = ProcessMark.of_this_process()
    assert header == {
        "journal": JOURNAL_VERSION,
        "run_id": "r1",
        **mark._asdict(),
        "host": os.uname().nodename,
        "namespaces": own_namespaces(),
    }
    assert (recorded["entry"], Step.model_validate(recorded["step"])) == (1, step)
    journal.mark_undone(entry)
    assert lines_of(journal)[2:] == [{"strike": 1}]
    assert journal.entries == ()
    journal.close()
    assert pending_journals() == ()


def test_closing_keeps_the_file_only_while_something_is_left_to_undo(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    journal.record(Step(id="test.note", title="nothing to undo"))
    entry = journal.record(directory_step(state_dir / "d", journal))
    journal.close()
    assert pending_journals() == (journal.path,)

    again = Journal.take_over(journal.path, UNDO_HANDLERS)
    assert again is not None
    assert [e.number for e in again.entries] == [1, 2]
    again.mark_undone(entry)
    again.close()
    assert pending_journals() == ()


def test_the_process_that_resumes_a_run_is_its_owner(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    entry = journal.record(directory_step(state_dir / "a", journal))
    journal.path.write_text(re.sub(r'"pid": \d+', '"pid": 1', journal.path.read_text()))
    journal.close()
    again = Journal.take_over(journal.path, UNDO_HANDLERS)
    assert again is not None
    again.own()
    assert again.has(entry.step.id) and not again.has("test")
    with pytest.raises(StillRunning) as raised:
        Journal.take_over(journal.path, UNDO_HANDLERS)
    assert raised.value.pid == os.getpid()
    again.mark_undone(entry)
    assert not again.has(entry.step.id)
    again.close()


def test_numbers_continue_after_a_run_is_resumed(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    first = journal.record(directory_step(state_dir / "a", journal))
    journal.record(directory_step(state_dir / "b", journal))
    journal.mark_undone(first)
    journal.close()
    again = Journal.take_over(journal.path, UNDO_HANDLERS)
    assert again is not None
    assert again.record(directory_step(state_dir / "c", journal)).number == 3
    again.close()


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden", "a b", "x" * 81])
def test_a_run_id_that_is_no_file_name_is_refused(state_dir: Path, run_id: str) -> None:
    with pytest.raises(UsageError, match="run id"):
        Journal.create(run_id, UNDO_HANDLERS)
    assert not state_dir.exists()


def test_two_runs_cannot_share_a_name(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    with pytest.raises(Refused, match="there already"):
        Journal.create("r1", UNDO_HANDLERS)
    journal.close()


@pytest.mark.long
def test_a_torn_last_line_at_every_byte_loses_only_that_line(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    kept = journal.record(directory_step(state_dir / "a", journal))
    whole = journal.path.read_bytes()
    journal.record(directory_step(state_dir / "b", journal))
    both = journal.path.read_bytes()
    journal.close()
    for length in range(len(whole), len(both)):
        journal.path.write_bytes(both[:length])
        torn = Journal.take_over(journal.path, UNDO_HANDLERS)
        assert torn is not None
        assert torn.entries == (kept,)
        torn.record(kept.step)  # lands on a line of its own
        torn.close()
        assert lines_of(journal)[-1]["entry"] == 2


@pytest.mark.parametrize("length", [0, 1, 40])
def test_a_torn_first_line_means_that_nothing_was_done(state_dir: Path, length: int) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    journal.record(directory_step(state_dir / "a", journal))
    journal.close()
    journal.path.write_bytes(journal.path.read_bytes()[:length])
    assert clean(UNDO_HANDLERS).error() is None
    assert pending_journals() == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"\0\0\0\0", "damaged"),
        (b'{"entry": 2}', "damaged"),
        (b'{"entry": 2, "step": {"id": "x"}}', "damaged"),
        (b'{"strike": 7}', "damaged"),
        (b'{"journal": 1, "pid": 1, "started_ticks": 1, "boot_id": ""}', "damaged"),
        (b'{"resumed": 1, "pid": 1, "started_ticks": 1, "boot_id": ""}', "damaged"),
    ],
)
def test_a_damaged_line_is_refused_by_file_and_line_and_nothing_is_touched(
    state_dir: Path, line: bytes, expected: str
) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    path = made(journal, "d")
    journal.close()
    content = journal.path.read_bytes() + line + b"\n"
    journal.path.write_bytes(content)
    error = clean(UNDO_HANDLERS).error()
    assert isinstance(error, Refused)
    assert f"{journal.path}:3" in error.details[0]
    assert expected in error.details[0]
    assert journal.path.read_bytes() == content
    assert path.is_dir()


def test_a_newer_version_is_refused(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    made(journal, "d")
    journal.close()
    newer = JOURNAL_VERSION + 1
    journal.path.write_text(
        journal.path.read_text().replace(f'{{"journal": {JOURNAL_VERSION}', f'{{"journal": {newer}')
    )
    with pytest.raises(Refused, match=f"version {newer}; this Plinth knows {JOURNAL_VERSION}"):
        clean(UNDO_HANDLERS, "r1")


def test_a_journal_of_another_user_is_refused(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    path = made(journal, "d")
    journal.close()
    os.chown(journal.path, 65534, 65534)
    with pytest.raises(Refused, match="another user"):
        clean(UNDO_HANDLERS, "r1")
    assert path.is_dir()


def test_a_living_run_is_left_alone_until_it_is_dead(state_dir: Path) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        journal = Journal.create("r1", UNDO_HANDLERS)
        made(journal, "d")
        os.write(writing, b"ready")
        signal.pause()
    assert os.read(reading, 5) == b"ready"
    try:
        with pytest.raises(StillRunning, match=f"pid {pid}") as refusal:
            clean(UNDO_HANDLERS, "r1")
        assert refusal.value.exit_code == 4
        everything = clean(UNDO_HANDLERS)
        assert [run.pid for run in everything.alive] == [pid]
        assert everything.error() is None
        assert (work_dir() / "d").is_dir()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    cleaned = clean(UNDO_HANDLERS, "r1")
    assert [step.title for step in cleaned.runs[0].undone] == ["make d"]
    assert not (work_dir() / "d").exists()
    assert clean(UNDO_HANDLERS, "r1").runs == ()
    assert clean(UNDO_HANDLERS).runs == ()


@pytest.fixture
def tiny(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 64 kB, with the journals on it."""
    tiny = scratch / "tiny"
    tiny.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "plinth-test", tiny], check=True)
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tiny / "state"))
    yield tiny
    subprocess.run(["umount", tiny], check=True)


def test_a_full_disk_stops_a_step_before_it_is_done_and_tears_no_line(tiny: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    filler = tiny / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        while True:
            file.write(bytes(4096))
    with pytest.raises(MissingCapability, match="no space left") as full:
        for number in range(200):  # until the journal's last page is full too
            journal.record(directory_step(tiny / str(number), journal))
    assert full.value.exit_code == 5
    recorded = len(journal.entries)
    assert len(lines_of(journal)) == recorded + 1
    filler.unlink()
    journal.record(directory_step(tiny / "after", journal))
    assert [line["entry"] for line in lines_of(journal)[1:]] == list(range(1, recorded + 2))
    journal.close()


def test_a_full_disk_keeps_nothing_from_being_undone(tiny: Path, scratch: Path) -> None:
    """The strikes of what is undone cannot be written: else no space would ever come free."""
    journal = Journal.create("r1", UNDO_HANDLERS)
    outer, inner = scratch / "outer", scratch / "outer" / "inner"
    for path in (outer, inner):
        journal.record(directory_step(path, journal))
        make_directory(path, journal.label, server_owner())
    with (tiny / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        while True:
            file.write(bytes(4096))
    room = -journal.path.stat().st_size % 4096
    journal.keep("x" * (room - len('{"kept": ""}\n')))  # now its last page is full
    with pytest.raises(MissingCapability, match="no space left"):
        journal.record(Step(id="s", title="t"))
    assert journal.undo_all(Runner()) == ()
    assert not outer.exists()
    journal.close()
    assert pending_journals() == ()


def test_undo_goes_backwards_and_reports(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    outer = made(journal, "outer")
    journal.record(directory_step(outer / "inner", journal))
    make_directory(outer / "inner", journal.label, server_owner())
    reported: list[Progress] = []
    assert journal.undo_all(Runner(), reported.append) == ()
    assert [progress.detail for progress in reported] == ["make inner", "make outer", ""]
    assert [(p.done, p.total, p.unit) for p in reported] == [(0, 2, "steps"), (1, 2, "steps"), (2, 2, "steps")]
    assert not outer.exists()
    journal.close()


def test_a_step_is_kept_when_one_that_depends_on_it_cannot_be_undone(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    outer, other = made(journal, "outer"), made(journal, "other")
    journal.record(directory_step(outer / "inner", journal, "test.inner"))
    (outer / "inner").write_text("a foreign file")
    kept = journal.undo_all(Runner())
    assert [left.step.id for left in kept] == ["test.inner", "test.outer"]
    assert "depends on it" in kept[1].error.message
    assert not other.exists()
    journal.close()

    result = clean(UNDO_HANDLERS, "r1")
    error = result.error()
    assert isinstance(error, Refused)
    assert error.exit_code == 4
    assert len(error.details) == 2
    (outer / "inner").unlink()
    assert clean(UNDO_HANDLERS, "r1").error() is None
    assert not outer.exists()
    assert pending_journals() == ()


def test_only_the_steps_asked_for_are_undone(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    a, b = made(journal, "a"), made(journal, "b")
    assert journal.undo_steps("test.a", Runner()) == ()
    assert (a.exists(), b.exists()) == (False, True)
    assert [entry.step.id for entry in journal.entries] == ["test.b"]
    journal.undo_all(Runner())
    journal.close()


def test_one_bad_journal_does_not_keep_others_from_being_cleaned(state_dir: Path) -> None:
    bad, good = Journal.create("bad", UNDO_HANDLERS), Journal.create("good", UNDO_HANDLERS)
    path = made(good, "d")
    bad.record(directory_step(state_dir / "x", bad))
    bad.close()
    good.close()
    with bad.path.open("ab") as file:
        file.write(b"rubbish\n")
    result = clean(UNDO_HANDLERS)
    assert [run.run_id for run in result.runs] == ["good"]
    assert isinstance(result.error(), PlinthError)
    assert not path.exists()
    assert pending_journals() == (journal_path("bad"),)


def test_what_a_clean_would_do_is_told_and_nothing_is_changed(state_dir: Path) -> None:
    dead, alive, kept, bad = (Journal.create(name, UNDO_HANDLERS) for name in ("dead", "alive", "kept", "bad"))
    paths = [made(dead, "first"), made(dead, "second"), made(bad, "x"), made(kept, "d")]
    dead.record(Step(id="test.newer", title="make it", undo=Undo(kind="newer", path="/it", label=dead.label)))
    dead.record(Step(id="test.nothing", title="look at it"))
    kept.keep("storage fast")
    for journal in (dead, kept, bad):
        journal.close()
    with dead.path.open("ab") as file:
        file.write(b'{"entry": 3')  # torn
    bad.path.write_text("rubbish\n")
    before = {journal: journal.read_bytes() for journal in pending_journals()}

    found = left_behind(UNDO_HANDLERS)
    (run,) = found.runs
    assert (run.run_id, [step.id for step in run.undoing]) == ("dead", ["test.second.undo", "test.first.undo"])
    assert [one.step.id for one in run.kept] == ["test.newer"]
    assert [run.run_id for run in found.alive] == ["alive"]
    assert [(run.run_id, run.what) for run in found.kept_runs] == [("kept", "storage fast")]
    error = found.error()
    assert isinstance(error, Refused) and error.details == (
        "/it: this Plinth does not know how 'newer' is undone",
        "  hint: clean with the Plinth that wrote the journal, or a newer one",
        f"{bad.path}:1: {found.unreadable[0].message}",
        "  hint: undo by hand what its lines name, last one first; then delete it",
    )
    assert [run.run_id for run in left_behind(UNDO_HANDLERS, "dead").runs] == ["dead"]
    assert left_behind(UNDO_HANDLERS, "gone").runs == ()
    with pytest.raises(StillRunning):
        left_behind(UNDO_HANDLERS, "alive")
    assert {journal: journal.read_bytes() for journal in pending_journals()} == before
    assert all(path.is_dir() for path in paths)
    alive.close()


def test_one_bad_journal_does_not_hide_kept_runs(state_dir: Path) -> None:
    bad, good = Journal.create("bad", UNDO_HANDLERS), Journal.create("good", UNDO_HANDLERS)
    bad.record(directory_step(state_dir / "x", bad))
    made(good, "d")
    good.keep("storage fast")
    bad.close()
    good.close()
    bad.path.write_text("rubbish\n")
    runs, unreadable = kept_runs()
    assert [run.run_id for run in runs] == ["good"]
    assert [error.where for error in unreadable] == [f"{bad.path}:1"]
    assert len(take_down(UNDO_HANDLERS, "good").runs) == 1


def test_a_journal_of_another_machine_is_refused_and_one_of_another_boot_is_not(state_dir: Path) -> None:
    """A home that several machines mount: what runs on the other one cannot be seen here."""
    journal = Journal.create("r1", UNDO_HANDLERS)
    path = made(journal, "d")
    journal.close()
    first, *rest = lines_of(journal)
    elsewhere = {**first, "host": "elsewhere", "boot_id": "another"}
    journal.path.write_text("".join(json.dumps(line) + "\n" for line in (elsewhere, *rest)))
    (refused,) = clean(UNDO_HANDLERS).unreadable
    assert isinstance(refused, Refused)
    assert "one of the machine elsewhere" in refused.message
    assert path.exists()
    rebooted = {**first, "boot_id": "another"}
    journal.path.write_text("".join(json.dumps(line) + "\n" for line in (rebooted, *rest)))
    assert len(clean(UNDO_HANDLERS).runs) == 1
    assert not path.exists()


def test_where_no_run_ever_was_there_is_nothing_to_clean(state_dir: Path) -> None:
    assert clean(UNDO_HANDLERS).runs == ()
    assert clean(UNDO_HANDLERS, "r1").runs == ()
    assert not state_dir.exists()


def test_a_state_directory_that_is_closed_to_us_is_an_error_and_not_nothing(state_dir: Path, in_child) -> None:
    Journal.create("r1", UNDO_HANDLERS).record(Step(id="s", title="t"))
    state_dir.chmod(0o700)

    def clean_closed() -> int:
        with pytest.raises(PlinthError, match="cannot look for journals: permission denied") as error:
            clean(UNDO_HANDLERS)
        return error.value.exit_code

    assert in_child(clean_closed, user="nobody").value == 5
    state_dir.chmod(0o755)
    assert isinstance(in_child(clean_all_as_other, user="nobody").value, str)


def clean_all_as_other() -> str:
    error = clean(UNDO_HANDLERS).error()
    assert error is not None
    assert "permission denied" in error.details[0]
    return error.message


def test_what_is_meant_to_stay_is_named_and_left_until_it_is_taken_down(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    path = made(journal, "d")
    journal.keep("storage fast")
    journal.close()
    for run_id in (None, "r1"):
        result = clean(UNDO_HANDLERS, run_id)
        assert result.runs == ()
        assert [(run.run_id, run.what, len(run.steps)) for run in result.kept_runs] == [("r1", "storage fast", 1)]
        assert result.error() is None
        assert path.exists()
    assert [run.run_id for run in kept_runs().runs] == ["r1"]
    (taken,) = take_down(UNDO_HANDLERS, "r1").runs
    assert [step.id for step in taken.undone] == ["test.d"]
    assert not path.exists()
    assert kept_runs() == ((), ())
    assert take_down(UNDO_HANDLERS, "r1").runs == ()


def test_a_run_killed_before_it_says_that_it_stays_is_cleaned(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    path = made(journal, "d")
    os.write(journal._fd, b'{"kept": "storage fa')  # a torn line is none
    os.close(journal._fd)
    assert len(clean(UNDO_HANDLERS).runs) == 1
    assert not path.exists()


def _spoilt(path: Path, what: str) -> None:
    """Put something in place of the journal `path` that no Plinth writes."""
    first, *rest = path.read_text().splitlines()
    path.unlink()
    owner = json.loads(first)
    match what:
        case "a directory":
            path.mkdir()
        case "a FIFO":
            os.mkfifo(path)
        case "a link":
            path.symlink_to("/etc/passwd")
        case "3 TiB of nothing":
            with path.open("wb") as file:
                file.truncate(3 << 40)
        case "lists in lists":
            path.write_text("[" * 100_000 + "\n")
        case "another run's":
            path.write_text("\n".join((json.dumps({**owner, "run_id": "r2"}), *rest)) + "\n")
        case _:
            key, value = json.loads(what)
            path.write_text("\n".join((json.dumps({**owner, key: value}), *rest)) + "\n")


@pytest.mark.parametrize(
    "what",
    [
        "a directory",
        "a FIFO",
        "a link",
        "3 TiB of nothing",
        "lists in lists",
        "another run's",
        '["pid", "4711"]',
        '["started_ticks", null]',
        '["boot_id", 5]',
        '["host", ["db1"]]',
    ],
)
def test_what_is_no_journal_is_refused_alone_and_all_else_cleaned(state_dir: Path, what: str) -> None:
    bad, good = (Journal.create(name, UNDO_HANDLERS) for name in ("bad", "good"))
    paths = [made(bad, "first"), made(good, "second")]
    for journal in (bad, good):
        journal.close()
    _spoilt(bad.path, what)
    for found in (left_behind(UNDO_HANDLERS), clean(UNDO_HANDLERS)):
        (refused,) = found.unreadable
        assert isinstance(refused, PlinthError) and str(bad.path) in (refused.where or "")
        assert [run.run_id for run in found.runs] == ["good"]
    assert [path.exists() for path in paths] == [True, False]


def test_a_run_that_another_process_cleans_up_after_is_not_called_running(state_dir: Path) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    path = made(journal, "d")
    journal.path.write_text(re.sub(r'"pid": \d+', '"pid": 4194303', journal.path.read_text()))
    shown = plinth("clean")  # the lock is held here, as by another clean
    assert (shown.returncode, shown.stdout) == (0, "run r1: another process cleans up after it, not cleaned\n")
    named = plinth("clean", "r1")
    assert named.returncode == 4 and "another clean of run r1 is still going" in named.stderr
    assert path.exists()
    journal.close()
    assert plinth("clean").returncode == 0
    assert not path.exists()
