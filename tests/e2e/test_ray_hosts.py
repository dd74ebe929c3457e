"""A server on a machine of a Ray cluster, whose agent Ray starts: each machine has a network, processes and a state directory to itself."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_machines import Machine, machines, start_ray
from waiting import wait_until

pytestmark = pytest.mark.long
PLINTH = str(Path(sys.executable).with_name("plinth"))
STATE = Path("/var/lib/plinth")
TEXT = """\
spec = 1
name = "ray"
question = "How fast is it on a machine of the cluster?"
[storage.far]
host = "db1"
kind = "directory"
[server]
storage = "far"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
[measure]
warmup = "200ms"
duration = "4s"
repeats = 1
aa = false
probe = "10ms"
[host.db1]
address = "auto"
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Machine]]:
    STATE.mkdir(parents=True, exist_ok=True)
    with machines(2) as made:
        for machine in made:
            machine.run("mount", "-t", "proc", "proc", "/proc")
            machine.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(STATE))
        start_ray(made)
        yield made


def _start(cluster: list[Machine], folder: Path, node: str, more: str = "") -> "subprocess.Popen[str]":
    (folder / "x.toml").write_text(f'{TEXT}node = "{node}"\n{more}')
    words = (PLINTH, "run", str(folder / "x.toml"), "--bundle", str(folder / "bundle"), "--yes")
    return cluster[0].start(
        *words, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def _left(machine: Machine) -> list[str]:
    state = Path(f"/proc/{machine.pid}/root{STATE}")
    return sorted(str(path) for folder in ("work", "journal", "hosts") for path in (state / folder).glob("*"))


def test_a_server_is_made_and_measured_on_a_machine_of_the_cluster(cluster, scratch):
    done = _start(cluster, scratch, cluster[1].address)
    said, _ = done.communicate(timeout=180)
    assert done.returncode in (0, 3), said
    (trial,) = [json.loads(path.read_text()) for path in (scratch / "bundle").glob("trials/*/trial.json")]
    assert trial["status"] == "complete" and trial["measured"]["done"] > 0
    plan = json.loads((scratch / "bundle" / "plan.json").read_text())
    assert list(plan["hosts"]) == ["db1"]
    assert _left(cluster[1]) == [] and cluster[1].processes("postgres") == set()


def test_a_fleet_in_the_same_cluster_is_not_on_the_host(cluster, scratch):
    """It begins with machines other than the head, of which the host is the only one."""
    done = _start(cluster, scratch, cluster[1].address, more='[fleet]\nexecutor = "ray"\nmachines = 1\n')
    said, _ = done.communicate(timeout=180)
    assert done.returncode in (0, 3), said
    (trial,) = [json.loads(path.read_text()) for path in (scratch / "bundle").glob("trials/*/trial.json")]
    assert trial["status"] == "complete", trial["failure"]
    assert [one["name"] for one in trial["fleet"]["machines"]] == [cluster[0].name]


def test_a_fleet_that_needs_the_host_too_is_refused(cluster, scratch):
    done = _start(cluster, scratch, cluster[1].address, more='[fleet]\nexecutor = "ray"\nmachines = 2\n')
    said, _ = done.communicate(timeout=120)
    assert done.returncode == 1
    assert "the Ray cluster has 1 machine for a fleet, next to 1 host of the run, and 2 are" in " ".join(said.split())


def test_a_check_of_the_fleet_takes_the_same_machines(cluster, scratch):
    more = '[fleet]\nexecutor = "ray"\nmachines = 1\n'
    (scratch / "x.toml").write_text(f'{TEXT}node = "{cluster[1].address}"\n{more}')
    found = cluster[0].run(PLINTH, "fleet", "check", str(scratch / "x.toml"), "--json")
    assert [one["name"] for one in json.loads(found)] == [cluster[0].name]


def test_a_machine_that_the_cluster_does_not_have_is_named(cluster, scratch):
    done = _start(cluster, scratch, "10.120.0.77")
    said, _ = done.communicate(timeout=120)
    assert done.returncode == 1 and "the Ray cluster has no machine 10.120.0.77" in " ".join(said.split())
    assert cluster[1].address in said, "which it has"


@pytest.mark.parametrize("killed", ["coordinator", "agent"])
def test_nothing_is_left_after_a_kill(cluster, scratch, killed):
    running = _start(cluster, scratch, cluster[1].address)
    wait_until(lambda: cluster[1].processes("postgres"), timeout_s=120)
    if killed == "coordinator":
        (coordinator,) = (pid for pid in cluster[0].processes("python") if _is_run(pid, scratch))
        os.kill(coordinator, signal.SIGKILL)
        running.communicate(timeout=60)
    else:
        for pid in cluster[1].processes("python"):
            if b"host-agent" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        said, _ = running.communicate(timeout=120)
        assert running.returncode == 1 and "host db1 is lost" in " ".join(said.split()), said
    wait_until(lambda: not _left(cluster[1]) and not cluster[1].processes("postgres"), timeout_s=60)


def _is_run(pid: int, folder: Path) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"run" in words and any(bytes(folder) in word for word in words)
