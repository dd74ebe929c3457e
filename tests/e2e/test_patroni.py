"""Patroni as the cluster manager of a failover: timed in the same parts, its processes ended with the trial, and after a kill by clean."""

import re
import shutil
import signal
from pathlib import Path

import pytest

from waiting import wait_until

EXPERIMENT = """\
spec = 1
name = "patroni"
question = "What does a failover by Patroni cost?"

[storage.disk]
kind = "directory"
[storage.other]
kind = "directory"

[server]
storage = "disk"
listen = "tcp"
failover = "patroni"
patroni = { ttl = "20s", loop_wait = "1s", retry_timeout = "3s", primary_start_timeout = "0s" }
settings.shared_buffers = "32MB"
synchronous_standby_names = "FIRST 1 (a)"

[server.standby.a]
storage = "other"

[dataset]
kind = "none"

[workload]
builtin = "ledger"
clients = 2

[measure]
warmup = "100ms"
duration = "8s"
repeats = 1
aa = false
probe = "0s"
restore = "copy"
"""
KILL = '[[measure.action]]\nat = "500ms"\ndo = "kill"\n'
FAILOVER = '[[measure.action]]\nat = "500ms"\ndo = "failover"\n'


def check_failed_over(project, done) -> dict:
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    outage = trial["outage"]
    assert outage["primary"] == "a" and (outage["lost"] == 0 or outage["may_lose"] is not None)
    failover = outage["failover"]
    parts_s = failover["detect_s"] + failover["promote_s"] + failover["first_write_s"]
    assert parts_s == pytest.approx(outage["gap_s"], abs=0.3)
    assert re.match(r"Patroni \d+\.\d+\.\d+ \(ttl 20 s", failover["by"])
    assert failover["rejoin"]["how"] == "rewind" or (failover["rejoin"]["how"] == "restart" and outage["lost"] == 0)
    assert re.search(r"by Patroni \d", done.stdout.replace("\n", " "))
    return outage


@pytest.mark.long
def test_patroni_promotes_the_standby_of_a_primary_that_crashed(project, nothing_left):
    asynchronous = EXPERIMENT.replace('synchronous_standby_names = "FIRST 1 (a)"\n', "").replace(
        "clients = 2", "clients = 8"
    )
    project.write(asynchronous + KILL + FAILOVER)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "start etcd, and Patroni (ttl 20 s, loop_wait 1 s" in " ".join(planned.stdout.split())
    assert "may need" not in planned.stderr
    outage = check_failed_over(project, project.run())
    assert outage["faults"] == ["kill primary"]
    assert outage["gap_s"] < 8, "it does not wait for the lock to run out"
    nothing_left()


@pytest.mark.long
def test_patroni_starts_a_primary_that_crashed_again(project, nothing_left):
    project.write(EXPERIMENT.replace(', primary_start_timeout = "0s"', "") + KILL + FAILOVER)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    outage = trial["outage"]
    assert (outage["primary"], outage["failover"], outage["lost"]) == ("primary", None, 0)
    assert re.match(r"Patroni \d.* \(ttl 20 s", outage["restarted_by"])
    assert "started the primary again" in done.stdout.replace("\n", " ")
    assert 0 < outage["gap_s"] < 8
    nothing_left()


def test_a_load_that_may_end_before_patroni_is_done_is_a_warning_of_the_plan(project):
    project.write(EXPERIMENT + KILL + "machine = true\n" + FAILOVER)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    said = " ".join((planned.stdout + planned.stderr).split())
    assert "7.5 s of it are left after the fault; Patroni with ttl 20 s and loop_wait 1 s may need 23 s" in said


@pytest.mark.long
def test_the_lock_of_a_machine_that_failed_runs_out_first(project, nothing_left):
    machine = KILL + "machine = true\n"
    project.write(EXPERIMENT.replace('duration = "8s"', 'duration = "30s"') + machine + FAILOVER)
    outage = check_failed_over(project, project.run(timeout_s=240))
    assert outage["faults"] == ["kill primary and its machine"]
    assert 18 <= outage["gap_s"] <= 24, "of a ttl of 20 s, renewed each second"
    nothing_left()


@pytest.mark.long
def test_a_kill_of_plinth_leaves_nothing_that_clean_does_not_undo(project, nothing_left):
    project.write(EXPERIMENT.replace('"8s"', '"60s"') + KILL.replace("500ms", "50s") + FAILOVER.replace("500ms", "50s"))
    running = project.start()
    running.wait_for("copy the files of 1-disk.a as loaded", timeout_s=120)
    wait_until(lambda: len(of_patroni(project.state)) == 2, timeout_s=60)
    running.signal(signal.SIGKILL)
    running.end()
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    nothing_left()


def of_patroni(folder: Path) -> list[Path]:
    """The processes that are a Patroni of a run in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            words[1:2]
            and words[1].endswith(b"/patroni")
            and any(word.startswith(str(folder).encode()) for word in words)
        ):
            found.append(process)
    return found


@pytest.mark.parametrize(("program", "package"), [("patroni", "patroni"), ("etcd", "etcd-server")])
def test_without_a_program_the_plan_says_what_installs_it(project, program, package):
    project.write(EXPERIMENT + KILL + FAILOVER)
    for other in {"patroni", "etcd"} - {program}:
        found = shutil.which(other)
        assert found is not None
        (project.folder / other).symlink_to(found)
    done = project.plinth("plan", "x.toml", PATH=str(project.folder))
    assert done.returncode == 5, done.stdout + done.stderr
    assert f"{program}: there is no such program" in done.stderr and f"in package {package}" in done.stderr


def test_a_patroni_that_the_user_of_the_servers_cannot_execute_is_refused_in_the_plan(project):
    project.write(EXPERIMENT + KILL + FAILOVER)
    closed = project.folder / "patroni"
    closed.write_text("#!/bin/sh\n")
    closed.chmod(0o700)
    done = project.plinth("plan", "x.toml", PATH=str(project.folder))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "the user of the servers, cannot execute patroni" in done.stderr and str(closed) in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "place", "said"),
    [
        (('listen = "tcp"\n', ""), "server.listen", "reach one another's servers by TCP"),
        ((KILL, KILL.replace("kill", "pause")), "measure.action", "starts and stops the servers"),
        ((FAILOVER, FAILOVER + 'to = "a"\n'), "measure.action", "chooses the standby"),
        ((FAILOVER, ""), "server.failover", "there is no failover that Patroni could conduct"),
        (
            ("[server.standby.a]\n", '[server.standby.a]\nwal_storage = "disk"\n'),
            "server.failover",
            "without its own places",
        ),
        (('ttl = "20s"', 'ttl = "10s"'), "server.patroni.ttl", "greater than or equal to 20"),
        (('retry_timeout = "3s"', 'retry_timeout = "15s"'), "server.patroni", "loop_wait + 2 * retry_timeout, 31 s"),
        (
            ('[server]\nstorage = "disk"\nlisten = "tcp"\n', '[network]\ndelay = "1ms"\n[server]\nstorage = "disk"\n'),
            "network",
            "is not in the emulated network",
        ),
    ],
)
def test_what_patroni_cannot_conduct_is_refused_in_the_plan(project, change, place, said):
    text = EXPERIMENT + KILL + FAILOVER
    assert change[0] in text
    project.write(text.replace(*change))
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert place in done.stderr and said in done.stderr, done.stderr
