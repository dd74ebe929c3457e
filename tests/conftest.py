"""Fixtures for whatever touches the machine: a state directory of the test's own, and children to be killed."""

import os
import pickle
import pwd
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from plinth.system.mounts import mounts_within


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory that every user may enter, unlike tmp_path. A mount left in it fails the test."""
    path = Path(tempfile.mkdtemp(prefix="plinth-test-", dir="/tmp"))
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


class ChildResult(NamedTuple):
    """How a child ended: killed by `signal`, or with what its function returned."""

    signal: int | None
    value: Any


def run_in_child(function: Callable[[], Any], user: str | None = None) -> ChildResult:
    """Run `function` in a forked child, for good as `user` when one is given. What it raises fails the test."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(_outcome(function, user), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return ChildResult(os.WTERMSIG(status), None)
    assert answer, "the child gave no answer"
    value, failure = pickle.loads(answer)
    assert failure is None, f"in the child:\n{failure}"
    return ChildResult(None, value)


def _outcome(function: Callable[[], Any], user: str | None) -> tuple[Any, str | None]:
    try:
        if user is not None:
            found = pwd.getpwnam(user)
            os.setgroups([])
            os.setresgid(found.pw_gid, found.pw_gid, found.pw_gid)
            os.setresuid(found.pw_uid, found.pw_uid, found.pw_uid)
        return function(), None
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must be told
        return None, traceback.format_exc()


@pytest.fixture
def in_child() -> Callable[..., ChildResult]:
    """`run_in_child`."""
    return run_in_child
