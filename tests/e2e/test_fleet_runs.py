"""Whole runs by a fleet of two processes of this machine, and what an experiment with a fleet may not ask for."""

import os
import signal

import pytest

from fleets import running_agents
from waiting import wait_until

FLEET = '[fleet]\nexecutor = "local"\nmachines = 2\n'
MEASURE = """\
[measure]
warmup = "1s"
duration = "2s"
repeats = 1
aa = false
probe = "0s"
"""


def _write(project, more="", server="", workload="", fleet=FLEET, scale=20, measure=MEASURE):
    storage = project.experiment.partition("[dataset]")[0]
    project.write(
        f'{storage}[server]\nstorage = "memory"\n{server}[dataset]\nkind = "tpcb"\nscale = {scale}\n'
        f'[workload]\nbuiltin = "tpcb-like"\nclients = 4\n{workload}{measure}{more}{fleet}'
    )


def test_two_machines_load_drive_and_are_reported(project, nothing_left):
    _write(project, workload="ledger = true\n")
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    said = " ".join(planned.stdout.split())
    assert "from each of up to 2 machines (local) that gets 128.0 MiB or more to send" in said
    assert "tpcb-like by 4 clients on 2 machines (local)" in said
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    machines = trial["fleet"]["machines"]
    assert [one["clients"] for one in machines] == [2, 2]
    assert sum(one["measured"]["done"] for one in machines) == trial["measured"]["done"] > 0
    assert all(check["ok"] for check in trial["checks"])
    assert any("acknowledged commits of the ledger" in check["name"] for check in trial["checks"])
    reported = project.whole_report()
    if trial["excluded"] is None:  # else two processors were too few for machines that begin together
        assert "Load machines:" in reported and "local-2: " in reported
    assert "local-2" in (project.bundle / "derived" / "report.html").read_text()
    nothing_left()


@pytest.mark.long
def test_the_clients_of_a_driver_are_on_all_machines(project, nothing_left):
    _write(project, workload='driver = "psycopg"\n', scale=1)
    planned = project.plinth("plan", "x.toml")
    assert "4 clients on 2 machines (local), prepared protocol, driver psycopg" in " ".join(planned.stdout.split())
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert trial["engine"]["driver"].startswith("psycopg") and trial["engine"]["threads"] == 4
    machines = trial["fleet"]["machines"]
    assert [one["clients"] for one in machines] == [2, 2]
    assert sum(one["measured"]["done"] for one in machines) == trial["measured"]["done"] > 0
    assert all(0 < one["engine_busy"] <= 1 for one in machines)
    nothing_left()


@pytest.mark.long
def test_after_a_machine_is_lost_the_other_trials_go_on_and_after_the_coordinator_is_killed_resume_does(
    project, nothing_left
):
    _write(project, scale=1, measure=MEASURE.replace("repeats = 1", "repeats = 3"))
    before = running_agents()
    running = project.start()
    running.wait_for("load tpcb into")
    os.kill(_agent(before), signal.SIGKILL)
    assert "the agent on machine local-" in running.wait_for("trial 1 of 3")
    assert "tps" in running.wait_for("trial 2 of 3")
    _agent(before)
    running.signal(signal.SIGKILL)
    running.process.wait(30)
    wait_until(lambda: running_agents() <= before)
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode == 1, resumed.stderr
    first, *others = project.trials()
    assert first["status"] == "failed" and "the agent on machine local-" in first["failure"]
    assert [one["status"] for one in others] == ["complete"] * 2
    nothing_left()


def _agent(before):
    """The first of the two that run, once both do."""
    wait_until(lambda: len(running_agents() - before) == 2)
    return min(running_agents() - before)


KILL = 'restore = "auto"\n[[measure.action]]\nat = "1s"\ndo = "kill"\n'
SSH = '[fleet]\nexecutor = "ssh"\nhosts = ["client1"]\n'


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fleet": FLEET.replace("2", "5")}, "4 clients for 5 machines: each machine needs one at least"),
        ({"fleet": SSH}, "cannot reach a managed server that listens on this machine only"),
        (
            {"workload": "ledger = true\n", "more": KILL},
            "what is done to servers is measured with the load of this machine alone",
        ),
    ],
)
def test_what_a_fleet_does_not_do_is_refused_by_the_plan(project, changes, words):
    _write(project, **changes)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 2
    assert words in " ".join(planned.stderr.split())
