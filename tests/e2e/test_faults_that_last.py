"""Faults that last: pauses, slow disks, full storages and partitions that end by themselves, by an action, or with the measured time."""

import json
import signal
from pathlib import Path

import pytest

import plinth
from waiting import wait_until

EXPERIMENT = """\
spec = 1
name = "faults"
question = "What does a fault cost?"

[storage.disk]
kind = "emulated"
profile = "ideal"
size = "512MiB"

[server]
version = 15
storage = "disk"
settings.shared_buffers = "32MB"

[dataset]
kind = "none"

[workload]
builtin = "ledger"
clients = 2

[measure]
warmup = "100ms"
duration = "4s"
repeats = 1
aa = false
probe = "0s"
restore = "copy"
"""
STANDBY = """\
[storage.other]
kind = "directory"
[server.standby.a]
storage = "other"
"""


def action(at: str, do: str, *more: str) -> str:
    return "\n".join(["[[measure.action]]", f'at = "{at}"', f'do = "{do}"', *more, ""])


PAUSE = action("200ms", "pause", 'for = "600ms"')
SLOW = action("1s", "disk", 'physics.flush_latency = "100ms"', 'for = "1s"')
FULL = action("2500ms", "fill") + action("3s", "free", 'holds = "wal"')
LAST = action("3500ms", "pause") + action("3500ms", "disk", 'physics.write_latency = "5ms"')


