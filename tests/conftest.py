"""Fixtures for tests that change the machine: a state directory for each test, and child processes to be killed."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from children import ChildResult, run_in_child
from plinth.model.errors import PlinthError
from plinth.system.mounts import mounts_within
from public_folder import PUBLIC
from surroundings import pin_surroundings

pin_surroundings()  # before anything reads the environment, or is started

# How fast a machine is decides no test.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


WITH_AGENTS = ("tests/fleet/", "tests/e2e/test_fleet_runs.py", "tests/replay/test_replay.py")
"""What starts agents, or takes all agents of this machine for those that it has started."""


class _ByFile(LoadScopeScheduling):
    """Gives each process all tests of a file, and one process all that have agents."""

    def _split_scope(self, nodeid: str) -> str:
        return "agents" if nodeid.startswith(WITH_AGENTS) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Deals the tests to the processes of a lane (scripts/tests.sh)."""
    return _ByFile(config, log)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Adds what is not run to the file that scripts/tests.sh names, to be listed at the end."""
    if listed := os.environ.get("PLINTH_TESTS_NOT_RUN"):
        with Path(listed).open("a") as file:
            file.writelines(f"{item.nodeid.splitlines()[0]}\n" for item in items)


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: the collector of cycles need not visit it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """What fails by an error of Plinth's shows its details too, such as what a command wrote to stderr."""
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, PlinthError):
        for line in error.details:
            error.add_note(line)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory that every user may enter, unlike tmp_path. A mount left in it fails the test."""
    with scratch_directory() as path:
        yield path


@pytest.fixture(scope="module")
def module_scratch() -> Iterator[Path]:
    """As `scratch`, for what all tests of a module share."""
    with scratch_directory() as path:
        yield path


@contextmanager
def scratch_directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="plinth-test-", dir=PUBLIC))
    path.chmod(0o755)
    yield path
    left = [mount.point for mount in mounts_within(path)]
    assert not left, f"the test left mounts behind: {left}"
    shutil.rmtree(path)


@pytest.fixture
def state_dir(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plinth's state directory, not yet made."""
    path = scratch / "state"
    monkeypatch.setenv("PLINTH_STATE_DIR", str(path))
    return path


@pytest.fixture
def in_child() -> Callable[..., ChildResult]:
    """`run_in_child`."""
    return run_in_child
