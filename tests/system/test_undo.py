"""Undo touches only what has our label: every way in which something else can be in place of ours."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.model.errors import PlinthError, Refused
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS, undo_step
from plinth.server.undo import SERVER_UNDO
from plinth.storage.registry import KINDS
from plinth.system.directory import LABEL_FILE, found_label, make_directory, remove_directory
from plinth.system.journal import Journal
from plinth.system.owner import server_owner
from plinth.system.runner import CommandError, Runner
from plinth.system.undo import SYSTEM_UNDO, undo
from typed import present

LABEL = "plinth-test1"


@pytest.fixture
def ours(scratch: Path) -> Path:
    """A directory of ours with something in it."""
    path = scratch / "ours"
    make_directory(path, LABEL, server_owner())
    (path / "pgdata" / "base").mkdir(parents=True)
    (path / "pgdata" / "PG_VERSION").write_text("18\n")
    return path


@pytest.fixture
def precious(scratch: Path) -> Path:
    """Another user's directory."""
    path = scratch / "precious"
    path.mkdir()
    (path / "data").write_text("irreplaceable")
    return path


def mount_tmpfs(path: Path, source: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", source, path], check=True)


@pytest.fixture
def mounted(scratch: Path) -> Iterator[Path]:
    """A tmpfs of ours."""
    path = scratch / "mounted"
    path.mkdir()
    mount_tmpfs(path, LABEL)
    yield path
    while os.path.ismount(path):
        subprocess.run(["umount", path], check=True)


def unmount(path: Path, label: str = LABEL) -> None:
    undo(Undo(kind="unmount", path=str(path), label=label), Runner(), UNDO_HANDLERS)


def test_a_directory_of_ours_belongs_to_the_server_user_and_is_removed_whole(ours: Path) -> None:
    owner = server_owner()
    found = ours.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (owner.uid, owner.gid, 0o700)
    assert found_label(ours) == LABEL
    remove_directory(ours, LABEL)
    assert not ours.exists()
    remove_directory(ours, LABEL)  # a second time is no error


def test_nothing_is_made_where_something_is(scratch: Path, precious: Path) -> None:
    (scratch / "link").symlink_to(precious)
    (scratch / "dangling").symlink_to(scratch / "nowhere")
    (scratch / "file").write_text("")
    for name in ("precious", "link", "dangling", "file"):
        with pytest.raises(Refused, match="there already"):
            make_directory(scratch / name, LABEL, server_owner())
    assert sorted(path.name for path in precious.iterdir()) == ["data"]
    assert not (scratch / "nowhere").exists()


def test_links_are_removed_and_never_followed(ours: Path, precious: Path) -> None:
    (ours / "to-directory").symlink_to(precious)
    (ours / "pgdata" / "to-file").symlink_to(precious / "data")
    remove_directory(ours, LABEL)
    assert not ours.exists()
    assert (precious / "data").read_text() == "irreplaceable"


def foreign_directory(ours: Path, precious: Path) -> None:
    ours.rename(ours.with_name("moved"))
    precious.rename(ours)


def foreign_file(ours: Path, precious: Path) -> None:
    ours.rename(ours.with_name("moved"))
    ours.write_text("a foreign file")


def link_to_foreign(ours: Path, precious: Path) -> None:
    ours.rename(ours.with_name("moved"))
    ours.symlink_to(precious)


def link_to_ours(ours: Path, precious: Path) -> None:
    ours.rename(ours.with_name("moved"))
    ours.symlink_to(ours.with_name("moved"))


def label_removed(ours: Path, precious: Path) -> None:
    (ours / LABEL_FILE).unlink()


def label_of_another_run(ours: Path, precious: Path) -> None:
    (ours / LABEL_FILE).write_text(LABEL + "0\n")


def label_cut_short_next_to_data(ours: Path, precious: Path) -> None:
    (ours / LABEL_FILE).write_text(LABEL)


def label_is_a_link(ours: Path, precious: Path) -> None:
    (ours / LABEL_FILE).rename(precious / "label")
    (ours / LABEL_FILE).symlink_to(precious / "label")


def label_is_a_pipe(ours: Path, precious: Path) -> None:
    (ours / LABEL_FILE).unlink()
    os.mkfifo(ours / LABEL_FILE)


@pytest.mark.parametrize(
    "replace",
    [
        foreign_directory,
        foreign_file,
        link_to_foreign,
        link_to_ours,
        label_removed,
        label_of_another_run,
        label_cut_short_next_to_data,
        label_is_a_link,
        label_is_a_pipe,
    ],
)
def test_what_is_not_ours_is_refused_and_untouched(scratch: Path, ours: Path, precious: Path, replace) -> None:
    replace(ours, precious)
    before = listing(scratch)
    with pytest.raises(Refused, match="not removed") as refusal:
        remove_directory(ours, LABEL)
    assert refusal.value.where == str(ours)
    assert listing(scratch) == before


def listing(folder: Path) -> list[tuple[str, int, bytes | None]]:
    """Everything below a folder: path, inode, content."""
    return sorted(
        (str(path), path.lstat().st_ino, path.read_bytes() if path.is_file() else None) for path in folder.rglob("*")
    )


@pytest.mark.parametrize("label_bytes", [None, b"", b"plin", b"plinth-test1"])
def test_a_directory_killed_while_it_was_made_is_ours(scratch: Path, label_bytes: bytes | None) -> None:
    path = scratch / "begun"
    path.mkdir()
    if label_bytes is not None:
        (path / LABEL_FILE).write_bytes(label_bytes)
    remove_directory(path, LABEL)
    assert not path.exists()


def test_a_foreign_label_alone_in_a_directory_is_refused(scratch: Path) -> None:
    path = scratch / "begun"
    path.mkdir()
    (path / LABEL_FILE).write_bytes(b"plinth-other")
    with pytest.raises(Refused):
        remove_directory(path, LABEL)


@pytest.mark.parametrize("place", ["", "pgdata", "pgdata/base"])
@pytest.mark.parametrize("bind", [False, True])
def test_no_mount_is_crossed(ours: Path, precious: Path, place: str, bind: bool) -> None:
    point = ours / place
    before = listing(ours)
    if bind:  # same device number as its source
        subprocess.run(["mount", "--bind", precious, point], check=True)
    else:
        mount_tmpfs(point, "foreign")
        (point / "data").write_text("irreplaceable")
    try:
        with pytest.raises(Refused, match="something is mounted there"):
            remove_directory(ours, LABEL)
        assert (point / "data").read_text() == "irreplaceable"
    finally:
        subprocess.run(["umount", point], check=True)
    assert listing(ours) == before
    assert (precious / "data").exists()


def test_our_mount_is_unmounted_once_and_then_left_alone(mounted: Path) -> None:
    unmount(mounted)
    assert not os.path.ismount(mounted)
    unmount(mounted)


def test_our_mount_is_found_where_the_way_to_it_leads_through_a_link(scratch: Path) -> None:
    """As a state directory that was moved since, or whose default path is a link: the kernel names the mount without it."""
    point = scratch / "moved" / "work" / "mounted"
    point.mkdir(parents=True)
    (scratch / "state").symlink_to(scratch / "moved")
    mount_tmpfs(point, LABEL)
    unmount(scratch / "state" / "work" / "mounted", LABEL + "0")
    assert os.path.ismount(point), "another's label"
    unmount(scratch / "state" / "work" / "mounted")
    assert not os.path.ismount(point)


def test_a_mount_without_our_label_is_left_alone(mounted: Path) -> None:
    unmount(mounted, "plinth-test10")
    assert os.path.ismount(mounted)


def test_a_mount_stacked_on_ours_is_refused_and_both_stay(mounted: Path) -> None:
    mount_tmpfs(mounted, "foreign")
    with pytest.raises(Refused, match=r"foreign [(]tmpfs[)] is mounted over it"):
        unmount(mounted)
    subprocess.run(["umount", mounted], check=True)
    assert os.path.ismount(mounted)
    unmount(mounted)


def test_our_mount_on_top_of_anothers_goes_alone(mounted: Path) -> None:
    unmount(mounted)
    mount_tmpfs(mounted, "foreign")
    mount_tmpfs(mounted, LABEL)
    unmount(mounted)
    assert os.path.ismount(mounted)


def test_a_mount_hidden_below_a_mount_on_its_parent_is_refused(scratch: Path, mounted: Path) -> None:
    mount_tmpfs(scratch, "foreign")
    try:
        with pytest.raises(Refused, match="something hides it"):
            unmount(mounted)
        mounted.mkdir()
        with pytest.raises(Refused, match="is mounted over it"):
            unmount(mounted)
    finally:
        subprocess.run(["umount", scratch], check=True)
    assert os.path.ismount(mounted)


def test_a_copy_in_another_namespace_goes_too_and_no_program_is_taken_from_there(scratch: Path, mounted: Path) -> None:
    """The maker of a namespace chooses what `umount` is in it: it would be run by root."""
    umount, trap, sprung = shutil.which("umount"), scratch / "trap", scratch / "sprung"
    assert umount is not None
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    set_up = f"mount --bind {trap} {umount} && echo ready && read end"
    other = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", set_up],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        seen_there = Path(f"/proc/{other.pid}/mountinfo")
        assert LABEL in seen_there.read_text()
        unmount(mounted)
        assert LABEL not in seen_there.read_text()
        assert not sprung.exists()
        other.communicate(b"\n")


def test_a_mount_in_use_says_so(mounted: Path) -> None:
    with (mounted / "open").open("w"), pytest.raises(CommandError) as error:
        unmount(mounted)
    assert "busy" in " ".join(error.value.details)
    assert error.value.where == f"umount {mounted}"
    assert os.path.ismount(mounted)


def test_the_plan_shows_what_undo_will_run(mounted: Path) -> None:
    step = Step(id="s", title="mount", undo=Undo(kind="unmount", path=str(mounted), label=LABEL))
    undoing = undo_step(step)
    assert undoing is not None
    commands = []
    undo(present(step.undo), Runner(commands.append), UNDO_HANDLERS)
    assert [command.argv for command in commands] == [undoing.argv]
    assert undo_step(Step(id="s", title="nothing to undo")) is None


def test_a_directory_that_cannot_be_emptied_keeps_its_label(ours: Path) -> None:
    subprocess.run(["chattr", "+i", ours / "pgdata" / "PG_VERSION"], check=True)
    try:
        with pytest.raises(PlinthError, match="cannot remove the directory"):
            remove_directory(ours, LABEL)
        assert found_label(ours) == LABEL
    finally:
        subprocess.run(["chattr", "-i", ours / "pgdata" / "PG_VERSION"], check=True)
    remove_directory(ours, LABEL)
    assert not ours.exists()


KINDS_OF_JOURNAL_3 = {
    "remove_directory",
    "unmount",
    "stop_server",
    "drop_schema",
    "detach_loop",
    "unmount_filesystem",
    "stop_process",
    "reset_zram",
    "restore_queue",
    "stop_zfs_fuse",
    "destroy_pool",
    "stop_array",
    "remove_volume_group",
    "restore_device",
    "restore_drive_cache",
}
"""What a journal may hold that was written before the handlers were registered by kind of storage."""


def test_every_kind_of_step_has_its_handler() -> None:
    assert set(UNDO_HANDLERS) >= KINDS_OF_JOURNAL_3
    for kind in UNDO_HANDLERS:
        undoing = undo_step(Step(id="s", title="t", undo=Undo(kind=kind, path="/of/this-name", label=LABEL)))
        assert undoing is not None
        assert "this-name" in undoing.title or LABEL in undoing.title


def test_no_two_declare_a_kind_of_step_differently() -> None:
    declared = [SYSTEM_UNDO, SERVER_UNDO, *(kind.undo_handlers for kind in KINDS.values())]
    for handlers in declared:
        for name, handler in handlers.items():
            assert UNDO_HANDLERS[name] is handler, name


def test_a_step_of_an_unknown_kind_is_kept_and_says_what_to_do(state_dir: Path) -> None:
    journal = Journal.create("later", UNDO_HANDLERS)
    journal.record(Step(id="s", title="of a later Plinth", undo=Undo(kind="melt", path="/p", label=LABEL)))
    (kept,) = journal.undo_all(Runner())
    assert isinstance(kept.error, Refused)
    assert "'melt'" in kept.error.message
    assert "newer" in (kept.error.hint or "")
    journal.close()
    assert journal.path.exists()
