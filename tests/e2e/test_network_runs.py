"""An experiment with an emulated network: links as asked, measured and read back, changed by actions; nothing is left behind."""

import json
import signal
from pathlib import Path

import pytest

from disks import dev_without, in_private_mounts

EXPERIMENT = """\
spec = 1
name = "network"
question = "What does a distance cost?"

[storage.disk]
kind = "directory"

[server]
version = 15
synchronous_standby_names = "FIRST 1 (a)"
settings.shared_buffers = "32MB"

[server.standby.a]
storage = "disk"

[network.link.a-to-primary]
delay = "4ms"

[dataset]
kind = "tpcb"
scale = 1

[workload]
builtin = "simple-update"
clients = 2

[matrix]
"network.link.primary-to-a.delay" = ["0ms", "30ms"]

[measure]
warmup = "100ms"
duration = "1500ms"
repeats = 1
aa = false
probe = "0s"
seed = 7

[[measure.action]]
at = "1s"
do = "network"
link = "primary-a"
partitioned = true
"""


def namespaces(project) -> list[str]:
    run_id = json.loads((project.bundle / "manifest.json").read_text())["run_id"]
    return [path.name for path in Path("/run/netns").glob(f"plinth-{run_id}-*")]


@pytest.mark.long
def test_links_are_as_asked_and_measured_and_a_partition_ends_with_the_trial(project, nothing_left):
    project.write(EXPERIMENT)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    steps = json.loads((project.bundle / "plan.json").read_text())["steps"]
    (serve,) = [step["argv"] for step in steps if step["id"] == "network.serve"]
    assert serve[serve.index("--seed") + 1] == "7", "the experiment's seed decides jitter and loss"
    for trial in project.trials():
        assert trial["status"] == "complete", trial["failure"]
        (link,) = trial["network"]["links"]
        there, back = link["to_standby"]["delay_ns"], link["to_upstream"]["delay_ns"]
        assert (there, back) == (30_000_000 if "30ms" in trial["variant"] else 0, 4_000_000)
        assert len(link["round_trips_ns"]) == 20
        assert min(link["round_trips_ns"]) >= there + back
        assert link["sent_to_standby"]["delivered"] > 0 and link["sent_to_standby"]["partitioned"] > 0
        events = [
            json.loads(line)
            for path in project.bundle.glob(f"trials/{trial['number']:04}-*/events.jsonl")
            for line in path.read_text().splitlines()
        ]
        done_at = {event["text"]: event["t_ns"] for event in events if event["kind"] == "action_start"}
        cut, healed = (
            done_at["network: primary-a: partitioned"],
            done_at["network: all links: loss 0 %, not partitioned"],
        )
        assert healed >= cut + 400_000_000
    assert "primary to a: delay 30 ms; back delay 4 ms; round trip 3" in project.whole_report()
    markdown = project.plinth("report", project.bundle, "--markdown").stdout
    assert "| primary to a | delay 0 us; back delay 4 ms | 1 |" in markdown
    plan = json.loads((project.bundle / "plan.json").read_text())
    (start,) = [step for step in plan["steps"] if step["id"] == "server.1-disk.a.start"]
    assert start["argv"][0] == "nsenter"
    assert namespaces(project) == []
    nothing_left()


@pytest.mark.long
def test_a_killed_run_is_resumed_with_a_network_made_again_and_cleaned(project, nothing_left):
    project.write(EXPERIMENT)
    running = project.start()
    running.wait_for("trial 1 of 2", timeout_s=120)
    running.signal(signal.SIGKILL)
    running.end()
    assert len(namespaces(project)) == 2
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete", "complete"]
    assert namespaces(project) == []
    nothing_left()


@pytest.mark.parametrize("moment", ["emulate the network", pytest.param("make standby a", marks=pytest.mark.long)])
def test_a_kill_leaves_nothing_that_clean_does_not_undo(project, nothing_left, moment):
    project.write(EXPERIMENT)
    running = project.start()
    running.wait_for(moment, timeout_s=120)
    running.signal(signal.SIGKILL)
    running.end()
    cleaned = project.plinth("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert namespaces(project) == []
    nothing_left()


def test_a_machine_that_cannot_emulate_one_is_told_in_the_plan(project):
    project.write(EXPERIMENT)

    def attempt() -> None:
        dev_without()  # what is in folders of /dev is not there either
        refused = project.plinth("plan", "x.toml")
        assert refused.returncode == 5, refused.stderr
        assert "this system has no TUN devices" in refused.stderr

    in_private_mounts(attempt)
