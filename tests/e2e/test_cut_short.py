"""Runs that are cut short: nothing is left that the journal does not name, and no result is lost."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from initdb_copies import REAL_INITDB

pytestmark = pytest.mark.usefixtures("repeated")

ONCE = ("--set", "measure.repeats=1")
# Either signal in turn: what reads them does not know the phase.
PHASES = {
    "make storage memory": signal.SIGINT,
    "initialise cluster 1-disk": signal.SIGTERM,
    "load tpcb": signal.SIGINT,
    "initialise cluster 2-memory": signal.SIGTERM,
    "trial 1 of": signal.SIGINT,
    "trial 2 of": signal.SIGTERM,
}


@pytest.mark.parametrize(("phase", "number"), PHASES.items())
def test_interrupted_in_every_phase(project, nothing_left, phase, number, monkeypatch):
    monkeypatch.setenv(*REAL_INITDB)
    running = project.start()
    running.wait_for(phase)
    running.signal(number)
    code, said = running.end()
    assert code == 130, said
    assert f"interrupted by {number.name}" in said
    assert f"`plinth resume {project.bundle}` finishes the run" in said
    assert "Traceback" not in said
    assert project.status() == "interrupted"
    nothing_left()


@pytest.mark.long
def test_a_terminal_that_goes_ends_the_run_and_all_is_undone(project, nothing_left):
    """As when the connection to another machine is lost: SIGHUP, and nothing can be written any more."""
    ours, its = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "plinth", "run", "x.toml", "--bundle", project.bundle],
        cwd=project.folder,
        env=project.environment(TERM="xterm"),
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        os.close(its)
        shown = b""
        while b"trial 1 of" not in shown:
            shown += os.read(ours, 65536)
        os.close(ours)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
    assert project.status() == "interrupted"
    nothing_left()


def test_a_second_signal_does_not_stop_the_undoing(project, nothing_left):
    running = project.start()
    running.wait_for("trial 1 of")
    running.signal(signal.SIGINT)
    running.wait_for("undo what this run made")
    running.signal(signal.SIGINT)
    code, said = running.end()
    assert code == 130, said
    nothing_left()


def test_kill_then_clean_then_resume(project, nothing_left):
    running = project.start(*ONCE)
    running.wait_for("trial 2 of")
    running.signal(signal.SIGKILL)
    assert running.end()[0] == -signal.SIGKILL
    assert project.left_behind() != []
    kept = project.trials()
    assert len(kept) >= 2

    # The bundle opens as it is.
    assert project.plinth("report", project.bundle).returncode == 0
    unsealed = project.plinth("verify", project.bundle)
    assert unsealed.returncode == 1
    assert "plinth resume" in unsealed.stderr

    left = project.left_behind()
    shown = project.plinth("clean", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "# stop the server of" in shown.stdout and f"umount {project.state}" in shown.stdout
    assert project.left_behind() == left, "nothing was changed"

    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert "undone" in cleaned.stdout
    nothing_left()
    again = project.plinth("clean")
    assert (again.returncode, again.stdout) == (0, f"nothing to clean: no journal in {project.state}/journal\n")

    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    trials = project.trials()
    assert [t["number"] for t in trials] == list(range(1, 4))
    assert trials[: len(kept)] == kept
    assert project.status() == "complete"
    assert project.plinth("verify", project.bundle).returncode == 0
    nothing_left()


@pytest.mark.long
def test_resume_cleans_up_automatically_and_a_complete_bundle_has_nothing_to_resume(project, nothing_left):
    running = project.start(*ONCE)
    running.wait_for("load tpcb")
    running.signal(signal.SIGKILL)
    running.end()
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    nothing_left()
    doctor = json.loads((project.bundle / "env" / "doctor.json").read_text())
    assert len(doctor["examinations"]) == 2  # before the run, and before it was resumed
    trials = project.trials()
    once_more = project.plinth("resume", project.bundle)
    assert once_more.returncode in (0, 3), once_more.stderr
    assert "nothing to resume" in once_more.stderr
    assert project.trials() == trials


@pytest.mark.long
def test_a_living_run_is_neither_cleaned_nor_resumed(project, nothing_left):
    running = project.start(*ONCE)
    running.wait_for("trial 1 of")
    cleaned = project.plinth("clean")
    assert "still running" in cleaned.stdout
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode == 4, resumed.stderr
    code, said = running.end()
    assert code in (0, 3), said
    nothing_left()


@pytest.mark.long
def test_a_server_that_is_killed_fails_its_trial_and_no_other(project, nothing_left):
    running = project.start("--set", "measure.duration=1s", *ONCE)
    running.wait_for("trial 1 of")
    os.kill(next_postmaster(project, running), signal.SIGKILL)
    code, said = running.end()
    assert code == 1, said
    failed = [trial for trial in project.trials() if trial["status"] == "failed"]
    assert len(failed) == 1, said
    assert "FAILED" in said
    assert len(project.trials()) == 3
    assert project.status() == "complete"
    nothing_left()


@pytest.mark.long
def test_a_backend_that_is_killed_fails_its_trial_and_the_server_comes_back(project, nothing_left):
    running = project.start("--set", "measure.duration=2s", *ONCE)
    running.wait_for("trial 1 of")
    postmaster = next_postmaster(project, running)
    os.kill(client_backend(postmaster, running), signal.SIGKILL)
    code, said = running.end()
    assert code == 1, said
    failed = [trial for trial in project.trials() if trial["status"] == "failed"]
    assert len(failed) == 1, said
    assert "did not work to the end (connection lost)" in failed[0]["failure"]
    assert len(project.trials()) == 3
    nothing_left()


def client_backend(postmaster, running, timeout_s=60):
    """The pid of a backend that serves the load: it says what it is doing in its title."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        assert running.process.poll() is None
        for child in Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
            try:
                title = Path(f"/proc/{child}/cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue
            if b"UPDATE" in title or b"COMMIT" in title:
                return int(child)
    raise AssertionError("no backend works for a client")


def next_postmaster(project, running, timeout_s=60):
    """The pid of the server of the trial that comes now: one that was not there before, and takes connections."""
    before = set(project.postmasters())
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        assert running.process.poll() is None
        for path in project.state.glob("work/*/*/postmaster.pid"):
            try:
                lines = path.read_text().splitlines()
            except FileNotFoundError:  # stopped in this very moment
                continue
            if len(lines) >= 8 and lines[7].strip() == "ready" and int(lines[0]) not in before:
                return int(lines[0])
    raise AssertionError("no server came up")


def test_a_second_plinth_in_the_same_folder_is_refused(project, nothing_left):
    running = project.start()
    running.wait_for("initialise cluster")
    second = project.run()
    assert second.returncode == 4, second.stderr
    assert str(running.process.pid) in second.stderr
    running.signal(signal.SIGINT)
    assert running.end()[0] == 130
    nothing_left()
