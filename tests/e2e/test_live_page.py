"""A run watched in the live page of `plinth serve`, in a real browser."""

import json
import signal
import subprocess
from contextlib import contextmanager

import pytest

from browser import ROOT, node
from serving import Served
from waiting import wait_until

WATCH = ROOT / "web" / "e2e" / "live.mjs"
SHORT = ("--set", "measure.repeats=2", "--set", "measure.duration=4s", "--set", "workload.rate=300")
LONG = ("--set", "measure.repeats=50", "--set", "measure.duration=4s", "--set", "workload.rate=300")


@contextmanager
def watched(project, *options):
    """A run, and the steps of a browser that watches it."""
    run = project.start(*options)
    wait_until((project.bundle / "manifest.json").exists, timeout_s=60)
    with Served(project.folder, PLINTH_STATE_DIR=str(project.state)) as served:
        watching = subprocess.Popen(
            [node(), str(WATCH), served.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield run, Steps(watching)
        finally:
            watching.kill()
            watching.communicate()


class Steps:
    """What the browser's check says; each step is waited for."""

    def __init__(self, process):
        self._process = process

    def next(self, name):
        line = self._process.stdout.readline()
        assert line, self._process.stderr.read()
        step = json.loads(line)
        assert step["step"] == name
        return step


@pytest.mark.long
def test_the_charts_of_a_run_grow_and_keep_their_history_until_it_is_complete(project):
    with watched(project, *SHORT) as (run, steps):
        steps.next("growing")
        steps.next("looked at")
        findings = steps.next("end")
        code, said = run.end()
    assert code in (0, 3), said
    assert findings["failures"] == []
    assert findings["growth"]["after"] > findings["growth"]["before"] > 0
    assert findings["latency_points"] > 0
    assert findings["headline"].startswith("Trial ")
    assert findings["trials_after_reload"] >= findings["trials_before"] >= 1
    (place,) = findings["after_hidden"]
    assert place, "a page that was hidden asks for what it has not"
    assert findings["views"] == ["light", "dark", "phone"]
    assert findings["ended"] == "The run is complete"
    assert findings["rows"] == len(project.trials()) == 4
    assert any(note.startswith("pg_statements: n/a:") for note in findings["notes"])
    assert findings["report"].startswith("quick: ")
    assert not (project.bundle / "logs" / "live.jsonl").exists()
    assert project.plinth("verify", project.bundle).returncode == 0


@pytest.mark.long
def test_a_run_that_is_killed_is_not_shown_as_running(project):
    with watched(project, *LONG) as (run, steps):
        steps.next("growing")
        steps.next("looked at")
        run.signal(signal.SIGKILL)
        findings = steps.next("end")
    assert findings["ended"] == "The run is not running any more: it was killed"
    assert f"`plinth resume {project.bundle}`" in findings["reason"]
    assert findings["rows"] >= 1
    assert findings["failures"] == []
