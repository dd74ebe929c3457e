"""`plinth run` with loader = "pages": interrupted while it writes, resumed, and what the report says about it."""

import json
import signal
import time

import pytest

EXPERIMENT = """\
spec = 1
name = "pages"
question = "Are pages what COPY leaves?"

[storage.disk]
kind = "directory"
[storage.memory]
kind = "tmpfs"
size = "1GiB"

[server]
storage = "disk"
tablespaces.keys = "memory"

[dataset]
kind = "tpcb"
scale = 5
loader = "pages"
index_tablespace = "keys"

[workload]
builtin = "tpcb-like"
clients = 2

[measure]
warmup = "100ms"
duration = "500ms"
repeats = 1
aa = false
probe = "10ms"
"""


def while_it_writes(project, number):
    """Signal a run that has begun to write its first file."""
    project.write(EXPERIMENT)
    running = project.start()
    running.wait_for("load tpcb into")
    deadline = time.monotonic() + 60
    while not any(project.state.glob("work/*/*/base/*/*.plinth")):
        assert time.monotonic() < deadline and running.process.poll() is None
    assert project.postmasters() == []
    running.signal(number)
    return running.end()


@pytest.mark.long
def test_ctrl_c_while_pages_are_written_undoes_everything(project, nothing_left):
    code, said = while_it_writes(project, signal.SIGINT)
    assert code == 130, said
    assert "Traceback" not in said
    assert project.status() == "interrupted"
    nothing_left()


@pytest.mark.long
def test_a_run_that_is_killed_while_pages_are_written_is_resumed_and_reports_the_load(project, nothing_left):
    while_it_writes(project, signal.SIGKILL)
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert "resume with cluster" in resumed.stderr
    (path,) = (project.bundle / "env").glob("dataset-*.json")
    loaded = json.loads(path.read_text())
    assert "write pages" in [task["name"] for task in loaded["tasks"]]
    accounts = loaded["tables"][0]
    assert accounts["name"] == "pgbench_accounts" and accounts["rows"] == pytest.approx(500_000, rel=0.01)
    assert [(key["levels"], key["lookup_buffers"]) for key in accounts["indexes"]] == [(2, 4)]
    (trial,) = project.trials()
    assert trial["status"] == "complete" and len(trial["checks"]) > 1
    assert all(check["ok"] for check in trial["checks"])
    report = project.plinth("report", project.bundle, "--json")
    assert report.returncode == 0, report.stderr
    assert "write pages" in report.stdout
    nothing_left()
