"""PostgreSQL on every kind of block storage: a short load on each, disks that fail under it, and nothing left."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from every_kind import KINDS, LEVELS, experiment
from leftovers import nothing_left as nothing_is_left
from plinth.model.disk import EioFault
from plinth.storage.devices.disk_control import LocalDiskControl
from plinth.storage.devices.disk_daemon import daemons
from waiting import wait_until


@pytest.fixture(autouse=True)
def _nothing(scratch: Path):
    with nothing_is_left(scratch):
        yield


def facts(project, name: str) -> dict:
    return json.loads((project.bundle / "env" / f"storage-{name}.json").read_text())


@pytest.mark.long
def test_postgresql_works_on_every_kind(project, nothing_left) -> None:
    # So long that the views, brought up to date once a second, tell of most of the measured phase.
    project.write(experiment(LEVELS, KINDS).replace('"500ms"', '"4s"'))
    done = project.run(timeout_s=240)
    assert done.returncode in (0, 3), done.stderr
    trials = project.trials()
    assert {trial["variant"] for trial in trials} == set(LEVELS)
    for trial in trials:
        assert trial["status"] == "complete", trial["failure"]
        assert trial["tps"] > 0
    assert all(facts(project, name)["volatile"] for name in LEVELS)
    stack = [node["kind"] for node in facts(project, "deep")["stack"]]
    assert stack == [
        *("mount", "filesystem", "loop"),
        *("mount", "filesystem", "loop"),
        *("mount", "filesystem", "emulated disk"),
        *("mount", "filesystem", "memory"),
    ]
    # What is written to a storage is written to its devices.
    written = {trial["variant"]: trial for trial in trials}
    assert written["deep"]["devices"], "the devices of the stack were observed"
    nothing_left()
    _check_endurance(project)


def _check_endurance(project) -> None:
    """Every commit's WAL has reached the device below, and the account of what was written says so."""
    done = project.plinth("endurance", project.bundle, "--tbw", "600TB", "--json")
    assert done.returncode == 0, done.stderr
    for variant in json.loads(done.stdout)["variants"]:
        (below,) = variant["storages"]
        flows = {flow["flow"]: flow["bytes_per_transaction"]["value"] for flow in variant["flows"]}
        assert flows["wal_written"] >= flows["wal"] >= flows["full_page_images"] > 0
        if variant["id"] in ("ext4", "xfs", "emulated", "deep"):  # what neither compresses nor stripes
            assert below["bytes_per_transaction"]["value"] > 0.9 * flows["wal_written"]
            assert below["amplification"]["value"] > 0.1
            assert all(device["life_years"]["value"] > 0 for device in variant["devices"])
    for_people = project.plinth("endurance", project.bundle, "--pe-cycles", "5000", "--capacity", "300GB")
    assert "5,000 P/E cycles x 300 GB = 1,500 TB" in for_people.stdout
    refused = project.plinth("endurance", project.bundle, "--pe-cycles", "5000")
    assert refused.returncode == 2
    assert "give tbw, or pe_cycles with capacity" in refused.stderr


_FLUSHES_OF_A_LOAD = 300
SHAKY = """
[storage.shaky]
kind = "emulated"
profile = "ideal"
size = "500MiB"
on = "memory"

[storage.sound]
kind = "loop"
size = "500MiB"
on = "memory"
"""


def _end_daemon(how: signal.Signals) -> Callable[[Path], object]:
    def do(folder: Path) -> None:
        (daemon,) = daemons(folder / "disk")
        os.kill(daemon.pid, how)

    return do


def _give_eio(folder: Path) -> None:
    """From now on no flush and no write succeeds."""
    control = LocalDiskControl(folder / "control")
    control.arm(EioFault(operation="flush", count=None))
    control.arm(EioFault(operation="write", count=None))


def _wait_for_load(disk: LocalDiskControl) -> None:
    """Until commits reach the disk, one after the other, as in a trial and never before."""
    before = disk.status().counters["flushes"]
    wait_until(
        lambda: disk.status().counters["flushes"] >= before + _FLUSHES_OF_A_LOAD, "a trial has begun", timeout_s=60
    )


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        pytest.param(
            _end_daemon(signal.SIGKILL),
            "the daemon of the emulated disk of storage shaky has died",
            id="dies",
            marks=pytest.mark.long,
        ),
        pytest.param(_end_daemon(signal.SIGSTOP), "does not answer", id="hangs", marks=pytest.mark.long),
        pytest.param(_give_eio, "storage shaky", id="gives EIO"),
    ],
)
def test_a_disk_that_fails_in_a_trial_fails_that_and_the_others_continue(
    project, nothing_left, harm: Callable[[Path], object], reason: str
) -> None:
    project.write(experiment(["shaky", "sound"], SHAKY).replace('"500ms"', '"4s"'))
    running = project.start("--set", "measure.order=sequential")
    running.wait_for("load tpcb into 2-sound", timeout_s=120)
    (folder,) = project.state.glob("work/*-shaky")
    _wait_for_load(LocalDiskControl(folder / "control"))
    harm(folder)
    code, said = running.end(timeout_s=240)
    assert code == 1, said
    trials = {trial["variant"]: trial for trial in project.trials()}
    assert trials.keys() == {"shaky", "sound"}, said
    assert trials["sound"]["status"] == "complete", said
    assert trials["shaky"]["status"] == "failed", said
    assert reason in trials["shaky"]["failure"]
    nothing_left()
