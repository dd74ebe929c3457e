"""Managed clusters for datasets that are loaded into them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.model.facts import Installation
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner
from servers import all_installations, server_folder


@pytest.fixture(scope="session")
def owner() -> Owner:
    return server_owner()


@pytest.fixture(scope="session")
def installations(owner: Owner) -> dict[str, Installation]:
    return all_installations(owner, Runner())


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One of ours that the server's user can enter; journals of the test are in it."""
    with server_folder() as path:
        monkeypatch.setenv("PLINTH_STATE_DIR", str(path / "state"))
        yield path
