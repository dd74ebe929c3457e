"""Running servers to be observed: one of each version for all tests, and new ones for those that break theirs."""

from collections.abc import Callable, Iterator

import pytest

from plinth.model.base import SettingValue
from plinth.server.server import LocalServer
from servers import EVERY_VERSION, StartServer, new_servers

_SETTINGS: dict[str, SettingValue] = {
    "shared_buffers": "16MB",
    "fsync": False,
    "autovacuum": False,
    "log_checkpoints": True,
    "track_io_timing": True,
}


@pytest.fixture(scope="session")
def start_server() -> Iterator[StartServer]:
    """Makes and starts a cluster by the name of its installation; `settings` go over those that all have."""
    with new_servers(_SETTINGS) as start:
        yield start


@pytest.fixture(scope="session")
def running(start_server: StartServer) -> Callable[[str], LocalServer]:
    """The one running server of each version, for tests that leave it as it is."""
    made: dict[str, LocalServer] = {}

    def server(version: str) -> LocalServer:
        if version not in made:
            made[version] = start_server(version)
        return made[version]

    return server


@pytest.fixture(scope="session")
def breakable(start_server: StartServer) -> LocalServer:
    """A server of PostgreSQL 18 for tests that stop or break it; each starts it again if it has to."""
    return start_server("18")


@pytest.fixture
def server(running: Callable[[str], LocalServer]) -> LocalServer:
    """A running server of PostgreSQL 18."""
    return running("18")


@pytest.fixture(params=EVERY_VERSION)
def every_server(request: pytest.FixtureRequest, running: Callable[[str], LocalServer]) -> LocalServer:
    """A running server of each version in turn."""
    return running(request.param)
