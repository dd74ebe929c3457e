"""A storage that cannot be made, or that breaks in mid-run: the rest of the run continues, and all of it is reported."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from filling import leave_free
from plinth.storage.devices.disk_daemon import daemons
from plinth.storage.devices.zfs import ZfsFuse
from waiting import runs, wait_until

MEASURE = """\
[measure]
warmup = "200ms"
duration = "{duration}"
repeats = {repeats}
probe = "0s"
aa = false
order = "sequential"
"""


def experiment(project, storages, levels, *, duration="1s", repeats=2):
    text = (project.folder / "x.toml").read_text().partition("[measure]")[0]
    text = text.replace("[dataset]", f"{storages}\n[dataset]").replace(
        'storage = ["disk", "memory"]', f"storage = {levels}"
    )
    project.write(text + MEASURE.format(duration=duration, repeats=repeats))


def manifest(project):
    return json.loads((project.bundle / "manifest.json").read_text())


def by_variant(project):
    found = {}
    for trial in project.trials():
        found.setdefault(trial["variant"], []).append(trial)
    return found


ODD = """\
[storage.odd]
kind = "loop"
size = "400MiB"
mkfs_options = ["-O", "no_such_feature"]
"""


@pytest.mark.long
def test_a_storage_that_cannot_be_made_fails_its_trials_only(project, nothing_left):
    experiment(project, ODD, '["odd", "disk"]')
    done = project.run()
    assert done.returncode == 5, done.stderr
    assert "storage odd failed" in done.stderr
    assert "no_such_feature" in done.stderr.partition("\nerror: ")[2], "the error is the run's last word"
    trials = by_variant(project)
    assert [t["status"] for t in trials["disk"]] == ["complete"] * 2
    assert [t["status"] for t in trials["odd"]] == ["failed"] * 2
    assert all(t["failure"].startswith("not run: ") and "no_such_feature" in t["failure"] for t in trials["odd"]), (
        trials
    )
    assert manifest(project)["status"] == "complete"
    assert [failure["what"] for failure in manifest(project)["failures"]] == ["storage odd"]
    assert "storage odd failed" in project.plinth("report", project.bundle, "--markdown").stdout
    nothing_left()


def test_when_nothing_else_is_left_the_run_ends_at_once(project, nothing_left):
    experiment(project, ODD, '["odd"]')
    done = project.run()
    assert done.returncode == 5, done.stderr
    assert "no_such_feature" in done.stderr
    assert "initialise cluster" not in done.stderr
    assert done.stdout == "" and not project.bundle.exists(), "nothing was measured"
    nothing_left()


def test_what_is_stored_on_a_lost_storage_is_lost_with_it(project, nothing_left):
    storages = ODD + '[storage.inner]\nkind = "loop"\nsize = "300MiB"\non = "odd"\n[server]\nwal_storage = "disk"\n'
    experiment(project, storages.replace('"400MiB"', '"600MiB"'), '["disk", "inner"]', repeats=1)
    done = project.run()
    assert done.returncode == 5, done.stderr
    assert "make storage inner" not in done.stderr
    assert [t["status"] for t in project.trials()] == ["complete", "failed"]
    assert [failure["what"] for failure in manifest(project)["failures"]] == ["storage odd", "storage inner"]
    nothing_left()


def test_one_that_lacks_space_does_not_keep_the_others_from_running(project, nothing_left):
    storages = '[storage.huge]\nkind = "loop"\nsize = "900TB"\n'
    experiment(project, storages, '["huge", "disk"]', repeats=1)
    done = project.run()
    assert done.returncode == 5, done.stderr
    assert "space for 2-disk, storage huge" in done.stderr
    assert [t["status"] for t in project.trials()] == ["failed", "complete"]
    nothing_left()


@pytest.fixture
def small(project):
    """A file system of our own that can be filled."""
    folder = project.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1100m,mode=0755", "plinth-test", folder], check=True)
    yield folder
    (folder / "filler").unlink(missing_ok=True)
    subprocess.run(["umount", folder], check=True)


@pytest.mark.long
def test_a_device_that_gives_errors_in_mid_run(project, nothing_left, small):
    storages = f'[storage.shaky]\nkind = "loop"\nsize = "1GiB"\npath = "{small}"\n'
    experiment(project, storages, '["shaky", "disk"]', duration="3s", repeats=3)
    running = project.start("--set", "workload.rate=300")
    running.wait_for("trial 1 of")
    leave_free(small, 0)  # its device cannot write any more
    begun = time.monotonic()
    code, said = running.end()
    assert code == 1, said
    assert time.monotonic() - begun < 60
    assert "storage shaky failed" in said
    assert "storage shaky has failed" in said.partition("\nerror: ")[2]
    trials = by_variant(project)
    assert trials["shaky"][-1]["status"] == "failed"
    # "not run: ..." unless filling took so long that it is the last one in which the device failed.
    assert "storage shaky has failed: no space left in" in trials["shaky"][-1]["failure"]
    assert [t["status"] for t in trials["disk"]] == ["complete"] * 3
    nothing_left()
    assert [path.name for path in Path(small).iterdir()] == ["filler"]


@pytest.mark.long
def test_a_zfs_fuse_that_dies_in_mid_run(project, nothing_left):
    storages = '[storage.v]\nkind = "file"\nsize = "512MiB"\n[storage.tank]\nkind = "zfs"\ndata = ["v"]\n'
    experiment(project, storages, '["tank", "disk"]', duration="3s", repeats=2)
    running = project.start()
    running.wait_for("trial 1 of")
    (folder,) = (project.state / "work").glob("*-tank")
    (pid,) = ZfsFuse(folder).pids()
    os.kill(pid, signal.SIGKILL)
    code, said = running.end()
    assert code == 1, said
    assert "zfs-fuse of storage tank has died" in said
    trials = by_variant(project)
    assert trials["tank"][-1]["status"] == "failed"
    assert [t["status"] for t in trials["disk"]] == ["complete"] * 2
    nothing_left()


HANGING = """\
[storage.slow]
kind = "emulated"
profile = "ideal"
size = "400MiB"
physics = { write_latency = "300ms", flush_latency = "1s", channels = 1, cache_size = "0B" }
"""


@pytest.mark.long
def test_a_disk_that_hangs_while_it_is_made(project, nothing_left):
    experiment(project, HANGING, '["slow", "disk"]', repeats=1)
    running = project.start()
    running.wait_for("make storage slow")
    wait_until(lambda: list(project.state.glob("work/*-slow")))
    (folder,) = project.state.glob("work/*-slow")
    wait_until(runs("mkfs.ext4", str(folder)))
    (daemon,) = daemons(folder / "disk")
    os.kill(daemon.pid, signal.SIGSTOP)
    code, said = running.end()
    assert code == 5, said
    told = said.partition("\nerror: ")[2]
    assert "storage slow: make the file system ext4 on" in told
    assert f"(pid {daemon.pid}) did not answer within 5 s and was ended" in told
    assert [t["status"] for t in project.trials()] == ["failed", "complete"]
    nothing_left()
