"""Snapshots of a running server: gone back to when the load has ended, checked by the ledger, and nothing left of them."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import wait_until

BTRFS = '[storage.looped]\nkind = "loop"\nfilesystem = "btrfs"\nsize = "600MiB"\n'
ZFS = '[storage.part]\nkind = "file"\nsize = "600MiB"\n[storage.looped]\nkind = "zfs"\ndata = ["part"]\n'
EXT4 = '[storage.looped]\nkind = "loop"\nsize = "600MiB"\n'
EXPERIMENT = """\
spec = 1
name = "flashback"
question = "Is every commit of before there?"

STORAGE
[server]
version = 15
storage = "looped"
settings.shared_buffers = "32MB"

[dataset]
kind = "none"

[workload]
builtin = "ledger"
clients = 2

[measure]
warmup = "100ms"
duration = "2s"
repeats = 1
aa = false
probe = "0s"
restore = "auto"

[[measure.action]]
at = "500ms"
do = "snapshot"
[[measure.action]]
at = "1200ms"
do = "snapshot"
"""


def write(project, storage: str, *changes: tuple[str, str]) -> None:
    text = EXPERIMENT.replace("STORAGE", storage)
    for change in changes:
        assert change[0] in text
        text = text.replace(*change)
    project.write(text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("storage", "kind", "commands"),
    [
        (BTRFS, "btrfs", ("btrfs subvolume snapshot", ".replaced-2")),
        pytest.param(ZFS, "ZFS", ("zfs snapshot", "zfs rollback", "zfs destroy"), marks=pytest.mark.long),
    ],
)
def test_every_commit_of_before_is_there_and_none_of_after(project, nothing_left, storage, kind, commands):
    write(project, storage, ("repeats = 1", "repeats = 2"))
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "in each trial: snapshot at 500 ms" in planned.stdout
    assert all(command in planned.stdout for command in commands), planned.stdout
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    trials = project.trials()
    assert [trial["status"] for trial in trials] == ["complete"] * 2, trials
    for trial in trials:
        first, second = trial["flashbacks"]
        assert (first["snapshot"], second["snapshot"]) == ("snapshot at 500 ms", "snapshot at 1.2 s")
        assert first["kind"] == kind and first["damage"] == second["damage"] == []
        assert 0 < first["acknowledged"] < second["acknowledged"]
        assert first["undone"] > second["undone"] > 0
        assert first["acknowledged"] + first["undone"] == second["acknowledged"] + second["undone"]
        assert min(first[name] for name in ("snapshot_s", "restore_s", "recovery_s")) > 0
        assert [check["ok"] for check in trial["checks"] if "going back" in check["name"]] == [True] * 4
    lines = next(project.bundle.glob("trials/0001-*/events.jsonl")).read_text().splitlines()
    done_events = [event["text"] for event in map(json.loads, lines) if event["kind"] == "action_end"]
    assert len(done_events) == 2 and all(text.startswith("snapshot: took ") for text in done_events)
    assert "none may be lost" in done.stdout.replace("\n", " ") and "no other damage" in done.stdout
    assert "## Flashback" in project.plinth("report", project.bundle, "--markdown").stdout
    nothing_left()


@pytest.mark.long
def test_a_server_that_dies_after_its_snapshot_is_brought_back_to_it(project, nothing_left):
    kill = '[[measure.action]]\nat = "1500ms"\ndo = "kill"\n[[measure.action]]\nat = "1600ms"\ndo = "start"\n'
    write(project, BTRFS)
    project.write((project.folder / "x.toml").read_text() + kill)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert trial["outage"]["lost"] == 0
    assert [one["damage"] for one in trial["flashbacks"]] == [[], []]
    nothing_left()


@pytest.mark.long
def test_data_that_the_experiment_spoils_before_the_snapshot_are_found(project, nothing_left):
    """The load's own check still finds them, so that they go only in the snapshot: a row comes back afterwards."""
    hidden = "CREATE TABLE kept AS SELECT * FROM plinth_ledger_commits WHERE number = 1; DELETE FROM plinth_ledger_commits WHERE number = 1"
    shown = "INSERT INTO plinth_ledger_commits (client, number) SELECT client, number FROM kept"
    actions = "".join(
        f'[[measure.action]]\nat = "{at}"\ndo = "sql"\nsql = "{sql}"\n'
        for at, sql in (("200ms", hidden), ("1s", shown))
    )
    write(project, BTRFS)
    project.write((project.folder / "x.toml").read_text() + actions)
    done = project.run()
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = project.trials()
    assert "acknowledged commits that are missing after going back to the snapshot at 500 ms" in trial["failure"]
    assert "at 1.2 s" not in trial["failure"], "by then they were there again"
    first, second = trial["flashbacks"]
    assert [(one["kind"], one["count"]) for one in first["damage"]] == [("lost commit", 2)]
    assert second["damage"] == []
    nothing_left()


