"""Debian's PostgreSQL and the wheel's, with every login method, and loads against them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from native_server import PASSWORD, Finished, Load, Server
from plinth import _native
from plinth.model.facts import Installation
from plinth.model.load import LoadResult
from plinth.server.installations.find import find_installation, find_installations
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner


def _installations(owner: Owner) -> dict[str, Installation]:
    runner = Runner()
    debian = [one for one in find_installations(owner, runner).installations if one.origin == "debian"]
    assert debian, "the tests need Debian's package postgresql"
    return {"debian": debian[0], "18": find_installation(18, None, owner, runner)}


@pytest.fixture(scope="session")
def owner() -> Owner:
    return server_owner()


@pytest.fixture(scope="session")
def installations(owner: Owner) -> dict[str, Installation]:
    return _installations(owner)


def _prepared(server: Server) -> Server:
    server.start()
    server.pgbench("-i", "-q", "-s", "1")
    server.execute(
        f"create role scram_user login superuser password '{PASSWORD}';"
        f"set password_encryption = md5; create role md5_user login superuser password '{PASSWORD}';"
        "set password_encryption = 'scram-sha-256';"
        f"create role clear_user login superuser password '{PASSWORD}'"
    )
    return server


@pytest.fixture(scope="session", params=[pytest.param("debian", marks=pytest.mark.long), "18"])
def server(request: pytest.FixtureRequest, installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    """Each of the servers in turn, with pgbench's tables of scale 1, for tests that leave it running."""
    server = Server(installations[request.param], owner)
    yield _prepared(server)
    server.remove()


@pytest.fixture
def own_server(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    """A server that the test may destroy."""
    server = Server(installations["18"], owner)
    yield _prepared(server)
    server.remove()


@pytest.fixture
def load() -> Iterator[Load]:
    """Makes loads of one client and a second; keywords are keys of the configuration, `script` is one script's source.

    Those that still run at the end are stopped.
    """
    made: list[_native.LoadRun] = []

    def make(connection: dict[str, Any], script: str | None = None, **changes: Any) -> _native.LoadRun:
        config: dict[str, Any] = {
            "connection": connection,
            "clients": 1,
            "threads": 1,
            "protocol": "prepared",
            "duration_s": 1.0,
            "seed": 1,
        }
        if script is not None:
            config["scripts"] = [{"name": "script", "source": script}]
        if changes.get("transactions_per_client") is not None:
            config["duration_s"] = None
        made.append(_native.LoadRun(json.dumps(config | changes)))
        return made[-1]

    yield make
    for run in made:
        run.stop()


@pytest.fixture
def finished() -> Finished:
    """Runs a load to its end."""

    def finish(run: _native.LoadRun) -> LoadResult:
        run.start()
        assert run.wait(60.0), "the run did not end"
        result = LoadResult.model_validate_json(run.result())
        for totals in (result.totals, result.measured):
            assert totals.scheduled == totals.done + totals.failed + totals.skipped + totals.open
        return result

    return finish
