"""Faults of servers and failovers: timed in parts that add up, commits looked for, and nothing left behind."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from waiting import runs, wait_until

EXPERIMENT = """\
spec = 1
name = "failover"
question = "What does a failover cost?"

[storage.disk]
kind = "directory"
[storage.other]
kind = "directory"

[server]
version = 15
storage = "disk"
settings.shared_buffers = "32MB"
settings.fsync = "off"

[server.standby.a]
storage = "other"

[dataset]
kind = "none"

[workload]
builtin = "ledger"
clients = 2

[measure]
warmup = "100ms"
duration = "5s"
repeats = 1
aa = false
probe = "0s"
restore = "copy"
"""
KILL = '[[measure.action]]\nat = "500ms"\ndo = "kill"\n'
FAILOVER = '[[measure.action]]\nat = "500ms"\ndo = "failover"\nprobe_interval = "100ms"\nprobes = 2\n'


def events(project) -> list[dict]:
    (path,) = project.bundle.glob("trials/0001-*/events.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_killed_primary_is_failed_over_and_comes_back(project, nothing_left):
    synchronous = 'synchronous_standby_names = "FIRST 1 (a)"\n[server.standby.a]'
    project.write(EXPERIMENT.replace("[server.standby.a]", synchronous) + KILL + FAILOVER)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    outage = trial["outage"]
    assert (outage["faults"], outage["primary"]) == (["kill primary"], "a")
    failover = outage["failover"]
    parts_s = failover["detect_s"] + failover["promote_s"] + failover["first_write_s"]
    assert parts_s == pytest.approx(outage["gap_s"], abs=0.3), "but for what lies between the last commit and the fault"
    assert failover["detect_s"] >= 0.1, "two probes, 100 ms apart, had to fail"
    assert failover["rejoin"]["how"] == "rewind", failover["rejoin"]
    assert outage["lost"] == 0 and outage["acknowledged"] > 0 and outage["may_lose"] is None
    assert outage["strayed"] == [], "the old primary follows"
    assert outage["connections_lost"] == 2 <= outage["attempts_failed"]
    assert outage["attempts_failed"] <= 2 * (outage["gap_s"] / 0.1 + 2), "at most ten attempts a second of each client"
    totals = trial["totals"]
    assert totals["failed"] == 2, "failed attempts to connect are no transactions"
    assert totals["scheduled"] == sum(totals[kind] for kind in ("done", "failed", "skipped", "open"))
    assert next(event["text"] for event in events(project) if event["kind"] == "action_start") == "kill primary"
    assert "without writes" in done.stdout and "none may be lost" in done.stdout.replace("\n", " ")
    markdown = project.plinth("report", project.bundle, "--markdown").stdout
    assert "## Faults and failover" in markdown and "the old primary came back by pg_rewind" in markdown
    nothing_left()


@pytest.mark.long
def test_what_sessions_wait_for_decides_what_a_failover_may_lose(project):
    """The database says local, although the server names a standby to wait for."""
    schema = "CREATE TABLE t (text text);\nDO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = local', current_database()); END $$;\n"
    (project.folder / "schema.sql").write_text(schema)
    (project.folder / "insert.sql").write_text("BEGIN;\nINSERT INTO t VALUES ('row');\nCOMMIT;\n")
    synchronous = 'synchronous_standby_names = "FIRST 1 (a)"\n[server.standby.a]'
    text = EXPERIMENT.replace("[server.standby.a]", synchronous)
    text = text.replace('kind = "none"', 'kind = "sql"\nschema = "schema.sql"')
    project.write(text.replace('builtin = "ledger"', 'script = "insert.sql"\nledger = true') + KILL + FAILOVER)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert trial["outage"]["may_lose"] == "synchronous_commit = local waits for no standby"
    assert "none may be lost" not in " ".join(done.stdout.split())


@pytest.mark.long
def test_a_standby_that_is_ahead_of_the_promoted_one_is_named_as_one_that_cannot_follow(project, nothing_left):
    """Its timeline left before what the other had replayed by then: a is 300 ms away from the primary, and b is not."""
    far = '[server.standby.b]\nstorage = "other"\n[network.link.primary-a]\ndelay = "300ms"\n[dataset]'
    forced = FAILOVER + 'to = "a"\nrejoin = "none"\n'
    project.write(EXPERIMENT.replace("[dataset]", far).replace('"5s"', '"2s"') + KILL + forced)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert (trial["outage"]["primary"], trial["outage"]["strayed"]) == ("a", ["b"])
    assert "b had more WAL than a and could not follow it (in 1 of 1)" in done.stdout.replace("\n", " ")
    nothing_left()


@pytest.mark.long
def test_two_nodes_that_take_writes_fail_the_trial(project, nothing_left):
    promote = '[[measure.action]]\nat = "300ms"\ndo = "promote"\nnode = "a"\n'
    project.write(EXPERIMENT.replace('"5s"', '"1s"') + promote)
    done = project.run()
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = project.trials()
    assert "split brain: primary and a both take writes" in trial["failure"]
    nothing_left()


@pytest.mark.long
def test_commits_that_wait_for_a_dead_standby_end_with_the_trial_and_count_as_local(project, nothing_left):
    waiting = 'synchronous_standby_names = "FIRST 1 (a)"\n[server.standby.a]'
    kills = KILL.replace('"kill"', '"kill"\nnode = "a"')
    project.write(EXPERIMENT.replace("[server.standby.a]", waiting).replace('"5s"', '"2s"') + kills)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    outage = trial["outage"]
    assert (outage["primary"], outage["failover"], outage["lost"], outage["gap_s"]) == ("primary", None, 0, None)
    assert trial["checks"][-1]["got"] == "none"
    nothing_left()


@pytest.mark.long
def test_a_fault_whose_turn_did_not_come_fails_the_trial(project, nothing_left):
    """It was complete, and said nothing of a kill that had not been done."""
    slow = '[[measure.action]]\nat = "100ms"\ndo = "sql"\nsql = "SELECT pg_sleep(60)"\n'
    project.write(EXPERIMENT.replace('"5s"', '"1s"') + slow + KILL)
    done = project.run()
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["failure"].startswith("the action kill primary at 500 ms was not done: the load had ended"), trial
    nothing_left()


EMULATED = 'kind = "emulated"\nprofile = "ideal"\nsize = "1GiB"\n'
BOTH_CUT = """\
[[measure.action]]
at = "500ms"
do = "power"
node = ["a", "primary"]
[[measure.action]]
at = "600ms"
do = "start"
node = "a"
"""
BOTH_CUT += FAILOVER.replace("500ms", "600ms")


@pytest.mark.long
def test_what_remote_write_loses_when_both_lose_their_power_is_found(project, nothing_left):
    """The standby's disk takes milliseconds to flush: remote_write is acknowledged before."""
    disks = EXPERIMENT.replace('kind = "directory"\n', EMULATED)
    disks = disks.replace('settings.fsync = "off"\n', 'synchronous_standby_names = "FIRST 1 (a)"\n')
    levels = '[matrix]\n"server.settings.synchronous_commit" = ["remote_write", "on"]\n[measure]'
    of_a = '[storage.other]\nkind = "emulated"\nprofile = '
    slow = disks.replace(f'{of_a}"ideal"', f'{of_a}"hdd-7200"').replace("clients = 2", "clients = 8")
    project.write(slow.replace("[measure]", levels).replace('"5s"', '"8s"') + BOTH_CUT)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    outages = {trial["variant"]: trial["outage"] for trial in project.trials()}
    written, flushed = outages["synchronous-commit-remote-write"], outages["synchronous-commit-on"]
    assert written["lost"] > 0 and "remote_write does not wait for the standby's flush" in written["may_lose"]
    assert flushed["lost"] == 0 and flushed["may_lose"] is None and flushed["acknowledged"] > 0
    nothing_left()