def events(project) -> list[dict]:
    (path,) = project.bundle.glob("trials/0001-*/events.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines() if "action" in line]


def begun(project) -> dict[str, float]:
    """The time of each action since the load's start, in s, by its description."""
    return {event["text"]: event["t_ns"] / 1e9 for event in events(project) if event["kind"] == "action_start"}


@pytest.mark.long
def test_each_fault_does_what_it_says_and_ends_in_time(project, nothing_left):
    project.write(EXPERIMENT + PAUSE + SLOW + FULL + LAST)
    planned = project.plinth("plan", "x.toml")
    assert "in each trial: pause primary for 600 ms at 200 ms" in planned.stdout, planned.stderr
    assert "in each trial: disk: primary's disks: flush_latency 100 ms for 1 s at 1 s" in planned.stdout
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    at = begun(project)
    assert at["continue primary"] >= at["pause primary for 600 ms"] + 0.6
    restored_at = at["disk: primary's disks: as before"]
    ended = [event["text"].partition(": took")[0] for event in events(project) if event["kind"] == "action_end"]
    assert ended[-2:] == ["disk: primary's disks: as before", "continue primary"], "with the measured time"
    assert restored_at > at["pause primary"], "the last of its name"
    outage = trial["outage"]
    assert outage["faults"] == ["pause primary for 600 ms", "fill primary's data storage", "pause primary"]
    assert outage["gap_s"] >= 0.5 and outage["lost"] == 0 and outage["failover"] is None
    assert "without writes" in done.stdout
    latencies = plinth.open_bundle(project.bundle).histograms().numpy()
    slow = (latencies["scope"] == "transaction") & (latencies["value_ns"] >= 100_000_000)
    assert latencies["bucket_count"][slow].sum() >= 8, (
        "commits wait for flushes of 100 ms; the two pauses delay four at most"
    )
    errors = {error["sqlstate"] for error in trial["errors"]}
    assert errors == {"53100"}, "no space left on device, and nothing else failed"
    nothing_left()


@pytest.mark.long
def test_a_paused_primary_is_fenced_and_failed_over(project, nothing_left):
    failover = action("300ms", "failover", 'probe_interval = "100ms"', "probes = 1")
    project.write(EXPERIMENT + STANDBY + action("200ms", "pause") + failover)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    outage = trial["outage"]
    assert (outage["faults"], outage["primary"]) == (["pause primary"], "a")
    assert outage["failover"]["detect_s"] >= 2, "a probe of a server that hangs fails after 2 s"
    assert outage["failover"]["rejoin"]["how"] in ("rewind", "backup")
    assert [what.split()[0] for what in begun(project)] == ["pause", "fail"], "nothing is left that could be continued"
    nothing_left()


@pytest.mark.long
def test_a_partition_ends_automatically(project, nothing_left):
    cut = action("500ms", "network", 'link = "primary-a"', "partitioned = true", 'for = "300ms"')
    network = '[network]\ndelay = "1ms"\n'
    text = EXPERIMENT.replace('restore = "copy"\n', "") + STANDBY + network + cut
    project.write(text.replace("[dataset]", "synchronous_standby_names = 'FIRST 1 (a)'\n[dataset]", 1))
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    at = begun(project)
    cut_at, healed_at = at.values()
    assert list(at) == ["network: primary-a: partitioned for 300 ms", "network: primary-a: as before"]
    assert healed_at >= cut_at + 0.3
    (link,) = trial["network"]["links"]
    assert link["sent_to_standby"]["partitioned"] > 0
    assert link["to_standby"]["delay_ns"] == 1_000_000
    done_in = plinth.open_bundle(project.bundle).series().numpy()["done"]
    assert done_in[-1] > 0, "commits are acknowledged again"
    nothing_left()


def killed_once_paused(project, pause_at: str) -> None:
    """Kill a run whose server is paused, its storage full, and its disk slow."""
    faults = action("100ms", "fill") + action("100ms", "disk", 'physics.flush_latency = "300ms"')
    project.write(EXPERIMENT + faults + action(pause_at, "pause"))
    running = project.start()
    running.wait_for("copy the files of 1-disk as loaded", timeout_s=120)
    wait_until(lambda: paused_in(project.state), timeout_s=60)
    running.signal(signal.SIGKILL)
    running.end()


@pytest.mark.long
def test_a_kill_of_plinth_in_the_midst_leaves_nothing_that_clean_does_not_undo(project, nothing_left):
    killed_once_paused(project, "200ms")
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    nothing_left()


@pytest.mark.long
def test_a_resumed_run_begins_without_the_faults_of_the_trial_that_was_killed(project, nothing_left):
    killed_once_paused(project, "1s")
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    nothing_left()


def paused_in(folder: Path) -> list[int]:
    """The processes that work in the folder and are stopped."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            if state == "T" and (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
        except OSError:
            continue  # it has ended
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (action("1s", "continue"), "measure.action", "no action before it does that to primary"),
        (action("1s", "free"), "measure.action", "no action before it does that to primary"),
        (action("3s", "pause", 'for = "2s"'), "measure", "it would end at 5 s, and the measured time is 4 s"),
        (action("1s", "pause", 'for = "0s"'), "measure.action", "greater than 0"),
        (action("1s", "disk", "physics = {}"), "measure.action", "nothing to change"),
        (action("1s", "fill", 'node = "a"') + STANDBY, "storage.other", "shares its file system with all else"),
        (action("1s", "disk", 'node = "a"', "physics.read_iops = 1") + STANDBY, "measure.action", "no emulated disk"),
        (action("1s", "disk", 'node = "b"', "physics.read_iops = 1"), "measure.action", "'b' is not one of: primary"),
        (
            action("1s", "fill") + STANDBY.replace('"other"', '"disk"'),
            "measure.action",
            "a is stored on disk, too, and would be full",
        ),
    ],
)
def test_faults_that_cannot_be_are_refused_in_the_plan(project, text, place, said):
    project.write(EXPERIMENT + text)
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert place in done.stderr and said in done.stderr


def test_a_slow_disk_needs_no_ledger(project):
    simple = EXPERIMENT.replace('builtin = "ledger"', 'builtin = "simple-update"').replace('restore = "copy"\n', "")
    project.write(simple.replace('kind = "none"', 'kind = "tpcb"\nscale = 1') + SLOW)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
