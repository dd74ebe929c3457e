"""Standbys of a managed server, from the experiment to the report; what cannot work is refused; nothing is left behind."""

import json
import signal

import pytest

EXPERIMENT = """\
spec = 1
name = "standbys"
question = "What does a standby cost?"

[storage.disk]
kind = "directory"
[storage.memory]
kind = "tmpfs"
size = "600MiB"

[server]
version = 15
settings.shared_buffers = "32MB"

[server.standby.a]
storage = "memory"
[server.standby.b]
storage = "disk"
upstream = "a"
settings.work_mem = "5MB"

[dataset]
kind = "tpcb"
scale = 1

[workload]
builtin = "tpcb-like"
clients = 2

[matrix]
"server.synchronous_standby_names" = ["", "FIRST 1 (a)"]

[measure]
warmup = "100ms"
duration = "1s"
repeats = 1
aa = false
probe = "0s"
restore = "copy"
"""


def test_they_are_made_read_back_and_reported(project, nothing_left):
    project.write(EXPERIMENT)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert "make standby a of 1-disk by a base backup" in done.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete", "complete"]
    env = project.bundle / "env"
    backups = {name: json.loads((env / f"backup-1-disk.{name}.json").read_text()) for name in "ab"}
    assert [backups[name]["upstream"] for name in "ab"] == ["primary", "a"]
    assert all(one["size_bytes"] > 20e6 and one["duration_s"] > 0 for one in backups.values())
    found = {path.name: json.loads(path.read_text()) for path in env.glob("standby-*.json")}
    assert sorted(found) == [f"standby-{variant}.{name}.json" for variant in ("disk", "first-1-a") for name in "ab"]
    states = {name: one["standby"]["sync_state"] for name, one in found.items()}
    assert states["standby-first-1-a.a.json"] == "sync"
    assert set(states.values()) == {"sync", "async"}
    for one in found.values():
        assert one["standby"]["in_recovery"] and one["standby"]["slot_active"]
    settings = {one["name"]: one["asked"] for one in found["standby-disk.b.json"]["settings"]}
    assert settings["work_mem"] == "5MB" and settings["shared_buffers"] == "32MB"
    restored = {tuple(trial["restored"]["how"]) for trial in project.trials()}
    assert restored == {("data", "data of a", "data of b")}
    assert "a of 1-disk: from primary, on memory (data); base backup" in project.whole_report()
    markdown = project.plinth("report", project.bundle, "--markdown").stdout
    assert "| a of 1-disk | primary | memory (data) |" in markdown
    assert "sync in FIRST 1 (a)" in markdown
    assert "n/a: it streams from a, of which nothing is sampled" in markdown, "b is behind a"
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    assert {"lag", "lag_bytes", "retained"} <= {panel["id"] for panel in report["panels"]}
    lags = {one["name"]: one["lag"] for one in report["standbys"]}
    assert "of WAL kept for it" in lags["a of 1-disk"] and lags["a of 1-disk"] in project.whole_report()
    assert "b of 1-disk" in (project.bundle / "derived" / "report.html").read_text()
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        (
            ("--set", "server.synchronous_standby_names=FIRST 2 (a, b)"),
            "server.synchronous_standby_names",
            "it needs 2 of a, and may count a",
        ),
        (
            ("--set", 'matrix."server.synchronous_standby_names"=["", "ANY 1 (b)"]'),
            "matrix.server.synchronous_standby_names",
            "it needs 1 of a, and may count none of them",
        ),
        (("--set", "server.settings.wal_level=minimal"), "server.settings.wal_level", "cannot follow"),
        (
            ("--set", "server.settings.max_replication_slots=0"),
            "max_replication_slots",
            "1 standby of primary needs a slot each (a)",
        ),
        (
            ("--set", "server.settings.max_wal_senders=1"),
            "max_wal_senders",
            "1 standby of primary needs 2 while the last of them is made",
        ),
        (("--set", "server.settings.hot_standby=off"), "server.settings.hot_standby", "reads back"),
        (
            ("--set", "server.standby.b.settings.work_mem=much"),
            "server.standby.b.settings.work_mem",
            "invalid value for parameter",
        ),
        (("--set", "durability.cuts=3"), "durability", "without standbys only"),
    ],
)
def test_what_cannot_work_is_refused_in_the_plan(project, changes, place, said):
    project.write(EXPERIMENT.replace("[matrix]", "[storage.spare]\nkind = 'directory'\n\n[matrix]"))
    done = project.plinth("plan", "x.toml", *changes)
    assert done.returncode == 2, done.stdout + done.stderr
    assert place in done.stderr and said in done.stderr


def test_a_quorum_that_cannot_be_is_reported_at_its_own_line(project):
    text = EXPERIMENT.replace("[server]\n", '[server]\nsynchronous_standby_names = "2 (a, b)"\n')
    project.write(text.replace('[matrix]\n"server.synchronous_standby_names" = ["", "FIRST 1 (a)"]\n', ""))
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "x.toml:12: server.synchronous_standby_names: " in done.stderr


def test_a_storage_that_is_too_small_for_a_standby_is_refused(project):
    project.write(EXPERIMENT.replace('size = "600MiB"', 'size = "48MiB"'))
    done = project.run()
    assert done.returncode != 0
    assert "storage.memory" in done.stderr


@pytest.mark.long
def test_one_whose_storage_is_full_fails_with_its_reason(project, nothing_left):
    """Of a dataset whose size is understated, so that the plan cannot know."""
    (project.folder / "load.sql").write_text(
        "CREATE TABLE filler AS SELECT repeat(md5(n::text), 200) FROM generate_series(1, 15000) n;\n"
        "ALTER TABLE filler ALTER repeat SET STORAGE PLAIN;\n"
        "CREATE TABLE filler_2 AS SELECT n, repeat('x', 900) FROM generate_series(1, 150000) n;\n"
    )
    (project.folder / "one.sql").write_text("SELECT 1;\n")
    text = EXPERIMENT.replace('kind = "tpcb"\nscale = 1', 'kind = "sql"\nload = "load.sql"\nsize = "1MB"')
    text = text.replace('builtin = "tpcb-like"', 'script = "one.sql"').replace('restore = "copy"\n', "")
    project.write(text.replace('size = "600MiB"', 'size = "120MiB"'))
    done = project.run()
    assert done.returncode not in (0, 3), done.stderr
    assert "pg_basebackup" in done.stderr and "No space left on device" in done.stderr
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize(
    "moment",
    [
        "make standby b",
        "trial 1 of 2",
        *(pytest.param(moment, marks=pytest.mark.long) for moment in ("make standby a", "copy the files of 1-disk.a")),
    ],
)
def test_a_kill_leaves_nothing_that_clean_does_not_undo(project, nothing_left, moment):
    project.write(EXPERIMENT)
    running = project.start()
    running.wait_for(moment, timeout_s=120)
    running.signal(signal.SIGKILL)
    running.end()
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    nothing_left()


@pytest.mark.long
def test_a_run_that_was_killed_is_resumed_with_its_standbys(project, nothing_left):
    project.write(EXPERIMENT)
    running = project.start()
    running.wait_for("make standby b", timeout_s=120)
    running.signal(signal.SIGKILL)
    running.end()
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert "make standby a" not in resumed.stderr and "make standby b" in resumed.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete", "complete"]
    nothing_left()
