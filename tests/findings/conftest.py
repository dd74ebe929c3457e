"""A directory for the one run that all tests of a file, or of a class, look at."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plinth.system.mounts import mounts_within
from public_folder import PUBLIC
from shape import plinth


@pytest.fixture(scope="module")
def module_scratch() -> Iterator[Path]:
    """As scratch in tests/conftest.py, for a module."""
    with _scratch() as path:
        yield path


@pytest.fixture(scope="class")
def class_scratch() -> Iterator[Path]:
    """As scratch in tests/conftest.py, for a class."""
    with _scratch() as path:
        yield path


@contextmanager
def _scratch() -> Iterator[Path]:
    """A run that was killed, by the timeout, is cleaned up, and fails."""
    path = Path(tempfile.mkdtemp(prefix="plinth-test-", dir=PUBLIC))
    path.chmod(0o755)
    yield path
    left = [mount.point for mount in mounts_within(path)]
    if left:
        for scratch in [one for one in (path, *path.iterdir()) if (one / "state").is_dir()]:
            plinth(scratch, "clean")
    assert not left, f"the run left mounts behind: {left}"
    shutil.rmtree(path)
