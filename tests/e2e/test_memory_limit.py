"""server.memory: servers with less memory than the machine has, as a factor, and what is left of their control groups."""

import json
import signal

import pytest

from plinth.system.cgroup import folder_of_memory_groups
from waiting import wait_until

EXPERIMENT = """\
spec = 1
name = "memory"
question = "How much memory does it need?"
storage.disk = { kind = "loop", size = "4GiB" }
dataset = { kind = "tpcb", scale = 10 }
workload = { builtin = "select-only", clients = 2 }

[server]
memory = "96MiB"
settings = { shared_buffers = "16MB" }

[matrix]
server.memory = ["96MiB", "1GiB"]

[measure]
warmup = "0s"
duration = "1s"
cache = "warm"
repeats = 1
aa = false
probe = "0s"
"""


def groups_of(project) -> list[str]:
    """The control groups of servers of this project's run."""
    label = json.loads((project.bundle / "manifest.json").read_text())["run_id"]
    return [path.name for path in folder_of_memory_groups().iterdir() if path.name.startswith(f"plinth-{label}-")]


@pytest.mark.long
def test_the_limit_holds_for_page_cache_and_is_read_back(project, nothing_left):
    """Of 150 MB of rows all are in memory after they were read, with 1 GiB; with 96 MiB less than that. How often they had to be read says
    nothing here: other tests drop the page cache of the whole machine meanwhile."""
    project.write(EXPERIMENT)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "make the control group" in planned.stdout and "of at most 96.0 MiB of memory" in planned.stdout
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    limits = {server["variants"][0]: server["memory_limit_bytes"] for server in report["servers"]}
    assert sorted(limits.values()) == [96 * 2**20, 2**30]
    held = {limits[trial["variant"]]: trial["cache"] for trial in project.trials()}
    assert held[2**30]["resident_bytes"] > 0.95 * held[2**30]["relation_bytes"] > 96 * 2**20, held
    assert not held[96 * 2**20]["reached"] and held[96 * 2**20]["resident_bytes"] < 96 * 2**20, held
    assert groups_of(project) == []
    nothing_left()


def test_a_kill_leaves_no_group_that_clean_does_not_remove(project, nothing_left):
    project.write(EXPERIMENT.replace('duration = "1s"', 'duration = "60s"'))
    run = project.start("--yes")
    run.wait_for("load tpcb")
    wait_until(lambda: groups_of(project), timeout_s=60)
    run.signal(signal.SIGKILL)
    run.end()
    assert groups_of(project) != []
    assert project.plinth("clean").returncode == 0
    assert groups_of(project) == []
    nothing_left()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"96MiB"', '"1MiB"'), "server.memory: got '1MiB'"),
        (("settings = {", 'failover = "patroni"\nsettings = {'), 'not with failover = "patroni"'),
        (('"16MB"', '"256MB"'), "shared_buffers = 256MB: server.memory allows 96.0 MiB"),
    ],
    ids=["too little", "patroni", "shared_buffers"],
)
def test_what_cannot_be_is_said_before_anything_is_made(project, nothing_left, change, said):
    project.write(EXPERIMENT.replace(*change))
    planned = project.plinth("plan", "x.toml")
    assert said in planned.stdout + planned.stderr
    nothing_left()
