"""A fleet on Ray: three machines in network namespaces of their own, each with a raylet, and what becomes of a load that loses one."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleets import running_agents
from plinth.model.connection import Connection
from ray_machines import CLIENT_PORT, Machine, start_raylet
from waiting import wait_until

pytestmark = pytest.mark.long
PLINTH = str(Path(sys.executable).with_name("plinth"))
SECRET = "planted-Zie7ohGh"
SLEEP = "SELECT pg_sleep(0.01);\n"


@pytest.fixture
def head(ray_cluster: list[Machine]) -> Machine:
    """The machine of the coordinator."""
    return ray_cluster[0]


@pytest.fixture
def environment(connection: Connection, tmp_path: Path) -> dict[str, str]:
    """How bench finds the server: by a socket, which network namespaces share. It takes any password."""
    pgpass = tmp_path / "pgpass"
    pgpass.write_text(f"*:*:*:*:{SECRET}\n")
    pgpass.chmod(0o600)
    return {
        "PGHOST": connection.host,
        "PGPORT": str(connection.port),
        "PGUSER": connection.user,
        "PGDATABASE": connection.database,
        "PGPASSFILE": str(pgpass),
    }


@pytest.fixture
def sleeping(tmp_path: Path) -> str:
    script = tmp_path / "sleep.sql"
    script.write_text(SLEEP)
    return str(script)


def _bench(
    head: Machine, environment: dict[str, str], *words: str, fleet: str = "3@auto"
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        head.argv(PLINTH, "bench", "-n", f"--fleet={fleet}", *words),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _start(head: Machine, environment: dict[str, str], script: str) -> "subprocess.Popen[str]":
    """A load of ten minutes, which has begun."""
    child = head.start(
        *(PLINTH, "bench", "-n", "--fleet=3@auto", "-f", script, "-c", "6", "-T", "600", "-P", "1"),
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stderr is not None
    said: list[str] = []
    while not (said and said[-1].startswith("progress:")):
        said.append(child.stderr.readline())
        assert child.poll() is None, "".join(said) + child.stderr.read()
    return child


def _said_at_its_end(child: "subprocess.Popen[str]") -> str:
    """What bench says once its load has failed; it is ended where it goes on, so that nothing is left for the next test."""
    try:
        return child.communicate(timeout=90)[1]
    finally:
        if child.returncode is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def _agent_on(machine: Machine) -> int:
    (agent,) = running_agents() & machine.processes("python")
    return agent


def test_each_machine_has_one_agent_and_does_its_part(
    head: Machine, environment: dict[str, str], tmp_path: Path
) -> None:
    script, result = tmp_path / "one.sql", tmp_path / "all.json"
    script.write_text("SELECT 1;\n")
    done = _bench(head, environment, "-f", str(script), "-c", "6", "-t", "20", f"--json={result}")
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 120/120\n" in done.stdout
    fleet = json.loads(result.read_text())["fleet"]
    # The coordinator's machine is the last.
    assert [one["name"] for one in fleet["machines"]] == ["machine2", "machine3", "machine1"]
    assert [one["measured"]["done"] for one in fleet["machines"]] == [40] * 3
    assert all(one["clock_error_ns"] < 2_500_000 for one in fleet["machines"])


def test_a_cluster_is_reached_by_its_client_server(head: Machine, environment: dict[str, str], sleeping: str) -> None:
    address = f"2@ray://{head.address}:{CLIENT_PORT}"
    done = _bench(head, environment, "-f", sleeping, "-c", "2", "-t", "5", fleet=address)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^machine (\S+):", done.stdout, re.MULTILINE) == ["machine2", "machine3"]


def test_agents_are_as_urgent_as_any_and_secrets_are_in_memory_only(
    head: Machine, ray_cluster: list[Machine], environment: dict[str, str], sleeping: str
) -> None:
    before = running_agents()
    child = _start(head, environment, sleeping)
    agents = running_agents() - before
    niceness = {os.getpriority(os.PRIO_PROCESS, agent) for agent in agents}
    seen = b"".join(_text(file) for name in ("cmdline", "environ") for file in Path("/proc").glob(f"[0-9]*/{name}"))
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert len(agents) == 3 and niceness == {os.nice(0)}
    assert "the above results are incomplete" in err and len(re.findall(r"^machine ", out, re.MULTILINE)) == 3
    logs = b"".join(_text(file) for one in ray_cluster for file in one.ray_files.rglob("*"))
    assert b"RayNode" in logs, "Ray logs are among what was looked at"
    assert b"plinth\0ray-driver" in seen
    assert SECRET.encode() not in seen + logs


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError:  # it has ended, or is no file that can be read
        return b""


def test_an_agent_that_is_killed_ends_the_load_with_its_name(
    head: Machine, ray_cluster: list[Machine], environment: dict[str, str], sleeping: str
) -> None:
    child = _start(head, environment, sleeping)
    os.kill(_agent_on(ray_cluster[2]), signal.SIGKILL)
    err = _said_at_its_end(child)
    assert child.returncode == 2
    assert "error: the agent on machine machine3 is lost: the connection has ended" in err
    assert "it was killed by signal 9" in err


def test_agents_end_with_a_coordinator_that_is_killed(
    head: Machine, environment: dict[str, str], sleeping: str
) -> None:
    before = running_agents()
    child = _start(head, environment, sleeping)
    assert len(running_agents() - before) == 3
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    wait_until(lambda: running_agents() <= before)
    wait_until(lambda: not _drivers(), timeout_s=30)


def _drivers() -> list[bytes]:
    lines = [_text(process / "cmdline") for process in Path("/proc").glob("[0-9]*")]
    return [line for line in lines if b"\0ray-driver\0" in line]


def test_more_machines_than_there_are(head: Machine, environment: dict[str, str], sleeping: str) -> None:
    done = _bench(head, environment, "-f", sleeping, "-c", "4", fleet="4@auto")
    assert done.returncode == 1
    assert "error: the Ray cluster has 3 machines, and 4 are to drive the load" in done.stderr
    assert "machine2: 10.120.0.2, 1 CPUs" in done.stderr and "hint: `ray start --address=HOST:6379`" in done.stderr


def test_other_versions_are_refused_with_the_list(
    head: Machine, environment: dict[str, str], sleeping: str, tmp_path: Path
) -> None:
    """The coordinator is another version of Plinth than what the machines have."""
    (tmp_path / "sitecustomize.py").write_text("import plinth\nplinth.__version__ = '99.0'\n")
    done = _bench(head, environment | {"PYTHONPATH": str(tmp_path)}, "-f", sleeping, "-c", "3")
    assert done.returncode == 1
    assert "error: the machines of the Ray cluster have other versions than this one" in done.stderr
    assert "this machine: plinth 99.0, " in done.stderr
    assert len(re.findall(r"^machine\d: plinth ", done.stderr, re.MULTILINE)) == 3


def test_no_cluster_at_the_address(head: Machine, environment: dict[str, str], sleeping: str) -> None:
    done = _bench(head, environment, "-f", sleeping, fleet="1@ray://127.0.0.1:9")
    assert done.returncode == 1
    assert "error: no Ray cluster answers at 'ray://127.0.0.1:9'" in done.stderr
    assert "hint: `ray start --head` on one machine" in done.stderr


def test_an_agent_that_is_cut_off_ends_within_its_lease(
    cluster_to_harm: list[Machine], environment: dict[str, str], sleeping: str
) -> None:
    """It still reaches the server, by its socket."""
    before = running_agents()
    head, lost, _ = cluster_to_harm
    child = _start(head, environment, sleeping)
    lost.ip("link", "set", "net", "down")
    err = _said_at_its_end(child)
    assert child.returncode == 2
    assert "error: the agent on machine machine2 is lost: nothing came in time" in err
    wait_until(lambda: running_agents() <= before)


def test_a_raylet_that_is_killed_takes_its_agent_along(
    cluster_to_harm: list[Machine], environment: dict[str, str], sleeping: str
) -> None:
    before = running_agents()
    head, lost, _ = cluster_to_harm
    child = _start(head, environment, sleeping)
    for raylet in lost.processes("raylet"):
        os.kill(raylet, signal.SIGKILL)
    err = _said_at_its_end(child)
    assert child.returncode == 2
    assert "error: the agent on machine machine2 is lost: the connection has ended" in err
    wait_until(lambda: running_agents() <= before)
    wait_until(lambda: not lost.processes("raylet"))
    start_raylet(lost, f"--address={head.address}:6379")
    # For half a minute Ray lists both the lost one and its successor.
    again = _bench(head, environment, "-f", sleeping, "-c", "3", "-t", "1")
    assert again.returncode == 0 and "machine machine2: " in again.stdout, again.stderr


def test_a_head_that_is_killed_leaves_nothing(
    cluster_to_harm: list[Machine], environment: dict[str, str], sleeping: str
) -> None:
    before = running_agents()
    head = cluster_to_harm[0]
    child = _start(head, environment, sleeping)
    for process in head.processes("gcs_server") | head.processes("raylet"):
        os.kill(process, signal.SIGKILL)
    err = _said_at_its_end(child)
    assert child.returncode == 2
    assert "error: the agent on machine machine1 is lost" in err
    wait_until(lambda: running_agents() <= before)
