"""Running servers to be observed: one of each version for all tests, and new ones for those that break theirs."""

import os
from collections.abc import Callable, Iterator

import pytest

from plinth.model.experiment import ServerSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.server import Cluster, ClusterLayout
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import VERSIONS, all_installations, cluster_folder

_SETTINGS = {
    "shared_buffers": "16MB",
    "fsync": False,
    "autovacuum": False,
    "log_checkpoints": True,
    "track_io_timing": True,
}

StartServer = Callable[..., Cluster]


@pytest.fixture(scope="session")
def start_server() -> Iterator[StartServer]:
    """Makes and starts a cluster by the name of its installation; `settings` go over those that all have."""
    owner, runner = server_owner(), Runner()
    with cluster_folder() as folder:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLINTH_STATE_DIR", str(folder / "state"))
            journal = Journal.create(f"observed-{os.getpid()}", UNDO_HANDLERS)
            found = all_installations(owner, runner)
        storage = folder / "storage"
        make_directory(storage, journal.label, owner)
        clusters: list[Cluster] = []

        def start(version: str = "18", **settings: object) -> Cluster:
            name = f"c{len(clusters)}"
            spec = ServerSpec.model_validate({"data_checksums": False})
            layout = ClusterLayout(
                journal.run_id, name, found[version], owner, spec, storage / name, LogFile(folder / f"{name}.log")
            )
            clusters.append(Cluster(layout, runner, journal))
            clusters[-1].initdb()
            clusters[-1].start(_SETTINGS | settings)  # type: ignore[operator]
            return clusters[-1]

        yield start
        for cluster in clusters:
            cluster.kill()
        assert journal.undo_all(runner) == ()
        journal.close()


@pytest.fixture(scope="session")
def running(start_server: StartServer) -> Callable[[str], Cluster]:
    """The one running server of each version, for tests that leave it as it is."""
    made: dict[str, Cluster] = {}

    def server(version: str) -> Cluster:
        if version not in made:
            made[version] = start_server(version)
        return made[version]

    return server


@pytest.fixture(scope="session")
def breakable(start_server: StartServer) -> Cluster:
    """A server of PostgreSQL 18 for tests that stop or break it; each starts it anew if it has to."""
    return start_server("18")


@pytest.fixture
def server(running: Callable[[str], Cluster]) -> Cluster:
    """A running server of PostgreSQL 18."""
    return running("18")


@pytest.fixture(params=VERSIONS)
def every_server(request: pytest.FixtureRequest, running: Callable[[str], Cluster]) -> Cluster:
    """A running server of each version in turn."""
    return running(request.param)
