"""`plinth storage`: listed, made standalone and left in place, described, taken down; and what a dry run promises."""

import json
import shlex
from pathlib import Path

import pytest

from plinth.experiment import read_experiment
from plinth.system.mounts import mount_of, mounts_within
from plinth.system.runner import CommandRecord, Runner
from plinth.tasks.standalone import kept_run, prepare_standalone, run_id_of, storage_name, teardown_standalone

STORAGES = """
[storage.base]
kind = "tmpfs"
size = "600MiB"
[storage.fast]
kind = "loop"
size = "320MiB"
on = "base"
filesystem = "xfs"
[storage.fast.queue]
read_ahead_kb = 64
[storage.part]
kind = "file"
size = "128MiB"
count = 2
[storage.pair]
kind = "btrfs"
members = ["part"]
data_profile = "raid0"
"""
# What only looks, and is not shown by a dry run.
LOOKS = ("test", "wipefs --no-act", "blkid", "dumpe2fs", "xfs_info", "btrfs", "losetup --list", "smartctl")


@pytest.fixture
def standalone(project):
    project.write(project.experiment.replace("[dataset]", STORAGES + "\n[dataset]"))
    return project


def test_a_standalone_storage_stays_until_it_is_taken_down(standalone, nothing_left):
    made = standalone.plinth("storage", "prepare", "x.toml", "fast")
    assert made.returncode == 0, made.stderr
    point = standalone.state / "work/plinth-standalone-fast-fast/mount"
    assert f"{point} is there; user postgres may write to it." in made.stdout
    assert "Undo it with: plinth storage teardown fast" in made.stdout
    assert "filesystem xfs" in made.stdout  # the layer below it
    assert mount_of(point).filesystem == "xfs"
    assert mount_of(standalone.state / "work/plinth-standalone-fast-base").filesystem == "tmpfs"

    cleaned = standalone.plinth("clean")
    assert cleaned.returncode == 0
    assert cleaned.stdout.startswith("left in place on purpose: storage fast of x.toml")
    assert "`plinth storage teardown fast` undoes it" in cleaned.stdout
    assert mount_of(point).filesystem == "xfs"

    again = standalone.plinth("storage", "prepare", "x.toml", "fast")
    assert again.returncode == 4, again.stderr
    assert "`plinth storage teardown standalone-fast`" in again.stderr
    listed = standalone.plinth("storage", "teardown")
    assert listed.stdout.startswith("standalone-fast: storage fast of x.toml")
    wrong = standalone.plinth("storage", "teardown", "slow")
    assert wrong.returncode == 2
    assert "there is fast" in wrong.stderr

    taken = standalone.plinth("storage", "teardown", "fast")
    assert taken.returncode == 0, taken.stderr
    assert f"unmount the file system of {point}" in taken.stdout
    nothing_left()
    assert standalone.plinth("clean").stdout.startswith("nothing to clean")
    assert standalone.plinth("storage", "teardown").stdout == "There is none.\n"


def test_members_are_drawn_next_to_each_other(standalone, nothing_left):
    made = standalone.plinth("storage", "prepare", "x.toml", "pair")
    assert made.returncode == 0, made.stderr
    # What they are stored on, which is maybe a loop device itself, is further to the right.
    places = [line.index("loop loop") for line in made.stdout.splitlines() if "loop loop" in line]
    assert places.count(min(places)) == 2, made.stdout
    assert standalone.plinth("storage", "teardown", "pair").returncode == 0
    nothing_left()


