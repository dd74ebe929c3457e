"""Trials with a commit ledger: each looks for every acknowledged one, and what is missing fails it."""

import pytest

MEASURE = """\
[measure]
warmup = "200ms"
duration = "2s"
repeats = 1
aa = false
probe = "0s"
"""
BUILTIN = ('kind = "none"', 'builtin = "ledger"')
TPCB = ('kind = "tpcb"\nscale = 1', 'builtin = "tpcb-like"\nledger = true')
LOST = "acknowledged commits of the ledger that are missing"


def with_ledger(project, dataset, workload, actions=""):
    storage = project.experiment.partition("[dataset]")[0]
    server = '[server]\nstorage = "memory"\n'
    project.write(f"{storage}{server}[dataset]\n{dataset}\n[workload]\n{workload}\nclients = 4\n{MEASURE}{actions}")


@pytest.mark.long
@pytest.mark.parametrize(("dataset", "workload"), [pytest.param(*BUILTIN, marks=pytest.mark.long), TPCB])
def test_a_trial_says_how_many_acknowledged_commits_are_missing(project, nothing_left, dataset, workload):
    with_ledger(project, dataset, workload)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    commits = f"0 of {trial['totals']['done']:,}"
    check = next(check for check in trial["checks"] if check["name"] == LOST)
    assert (check["expected"], check["got"]) == (commits, commits)
    assert all(check["ok"] for check in trial["checks"])
    assert (
        sum(path.stat().st_size for path in project.bundle.glob("ledgers/0001/*.ledger")) > 32 * trial["totals"]["done"]
    )
    assert project.plinth("verify", str(project.bundle)).returncode == 0
    nothing_left()


def test_a_commit_that_is_lost_fails_its_trial_with_the_evidence(project, nothing_left):
    """The control: an action of the trial deletes a row that some client was told of."""
    delete = "DELETE FROM plinth_ledger_commits WHERE (client, number) = (2, 3)"
    with_ledger(project, *TPCB, f'[[measure.action]]\nat = "1s"\ndo = "sql"\nsql = "{delete}"\n')
    done = project.run()
    assert done.returncode == 1, done.stderr
    (trial,) = project.trials()
    assert f"{LOST}: expected 0 of " in trial["failure"]
    assert "lost commit: client 2, number 3 (acknowledged, sent at " in trial["failure"]
    assert (project.bundle / "derived" / "report.html").exists(), "it was measured before that was found"
    nothing_left()


def test_a_script_without_a_transaction_block_is_refused_by_the_plan(project):
    (project.folder / "own.sql").write_text("SELECT 1;\n")
    with_ledger(project, 'kind = "none"', 'script = "own.sql"\nledger = true')
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 2
    assert "the script has no transaction block" in planned.stderr
    assert "own.sql:1" in planned.stderr
    assert "put its statements between BEGIN; and COMMIT;" in " ".join(planned.stderr.split())


@pytest.mark.long
@pytest.mark.parametrize("reconnect", [False, True])
def test_sessions_that_an_administrator_terminates_are_failures_of_a_complete_trial(project, nothing_left, reconnect):
    terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plinth'"
    workload = f"{TPCB[1]}\nreconnect = {str(reconnect).lower()}"
    with_ledger(project, TPCB[0], workload, f'[[measure.action]]\nat = "1s"\ndo = "sql"\nsql = "{terminate}"\n')
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    errors = trial["errors"]
    assert {(error["kind"], error["sqlstate"]) for error in errors} == {("terminated", "57P01")}
    terminated = sum(error["count"] for error in errors)
    assert trial["totals"]["failed"] <= terminated <= 4
    assert next(check for check in trial["checks"] if check["name"] == LOST)["ok"]
    nothing_left()
