"""The workload and the data of a server of others: its log is replayed, its dump restored."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from native_server import LOGGING, Server
from originals import files_of
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import all_installations

STORAGES = """\
[storage.memory]
kind = "tmpfs"
size = "2GiB"
[storage.disk]
kind = "directory"
"""
REPLAY = """\
spec = 1
name = "replayed"
question = "Is the disk slower than memory?"

STORAGES
[server]
storage = "memory"

[dataset]
DATASET
[workload]
replay = "brought/recorded-*.json"
speed = 4
sessions = { application_name = "till" }
classes = 20

[matrix]
storage = ["memory", "disk"]

[measure]
warmup = "0s"
repeats = REPEATS
aa = false
restore = "auto"
probe = "0s"
"""
VARIANTS = ("memory", "disk")
WORKLOADS = {
    "tpcb": ('kind = "tpcb"\nscale = 1', ["-c", "3", "-R", "100"], "3"),
    "tpcc": ('kind = "tpcc"\nwarehouses = 1', ["-b", "tpcc", "-c", "2", "-R", "30"], "1"),
}


@pytest.fixture
def production() -> Iterator[Server]:
    """A server that logs what it is sent."""
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner, LOGGING)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def bench(server: Server, application: str, *words: str) -> None:
    environment = {
        **os.environ,
        "PGHOST": str(server.folder),
        "PGPORT": str(server.port),
        "PGAPPNAME": application,
    }
    argv = [sys.executable, "-m", "plinth", "bench", "-U", "postgres", *words, "postgres"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("workload", ["tpcb", pytest.param("tpcc", marks=pytest.mark.long)])
def test_a_recorded_load_is_replayed_on_each_storage(project, nothing_left, production: Server, workload: str) -> None:
    """The initial data are those of the dataset, which is deterministic."""
    dataset, words, repeats = WORKLOADS[workload]
    kind = [word for word in words[:2] if word in ("-b", "tpcc")]
    bench(production, "initial", "-i", "-s", "1", *kind)
    bench(production, "till", "-n", "-T", "2", "--random-seed=7", *words)
    production.stop()
    log = production.data / "log" / "postgresql.json"
    brought = Path(project.folder) / "brought"
    brought.mkdir()
    (brought / "recorded-1.json").write_bytes(log.read_bytes())
    before = files_of(brought)
    project.write(REPLAY.replace("STORAGES", STORAGES).replace("DATASET", dataset).replace("REPEATS", repeats))
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    trials = project.trials()
    assert [trial["status"] for trial in trials] == ["complete"] * len(trials), trials
    for trial in trials:
        replay, totals = trial["replay"], trial["totals"]
        assert replay["not_reached"] == 0
        assert totals["done"] == replay["statements"] == totals["scheduled"], trial["errors"]
        assert trial["restored"] is not None
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    for variant in report["analysis"]["variants"]:
        statements = trials[0]["replay"]["statements"]
        assert sum(one["done"] for one in variant["replayed"]) == len(trials) // len(VARIANTS) * statements
        assert all(one["recorded_mean_ns"] is not None for one in variant["replayed"])
        assert all((one["to_baseline"] is None) == variant["is_baseline"] for one in variant["replayed"])
    assert "Replayed statements" in project.whole_report()
    assert files_of(brought) == before
    nothing_left()
