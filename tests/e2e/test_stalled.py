"""A run in which nothing proceeds: it says what it waits for, and continues when it can, or ends when it is interrupted."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from waiting import wait_until

SOON = """\
import sys
import plinth.run.stall
plinth.run.stall.STALLED_S = 0.3
from plinth.cli import main
sys.exit(main())
"""
"""plinth, which says it after less than a minute."""

EXPERIMENT = """\
spec = 1
name = "held"
question = "What does it wait for?"
dataset = { kind = "sql", schema = "schema.sql", load = "load.sql", size = "1MB" }
workload = { script = "script.sql", clients = 2 }
matrix = { workload.clients = [2] }
measure = { warmup = "0s", duration = "5s", repeats = 1, aa = false, probe = "0s" }

"""
EXTERNAL = "[server]\nconnection = "
MANAGED = """\
[storage.disk]
kind = "directory"
[server]
storage = "disk"
settings = { max_prepared_transactions = 1 }
"""
LOCK = "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE"


@pytest.mark.long
def test_a_load_and_a_trial_that_a_foreign_lock_holds_up_say_so_and_continue(project, service, nothing_left):
    string, _ = service
    (project.folder / "schema.sql").write_text("CREATE TABLE mine (n int);\n")
    (project.folder / "load.sql").write_text("INSERT INTO mine SELECT n FROM public.loading n;\n")
    (project.folder / "script.sql").write_text("SELECT count(*) FROM public.running;\n")
    project.write(EXPERIMENT + EXTERNAL + f'"{string}"\n')
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("CREATE TABLE loading AS SELECT 1 AS n; CREATE TABLE running ()")
    with (
        psycopg.connect(string, application_name="loader") as loading,
        psycopg.connect(string, application_name="vandal") as running,
    ):
        loading.execute(LOCK.format("loading"))
        running.execute(LOCK.format("running"))
        run = project.start(program=("-c", SOON))
        said = run.wait_for("waits for Lock:relation")
        assert "load into 1-external" in said and "no progress for " in said
        assert f"blocked by pid {loading.info.backend_pid} (loader, idle in transaction)" in said
        loading.rollback()
        said = run.wait_for("2 sessions wait for Lock:relation")
        assert "trial 1: no progress for " in said
        assert f"blocked by pid {running.info.backend_pid} (vandal, idle in transaction)" in said
        running.rollback()
    code, stderr = run.end()
    assert code in (0, 3), stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete" and trial["measured"]["done"] > 0
    nothing_left()


@pytest.mark.long
def test_a_load_into_a_server_of_ours_says_so_and_ctrl_c_ends_it(project, nothing_left):
    """What blocks it is a transaction of no session, which goes with the server only."""
    (project.folder / "schema.sql").write_text("CREATE TABLE mine (n int);\n")
    (project.folder / "load.sql").write_text(
        f"BEGIN; {LOCK.format('mine')}; PREPARE TRANSACTION 'forgotten';\nSELECT count(*) FROM mine;\n"
    )
    (project.folder / "script.sql").write_text("SELECT 1;\n")
    project.write(EXPERIMENT + MANAGED)
    run = project.start(program=("-c", SOON))
    said = run.wait_for("waits for Lock:relation")
    assert "load into 1-disk" in said and "no progress for " in said
    assert said.rstrip().endswith("blocked by a prepared transaction")
    run.signal(signal.SIGINT)
    code, stderr = run.end()
    assert code == 130, stderr
    nothing_left()


@pytest.mark.long
def test_a_server_that_is_stopped_fails_its_trial_and_the_next_one_is_measured(project, nothing_left):
    (project.folder / "schema.sql").write_text("CREATE TABLE mine (n int);\n")
    (project.folder / "load.sql").write_text("INSERT INTO mine VALUES (1);\n")
    (project.folder / "script.sql").write_text("SELECT pg_sleep(0.01) FROM mine;\n")
    project.write(EXPERIMENT + MANAGED)
    shorter = ("--set", "measure.stall_limit=2s", "--set", "measure.duration=3s", "--set", "measure.repeats=2")
    run = project.start(*shorter)
    wait_until(lambda: serving(project), timeout_s=60)
    (postmaster,) = project.postmasters()
    for pid in (postmaster, *children(postmaster)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    code, stderr = run.end()
    assert code == 1, stderr
    stalled, measured = project.trials()
    assert (stalled["status"], measured["status"]) == ("failed", "complete"), stderr
    assert "measure.stall_limit" in stalled["failure"] and f"pid {postmaster}" in stalled["failure"]
    assert "stopped (SIGSTOP" in stalled["failure"] and measured["measured"]["done"] > 0
    nothing_left()


@pytest.mark.long
def test_a_trial_that_waits_for_a_lock_of_others_fails_with_who_holds_it(project, service, nothing_left):
    string, _ = service
    (project.folder / "schema.sql").write_text("CREATE TABLE mine (n int);\n")
    (project.folder / "load.sql").write_text("INSERT INTO mine VALUES (1);\n")
    (project.folder / "script.sql").write_text("SELECT count(*) FROM public.running;\n")
    project.write(EXPERIMENT + EXTERNAL + f'"{string}"\n')
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("CREATE TABLE running ()")
    with psycopg.connect(string, application_name="vandal") as running:
        running.execute(LOCK.format("running"))
        holder = f"pid {running.info.backend_pid} (vandal, idle in transaction)"
        run = project.start("--set", "measure.stall_limit=3s", program=("-c", SOON))
        code, stderr = run.end()
    assert code == 1, stderr
    (trial,) = project.trials()
    assert trial["status"] == "failed" and "measure.stall_limit" in trial["failure"]
    assert f"blocked by {holder}" in trial["failure"]
    nothing_left()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def serving(project) -> bool:
    """Whether the transactions of both clients are under way: the titles of two backends say so."""
    with suppress(OSError):  # one has ended
        titles = [Path(f"/proc/{pid}/cmdline").read_bytes() for one in project.postmasters() for pid in children(one)]
        return sum(b"SELECT" in title for title in titles) == 2
    return False