@pytest.mark.long
def test_a_file_system_that_cannot_be_mounted_after_a_power_cut_is_why_the_trial_failed(project, nothing_left):
    """Nothing of it was durable, not even that it is one; the run ended with "the power is on already"."""
    lying = EXPERIMENT.replace(
        '[storage.other]\nkind = "directory"', f"[storage.other]\n{EMULATED}lie = 'ignore-flush'"
    )
    cut = BOTH_CUT.replace('"a", "primary"', '"a"').partition(FAILOVER)[0]
    project.write(lying.replace('settings.fsync = "off"\n', "") + cut)
    done = project.run()
    assert done.returncode == 1, done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "failed" and "mount" in trial["failure"], trial["failure"]
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (KILL.replace("kill", "start") + 'node = "b"\n', "measure.action", "'b' is not one of: primary, a"),
        (FAILOVER + FAILOVER, "measure.action", "only one standby is promoted in a trial"),
        ('[[measure.action]]\nat = "1s"\ndo = "power"\n', "storage.disk", "the power of primary cannot be cut"),
        ('[[measure.action]]\nat = "1s"\ndo = "promote"\n', "measure.action", "the primary takes writes already"),
    ],
)
def test_faults_that_cannot_be_are_refused_in_the_plan(project, text, place, said):
    project.write(EXPERIMENT + text)
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert place in done.stderr and said in done.stderr


