"""Runs of the TPC-C-derived workload: a violated condition fails its trial, a power cut violates none."""

import json

import psycopg
import pytest

from plinth.bundle import read_cuts
from power_cut_experiment import experiment

EXTERNAL = """\
spec = 1
name = "planted"
question = "Is a violation found that another session plants while the load runs?"

[server]
connection = "service=mine"

[dataset]
kind = "tpcc"
warehouses = 1

[workload]
builtin = "tpcc"
max_tries = 20

[matrix]
workload.clients = [2, 20]

[measure]
warmup = "200ms"
duration = "2s"
repeats = 1
aa = false
order = "sequential"

[[measure.action]]
at = "500ms"
do = "sql"
sql = "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') > 15"
"""
"""The violation is planted only where more than 15 clients work."""


@pytest.mark.long
def test_a_violation_planted_in_a_trial_fails_it_and_names_the_rows(project, service):
    string, services = service
    project.write(EXTERNAL)
    done = project.run(PGSERVICEFILE=str(services))
    clean, planted = project.trials()
    assert clean["status"] == "complete", done.stderr
    assert [check["ok"] for check in clean["checks"] if "consistency condition" in check["name"]] == [True] * 11
    assert planted["status"] == "failed"
    assert (
        "consistency condition 1: W_YTD = sum(D_YTD); violations: expected none, got w_id 1: w_ytd"
        in planted["failure"]
    )
    assert "consistency condition 8" in planted["failure"]
    assert planted["failure"] in " ".join(done.stderr.split())
    # What else there is works with it: figures by type, attribution, the wait profile, and the server is left as it was.
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    measured, failed = report["analysis"]["variants"]
    assert measured["nopm"]["value"] > 0 and failed["nopm"] is None
    assert next(one["name"] for one in measured["transactions"]) == "new-order"
    assert measured["bottleneck"] is not None and measured["waits"]
    assert any("2 terminals for 1 warehouse" in one["text"] for one in report["tpcc"]["deviations"])
    with psycopg.connect(string) as control:
        assert control.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'plinth%'").fetchall() == []


@pytest.mark.long
def test_the_conditions_hold_after_power_cuts(project):
    load = 'kind = "tpcc"\nwarehouses = 1', 'builtin = "tpcc"\nledger = true'
    text = experiment(cuts=1, load=load, disk="").replace('size = "512MiB"', 'size = "1GiB"')
    project.write(text)
    done = project.run("--yes", timeout_s=280)
    assert done.returncode in (0, 3), done.stderr
    cuts = read_cuts(project.bundle)
    assert len(cuts) == 1
    for cut in cuts:
        assert cut.failure is None and cut.damage == ()
        (invariants,) = [check for check in cut.checks if check.name == "invariants of the dataset"]
        assert invariants.not_run is None


PARALLEL = """\
spec = 1
name = "parallel"
question = "Are transactions of parallel workers taken for those of another client?"

[storage.disk]
kind = "directory"

[server]
version = 18

[server.settings]
shared_buffers = "64MB"
min_parallel_table_scan_size = 0
min_parallel_index_scan_size = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
max_parallel_workers_per_gather = 8
max_parallel_workers = 16
max_worker_processes = 24

[dataset]
kind = "tpcc"
warehouses = 1

[workload]
builtin = "tpcc"
clients = 2

[measure]
warmup = "200ms"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
"""
"""Parallel workers of the load and of the conditions: each commits two transactions of its own."""


@pytest.mark.long
def test_parallel_workers_are_not_taken_for_another_client(project):
    project.write(PARALLEL)
    done = project.run("--yes")
    (trial,) = project.trials()
    assert trial["status"] == "complete", done.stderr
    (counted,) = [check for check in trial["checks"] if "pg_stat_database" in check["name"]]
    least = int(counted["expected"].split()[0])
    assert int(counted["got"]) - least > 104, "more than without parallel workers, of two sessions"