@pytest.mark.parametrize("name", ["disk", "fast", "pair"])
def test_a_dry_run_prints_the_commands_that_a_real_run_runs(standalone, monkeypatch, name):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(standalone.state))
    dry = standalone.plinth("storage", "prepare", "x.toml", name, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert list(standalone.state.glob("work/*")) == []
    making, undoing = (commands(part) for part in dry.stdout.split("# To undo it\n"))

    ran: list[CommandRecord] = []
    prepare_standalone(
        read_experiment(standalone.folder / "x.toml"), name, (), Runner(ran.append), lambda step: None, pytest.fail
    )
    assert changes(ran) == making
    ran.clear()
    dry_teardown = standalone.plinth("storage", "teardown", name, "--dry-run")
    assert commands(dry_teardown.stdout) == undoing
    teardown_standalone(kept_run(name), Runner(ran.append))
    # Which loop device it is that is let go of is known only then; the dry run says it in words.
    assert [argv for argv in changes(ran) if argv[:2] != ("losetup", "-d")] == undoing
    assert sum(argv[:2] == ("losetup", "-d") for argv in changes(ran)) == dry.stdout.count(
        "# detach the loop device of"
    )
    assert mounts_within(standalone.folder) == []


def commands(text: str) -> list[tuple[str, ...]]:
    return [tuple(shlex.split(line)) for line in text.splitlines() if not line.startswith("#")]


def changes(ran: list[CommandRecord]) -> list[tuple[str, ...]]:
    return [record.argv for record in ran if not " ".join(record.argv).startswith(LOOKS)]


def test_what_cannot_be_made_is_undone_at_once(standalone, nothing_left):
    text = (standalone.folder / "x.toml").read_text()
    standalone.write(text.replace('filesystem = "xfs"', 'filesystem = "xfs"\nmkfs_options = ["-m", "crc=7"]'))
    failed = standalone.plinth("storage", "prepare", "x.toml", "fast")
    assert failed.returncode != 0
    assert "mkfs.xfs" in failed.stderr
    assert "mount it on" not in failed.stderr, "only steps that were begun are told"
    assert "Traceback" not in failed.stderr
    nothing_left()


def test_a_name_that_the_file_lacks_is_reported(standalone):
    failed = standalone.plinth("storage", "prepare", "x.toml", "fats")
    assert failed.returncode == 2
    assert "it has disk, memory, base, fast, part, pair" in failed.stderr
    assert "did you mean 'fast'?" in failed.stderr


def test_the_kinds_and_an_experiments_storages_are_listed(standalone):
    kinds = standalone.plinth("storage", "list").stdout
    for kind in ("directory", "tmpfs", "loop", "emulated", "file", "zram", "device", "btrfs", "zfs", "md", "lvm"):
        assert f"\n{kind} " in kinds
    assert "mkfs.xfs" in kinds
    storages = standalone.plinth("storage", "list", "x.toml").stdout
    assert "raw member of a btrfs" in storages
    assert str(standalone.state / "work/plinth-RUN-fast/mount") in storages.replace("\n", "")


def test_a_missing_program_is_named_with_its_package(standalone, monkeypatch):
    from plinth.observe.facts import host_facts
    from plinth.storage.availability import kinds

    monkeypatch.setattr("plinth.system.runner._environment", lambda owner: {"PATH": "/nowhere"})
    missing = {kind.name: kind.missing for kind in kinds(host_facts(), Runner())}
    assert missing["directory"] == missing["tmpfs"] == ()
    assert any("mdadm" in reason and "package mdadm" in reason for reason in missing["md"])
    assert any("btrfs-progs" in reason for reason in missing["btrfs"])


def test_a_path_is_shown_as_it_is_with_any_characters(standalone):
    odd = standalone.folder / "[bold]a[/x] :car:"
    odd.mkdir(parents=True)
    described = standalone.plinth("storage", "describe", odd)
    assert described.stdout.startswith(f"{odd}  ("), described.stderr
    planned = standalone.plinth("plan", "x.toml", "--set", f'storage.disk.path="{odd}"')
    assert f"make the directory {odd}/plinth-RUN-disk" in planned.stdout, planned.stderr
    assert f'differs from the file: storage.disk.path="{odd}"' in planned.stdout


def test_a_path_is_described(standalone):
    described = standalone.plinth("storage", "describe", standalone.folder, "--json")
    assert json.loads(described.stdout)["path"] == str(standalone.folder)


def test_its_run_is_always_the_same_so_that_paths_are_known_before():
    assert run_id_of("fast") == "standalone-fast"
    assert Path(run_id_of("fast")).name == "standalone-fast"


@pytest.mark.parametrize("name", ["fast", "standalone-fast", "standalone"])
def test_a_run_gives_back_the_name_of_its_storage(name):
    assert storage_name(run_id_of(name)) == name