def killed_with_a_snapshot(project) -> None:
    """Kill a run whose first snapshot is there, and whose second has been begun."""
    running = project.start()
    running.wait_for("copy the files of 1-looped as loaded", timeout_s=120)
    journals = project.state / "journal"
    wait_until(lambda: any('.snapshot-2"' in one.read_text() for one in journals.glob("*.jsonl")), timeout_s=60)
    running.signal(signal.SIGKILL)
    running.end()


@pytest.fixture
def on_btrfs(project) -> Iterator[Path]:
    """A btrfs of the test's own, with a folder for storages."""
    image, mount = project.folder / "image", project.folder / "btrfs"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(600 * 2**20)
    for command in (("mkfs.btrfs", "-q", image), ("mount", "-o", "loop", image, mount)):
        subprocess.run(list(map(str, command)), check=True)
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_clean_removes_the_snapshots_of_a_run_that_was_killed(project, on_btrfs):
    write(project, f'[storage.looped]\nkind = "directory"\npath = "{on_btrfs}"\n')
    killed_with_a_snapshot(project)
    listed = ["btrfs", "subvolume", "list", str(on_btrfs)]
    assert ".snapshot-1" in subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert subprocess.run(listed, check=True, capture_output=True, text=True).stdout == ""
    assert not list(on_btrfs.iterdir()) and not list(project.state.glob("journal/*.jsonl"))


@pytest.mark.long
@pytest.mark.parametrize("storage", [pytest.param(BTRFS, id="btrfs"), pytest.param(ZFS, id="zfs")])
def test_a_resumed_run_begins_without_the_snapshots_of_the_trial_that_was_killed(project, nothing_left, storage):
    write(project, storage)
    killed_with_a_snapshot(project)
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert "resume with cluster" in resumed.stderr
    (trial,) = project.trials()
    assert [one["damage"] for one in trial["flashbacks"]] == [[], []]
    nothing_left()


WAL_APART = ('storage = "looped"\n', 'storage = "looped"\nwal_storage = "other"\n')
OTHER = '[storage.other]\nkind = "directory"\n'
STANDBY = ("[dataset]", '[server.standby.a]\nstorage = "other"\n[dataset]')


@pytest.mark.long
@pytest.mark.parametrize(
    ("storage", "change", "place", "said"),
    [
        (EXT4, None, "storage.looped", 'kind = "loop" with filesystem = "btrfs"'),
        (EXT4, None, "storage.looped", "storage looped (kind loop) has no snapshots: those of btrfs and ZFS are used"),
        (BTRFS + OTHER, WAL_APART, "measure.action", "in 2 places (looped, other)"),
        (BTRFS + OTHER, STANDBY, "measure.action", "snapshots are taken of servers without standbys only"),
        (BTRFS, ('restore = "auto"\n', ""), "measure.restore", 'add restore = "auto"'),
        (BTRFS, ('restore = "auto"', 'restore = "copy"'), "measure.restore", 'take restore = "auto" or "snapshot"'),
        (
            BTRFS,
            (
                'kind = "none"\n\n[workload]\nbuiltin = "ledger"',
                'kind = "tpcb"\nscale = 1\n\n[workload]\nbuiltin = "tpcb-like"',
            ),
            "workload",
            "a commit ledger is needed",
        ),
        (
            ZFS,
            ("[measure]", '[matrix]\n"server.data_checksums" = [true, false]\n[measure]'),
            "storage.looped",
            "2 clusters are stored on looped",
        ),
    ],
)
def test_snapshots_that_cannot_be_are_refused_in_the_plan(project, storage, change, place, said):
    write(project, storage, *([change] if change else []))
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert place in done.stderr and said in done.stderr, done.stderr
