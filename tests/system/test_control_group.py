"""Control groups with a memory limit: made, read back, entered, and removed only if they are ours."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.system.control_group import (
    check_memory_groups,
    enter_group,
    group_path,
    limit_of_group,
    make_group,
    memory_hierarchy,
    remove_group,
)

MIB = 2**20
LABEL = f"plinth-test{os.getpid()}"


@pytest.fixture
def group() -> Iterator[Path]:
    path = group_path(f"{LABEL}-1-disk")
    yield path
    remove_group(path, LABEL)


def test_what_is_started_in_it_cannot_use_more(group: Path) -> None:
    make_group(group, 96 * MIB)
    make_group(group, 96 * MIB)  # of a run that is resumed
    program = "import sys; sys.stdin.readline(); held = bytearray(300 * 2**20)"
    with subprocess.Popen(["/usr/bin/env", "python3", "-c", program], stdin=subprocess.PIPE) as process:
        with pytest.raises(RunError, match="is not in its control group"):
            limit_of_group(group, process.pid)
        enter_group(group, process.pid)
        assert limit_of_group(group, process.pid) == 96 * MIB
        process.communicate(b"go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL, "the kernel ends what would exceed it"


def test_without_a_limit_the_same_program_ends_well() -> None:
    program = "held = bytearray(300 * 2**20)"
    assert subprocess.run(["/usr/bin/env", "python3", "-c", program], check=False).returncode == 0


def test_another_run_s_group_is_not_removed(group: Path) -> None:
    make_group(group, 96 * MIB)
    with pytest.raises(Refused, match="does not begin with our label"):
        remove_group(group, "plinth-other")
    assert group.is_dir()
    remove_group(group, LABEL)
    remove_group(group, LABEL)
    assert not group.exists()


MOUNT = "30 24 0:26 / /sys/fs/cgroup{where} rw - {kind} {kind} rw{options}\n"


@pytest.mark.parametrize(
    ("mounts", "given", "limit"),
    [
        (MOUNT.format(where="/memory", kind="cgroup", options=",memory"), None, "memory.limit_in_bytes"),
        (MOUNT.format(where="", kind="cgroup2", options=""), "cpu io memory pids", "memory.max"),
        (MOUNT.format(where="", kind="cgroup2", options=""), "cpu pids", None),
        (MOUNT.format(where="", kind="cgroup2", options=""), None, None),
        (MOUNT.format(where="/cpu", kind="cgroup", options=",cpu"), None, None),
    ],
    ids=["version 1", "version 2", "without the controller", "unreadable", "another controller"],
)
def test_either_version_is_found(tmp_path: Path, mounts: str, given: str | None, limit: str | None) -> None:
    table = tmp_path / "proc/self/mountinfo"
    table.parent.mkdir(parents=True)
    table.write_text(mounts)
    folder = tmp_path / "sys/fs/cgroup"
    folder.mkdir(parents=True)
    if given is not None:
        (folder / "cgroup.subtree_control").write_text(f"{given}\n")
    found = memory_hierarchy(tmp_path)
    assert (None if found is None else found.limit) == limit


def test_a_machine_without_them_is_told_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.system.control_group.memory_hierarchy", lambda: None)
    with pytest.raises(MissingCapability, match="control groups with the memory controller") as caught:
        check_memory_groups()
    assert "leave server.memory out" in str(caught.value.hint)
