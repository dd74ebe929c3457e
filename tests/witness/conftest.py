"""A server whose commits are witnessed."""

from collections.abc import Iterator

import pytest

from native_server import Server
from plinth.server.installations.find import find_installation
from plinth.system.owner import server_owner
from plinth.system.runner import Runner


def new_server() -> Server:
    owner = server_owner()
    # With a system identifier of its own, by which a witness knows a server.
    return Server(find_installation(18, None, owner, Runner()), owner, settings="fsync = on\n", is_copy=False)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that tests may start again."""
    server = new_server()
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def another_server() -> Iterator[Server]:
    server = new_server()
    server.start()
    yield server
    server.remove()
