"""kill -9 in the middle of a load, of Plinth alone or of its server as well: `plinth resume` loads only what is missing."""

import json
import os
import signal
import time
from pathlib import Path

import psycopg
import pytest

from typed import present

EXPERIMENT = """\
spec = 1
name = "load"
question = "Is it resumed?"

[storage.{storage}

[dataset]
kind = "numbers"
rows = 3_000_000
streams = 2

[workload]
builtin = "numbers-update"
clients = 2

[measure]
warmup = "100ms"
duration = "500ms"
repeats = 1
aa = false
probe = "10ms"
"""
STORAGES = {
    "directory": 'disk]\nkind = "directory"',
    "tmpfs": 'memory]\nkind = "tmpfs"\nsize = "1GiB"',
    "emulated": 'slow]\nkind = "emulated"\nprofile = "sata-ssd"\nsize = "1GiB"\n',
    "loop": 'looped]\nkind = "loop"\nfilesystem = "xfs"\nsize = "1GiB"\n',
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("storage", "server_too"),
    [
        ("directory", False),
        *(pytest.param(*one, marks=pytest.mark.long) for one in (("tmpfs", True), ("emulated", False), ("loop", True))),
    ],
)
def test_a_load_is_resumed_where_it_was_killed(project, nothing_left, storage, server_too):
    project.write(EXPERIMENT.format(storage=STORAGES[storage]))
    running = project.start()
    running.wait_for("load numbers into", timeout_s=120)
    postmaster = piece_loaded(project)
    if server_too:
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            os.kill(pid, signal.SIGSTOP)
        running.signal(signal.SIGKILL)
        for pid in (postmaster, *map(int, children)):
            os.kill(pid, signal.SIGKILL)
    running.signal(signal.SIGKILL)
    running.end()

    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert "resume with storage" in resumed.stderr and "resume with cluster" in resumed.stderr
    (path,) = (project.bundle / "env").glob("dataset-*.json")
    loaded = json.loads(path.read_text())
    assert [gap["what"] for gap in loaded["gaps"]] == ["time to load"]
    (table,) = loaded["tables"]
    assert table["name"] == "numbers" and table["rows"] == pytest.approx(3_000_000, rel=0.01)
    for trial in project.trials():
        assert trial["status"] == "complete" and all(check["ok"] for check in trial["checks"])
    nothing_left()


def piece_loaded(project):
    """Wait until a piece is in the ledger, while others are not; returns the postmaster's pid."""
    (path,) = project.state.glob("work/**/postmaster.pid")
    pid, _, _, port, sockets, *_ = path.read_text().splitlines()
    with psycopg.connect(host=sockets, port=port, user="postgres", dbname="postgres", autocommit=True) as control:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if control.execute("SELECT to_regclass('plinth_load')").fetchone() == (None,):
                continue
            row = control.execute("SELECT count(*) FROM plinth_load WHERE row_count IS NOT NULL").fetchone()
            if present(row)[0] > 0:
                return int(pid)
    raise AssertionError("no piece was loaded")


@pytest.mark.long
def test_what_does_not_stand_any_more_is_made_again(project, nothing_left):
    project.write(EXPERIMENT.format(storage=STORAGES["directory"]))
    running = project.start()
    running.wait_for("load numbers into")
    running.signal(signal.SIGKILL)
    running.end()
    (root,) = project.state.glob("work/*")
    (root / ".plinth-label").write_text("another user's\n")
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode == 4, resumed.stderr  # not ours any more, so not undone either
    (root / ".plinth-label").write_text(f"{root.name.rpartition('-')[0]}\n")
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    nothing_left()
