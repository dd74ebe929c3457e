"""Whole runs by a fleet of two processes of this machine, and what an experiment with a fleet may not ask for."""

import pytest

FLEET = '[fleet]\naddress = "local"\nmachines = 2\n'
MEASURE = """\
[measure]
warmup = "1s"
duration = "2s"
repeats = 1
aa = false
probe = "0s"
"""


def _write(project, more="", server="", workload="", fleet=FLEET):
    storage = project.experiment.partition("[dataset]")[0]
    project.write(
        f'{storage}[server]\nstorage = "memory"\n{server}[dataset]\nkind = "tpcb"\nscale = 20\n'
        f'[workload]\nbuiltin = "tpcb-like"\nclients = 4\n{workload}{MEASURE}{more}{fleet}'
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
    reported = project.plinth("report", str(project.bundle)).stdout
    if trial["excluded"] is None:  # else two processors were too few for machines that begin together
        assert "Load machines:" in reported and "local-2: " in reported
    assert "local-2" in (project.bundle / "derived" / "report.html").read_text()
    nothing_left()


KILL = 'restore = "auto"\n[[measure.action]]\nat = "1s"\ndo = "kill"\n'
SSH = '[fleet]\naddress = "ssh"\nhosts = ["client1"]\n'


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": 'driver = "psycopg"\n'}, "clients of psycopg run on this machine alone"),
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
