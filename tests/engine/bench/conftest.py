"""pgbench and `plinth bench` on one server."""

import pytest

from both import Both
from native_server import Server


@pytest.fixture
def both(server: Server) -> Both:
    place = {"PGHOST": str(server.folder), "PGPORT": str(server.port)}
    return Both(place | {"PGUSER": "postgres", "PGDATABASE": "postgres"})
