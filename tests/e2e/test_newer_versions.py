"""PostgreSQL 19 with io_uring, of Debian's packages in a prefix of its own: what only it has is measured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plinth import open_bundle

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
def bindir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The programs of PostgreSQL 19, unpacked where the user of servers can run them."""
    prefix = tmp_path_factory.mktemp("public") / "19"
    for folder in (prefix.parent, prefix.parent.parent, prefix.parent.parent.parent):
        folder.chmod(0o755)
    argv = [sys.executable, SCRIPT, "19", prefix, "--suite", "experimental", "--suite", "sid"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


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
    for name, value in zip(columns["object"], columns["value"], strict=True):
        waits_s.setdefault(name, []).append(value)
    assert waits_s.keys() == {"near", "late"} and min(map(len, waits_s.values())) >= 5
    middle = len(waits_s["late"]) // 2
    assert sorted(waits_s["late"])[middle] == pytest.approx(DELAY_S, rel=0.2), "the control: it replays so much later"
    assert sorted(waits_s["near"])[middle] < DELAY_S / 2
    (server,) = project.bundle.glob("env/server-*disk.json")
    settings = {one["name"]: one["value"] for one in json.loads(server.read_text())["settings"]}
    assert settings["io_method"] == "io_uring"
    assert "wal_fpi_bytes" in open_bundle(project.bundle).samples("pg_wal").columns["metric"]
    nothing_left()