@pytest.mark.parametrize(
    ("setting", "rejoin", "said"),
    [
        ("max_replication_slots", "rewind", "got 0; 1 standby of a once it is promoted needs a slot each (primary)"),
        ("max_wal_senders", "backup", "got 0; 1 standby of a once it is promoted needs 2"),
        ("max_replication_slots", "none", None),
    ],
)
def test_a_standby_that_could_not_take_the_place_of_its_primary_is_refused_in_the_plan(project, setting, rejoin, said):
    """Found after minutes otherwise, in the first failover."""
    project.write(EXPERIMENT + KILL + FAILOVER + f'rejoin = "{rejoin}"\n')
    done = project.plinth("plan", "x.toml", "--set", f"server.standby.a.settings.{setting}=0")
    assert done.returncode == (2 if said else 0), done.stdout + done.stderr
    assert (said or "") in done.stderr
    assert not said or f"server.standby.a.settings.{setting}" in done.stderr


def test_what_faults_need_is_refused_together(project):
    asked = EXPERIMENT.replace('restore = "copy"\n', "").replace('builtin = "ledger"', 'builtin = "simple-update"')
    project.write(asked.replace('kind = "none"', 'kind = "tpcb"\nscale = 1') + KILL)
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert 'restore = "auto"' in done.stderr and "a commit ledger is needed" in done.stderr


def killed_in_a_failover(project, moment: str) -> Callable[[], bool]:
    """Kill a run in one step of its failover; returns whether the old primary runs."""
    rejoin = 'rejoin = "backup"\n' if moment == "backup" else ""
    project.write(EXPERIMENT + KILL + FAILOVER + rejoin)
    running = project.start()
    running.wait_for("copy the files of 1-disk.a as loaded", timeout_s=120)
    steps = json.loads((project.bundle / "plan.json").read_text())["steps"]
    argv = {step["id"]: step["argv"] for step in steps}
    start, start_a = argv["server.1-disk.start"], argv["server.1-disk.a.start"]
    program, data, of_a = start[0], start[2], Path(start_a[2])
    primary = runs(program, data)
    wait_until(lambda: primary() and (of_a / "standby.signal").exists(), timeout_s=60)
    wait_until(lambda: not primary(), timeout_s=60)  # killed: the probes begin to fail
    if moment == "promote":
        wait_until(lambda: not (of_a / "standby.signal").exists(), timeout_s=60)
    elif moment == "rewind":
        wait_until(runs(program.removesuffix("postgres") + "pg_rewind", data), timeout_s=60)
    elif moment == "backup":
        wait_until(runs(program.removesuffix("postgres") + "pg_basebackup", data), timeout_s=60)
    running.signal(signal.SIGKILL)
    running.end()
    return primary


@pytest.mark.long
@pytest.mark.parametrize("moment", ["detect", "promote", "rewind", "backup"])
def test_a_kill_of_plinth_in_a_failover_leaves_nothing_that_clean_does_not_undo(project, nothing_left, moment):
    primary = killed_in_a_failover(project, moment)
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert not primary()
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["promote", "backup"])
def test_a_run_that_was_killed_in_a_failover_is_resumed_with_the_servers_it_was_planned_with(
    project, nothing_left, moment
):
    killed_in_a_failover(project, moment)
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stdout + resumed.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert (trial["outage"]["primary"], trial["outage"]["failover"]["to"]) == ("a", "a")
    nothing_left()
