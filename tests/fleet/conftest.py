"""A server, and fleets of three machines: processes of this machine, names of it that an sshd of our own answers to, and namespaces
that a Ray cluster is of."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleets import HOSTS, MakeConfig, MakeFleet, running_agents
from own_sshd import Sshd, own_sshd
from plinth.fleet.executors import executor_of
from plinth.fleet.load import FleetLoad
from plinth.load import LoadConfig, LoadScript
from plinth.model.connection import Connection
from plinth.model.fleet import FleetSpec
from plinth.server.server import LocalServer
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from ray_machines import CLIENT_PORT, Machine, in_network, machines, start_ray
from servers import new_servers
from waiting import wait_until


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Agents that run already, such as those of a simultaneous test run, are not ours."""
    before = running_agents()
    yield
    wait_until(lambda: running_agents() <= before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalServer]:
    with new_servers({"fsync": False}) as start:
        yield start()


@pytest.fixture(scope="session")
def connection(cluster: LocalServer) -> Connection:
    return cluster.connection


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with own_sshd(tmp_path_factory.mktemp("sshd") / "own", HOSTS) as running:
        yield running


@pytest.fixture(autouse=True)
def short_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents of this machine are told in time half a second before the start."""
    monkeypatch.setattr("plinth.fleet.load.LEAD_NS", 500_000_000)


@pytest.fixture(scope="session")
def ray_cluster(cluster: LocalServer) -> Iterator[list[Machine]]:
    """Three machines, each with a raylet. `cluster` is there before, so that they see its socket."""
    with machines() as made:
        start_ray(made)
        yield made


@pytest.fixture
def cluster_to_harm(cluster: LocalServer) -> Iterator[list[Machine]]:
    """A Ray cluster of one test, which ends parts of it."""
    with machines() as made:
        start_ray(made)
        yield made


@pytest.fixture
def ray_address(ray_cluster: list[Machine]) -> Iterator[str]:
    """The cluster's, as this thread and what it starts reach it meanwhile: on the network of the first machine."""
    with in_network(ray_cluster[0]):
        yield f"ray://{ray_cluster[0].address}:{CLIENT_PORT}"


@pytest.fixture(params=["local", "ssh", pytest.param("ray", marks=pytest.mark.long)])
def spec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FleetSpec:
    """A fleet of three machines, by each executor; of hosts with the user's own configuration of ssh."""
    match request.param:
        case "local":
            return FleetSpec(executor="local", machines=3)
        case "ssh":
            sshd: Sshd = request.getfixturevalue("sshd")
            command = str(Path(sys.executable).with_name("plinth"))
            monkeypatch.setenv("PATH", f"{sshd.programs}:{os.environ['PATH']}")
            return FleetSpec(executor="ssh", hosts=HOSTS, command=command)
        case _:
            return FleetSpec(executor="ray", ray_address=request.getfixturevalue("ray_address"), machines=3)


@pytest.fixture
def fleet(tmp_path: Path) -> MakeFleet:
    """Makes a load by the fleet of a specification."""

    def make(spec: FleetSpec, config: LoadConfig, ssh_config: Path | None = None) -> FleetLoad:
        executor = executor_of(spec, Runner(), LogFile(tmp_path / "agents.log"), ssh_config)
        return FleetLoad(config, executor)

    return make


@pytest.fixture
def config(connection: Connection) -> MakeConfig:
    """Makes configurations of six clients, a thread on each machine, and a second; keywords are its keys."""

    def make(source: str = "SELECT 1;", **changes: object) -> LoadConfig:
        given = {
            "connection": connection,
            "scripts": [LoadScript(name="script", source=source)],
            "clients": 6,
            "threads": 1,
            "duration_s": 1.0,
            "seed": 7,
        }
        return LoadConfig.model_validate(given | changes)

    return make
