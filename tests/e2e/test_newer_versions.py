"""PostgreSQL 19 with io_uring, of Debian's packages in a prefix of its own: what only it has is measured."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth import open_bundle
from public_folder import PUBLIC

SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres_from_debian.py"
DELAY_S = 0.3
EXPERIMENT = f"""\
spec = 1
name = "newer"
question = "How long does a reader wait?"
[storage.disk]
kind = "directory"
[server]
version = 19
bindir = "BINDIR"
storage = "disk"
settings.io_method = "io_uring"
[server.standby.near]
storage = "disk"
[server.standby.late]
storage = "disk"
settings.recovery_min_apply_delay = "{round(DELAY_S * 1000)}ms"
[server.standby.later]
storage = "disk"
upstream = "near"
settings.recovery_min_apply_delay = "3s"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
rate = 200
[measure]
warmup = "200ms"
duration = "6s"
repeats = 1
aa = false
"""


@pytest.fixture(scope="module")
def bindir() -> Iterator[str]:
    """The programs of PostgreSQL 19, unpacked where the user of servers can run them."""
    with tempfile.TemporaryDirectory(prefix="plinth-test-", dir=PUBLIC) as folder:
        Path(folder).chmod(0o755)
        argv = [sys.executable, SCRIPT, "19", Path(folder) / "19", "--suite", "experimental", "--suite", "sid"]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        yield done.stdout.splitlines()[-1]


@pytest.mark.long
def test_a_reader_on_a_standby_waits_for_what_was_committed(project, nothing_left, bindir):
    project.write(EXPERIMENT.replace("BINDIR", bindir))
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert [gap for gap in trial["gaps"] if "read_your_writes" in gap["what"]] == []
    columns = open_bundle(project.bundle).samples("read_your_writes").columns
    waits_s: dict[str, list[float]] = {}
    timed_out: dict[str, list[float]] = {}
    for name, metric, value in zip(columns["object"], columns["metric"], columns["value"], strict=True):
        (waits_s if metric == "wait_s" else timed_out).setdefault(name, []).append(value)
    assert min(len(waits_s[name]) for name in ("near", "late")) >= 5
    # Before the load there is nothing to wait for.
    assert sum(timed_out["later"]) >= 4 and set(timed_out["near"]) == {0.0}
    said = " ".join(project.plinth("report", project.bundle, "--full").stdout.split())
    assert "streams from near, of which nothing is sampled, " in said and "did not end within 0.9 s" in said
    middle = len(waits_s["late"]) // 2
    assert sorted(waits_s["late"])[middle] == pytest.approx(DELAY_S, rel=0.2), "the control: it replays so much later"
    assert sorted(waits_s["near"])[middle] < DELAY_S / 2
    (server,) = project.bundle.glob("env/server-*disk.json")
    settings = {one["name"]: one["value"] for one in json.loads(server.read_text())["settings"]}
    assert settings["io_method"] == "io_uring"
    assert "wal_fpi_bytes" in open_bundle(project.bundle).samples("pg_wal").columns["metric"]
    nothing_left()
