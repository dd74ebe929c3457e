"""Control groups with a memory limit: made, read back, entered, and removed only if they are ours."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.system.cgroup import MemoryGroup, folder_of_memory_groups, memory_group, remove_group

MIB = 2**20
LABEL = f"plinth-test{os.getpid()}"


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    made = memory_group(f"{LABEL}-1-disk", 96 * MIB)
    yield made
    remove_group(made.path, LABEL)


def test_what_is_started_in_it_cannot_use_more(group: MemoryGroup) -> None:
    group.make()
    group.make()  # of a run that is resumed
    program = "import sys; sys.stdin.readline(); held = bytearray(300 * 2**20)"
    with subprocess.Popen(["/usr/bin/env", "python3", "-c", program], stdin=subprocess.PIPE) as process:
        with pytest.raises(RunError, match="is not in its control group"):
            group.limit_of(process.pid)
        group.enter(process.pid)
        assert group.limit_of(process.pid) == 96 * MIB
        process.communicate(b"go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL, "the kernel ends what would exceed it"


def test_without_a_limit_the_same_program_ends_well() -> None:
    program = "held = bytearray(300 * 2**20)"
    assert subprocess.run(["/usr/bin/env", "python3", "-c", program], check=False).returncode == 0


def test_another_run_s_group_is_not_removed(group: MemoryGroup) -> None:
    group.make()
    with pytest.raises(Refused, match="does not begin with our label"):
        remove_group(group.path, "plinth-other")
    assert group.path.is_dir()
    remove_group(group.path, LABEL)
    remove_group(group.path, LABEL)
    assert not group.path.exists()


MOUNT = "30 24 0:26 / /sys/fs/cgroup{where} rw - {kind} {kind} rw{options}\n"


@pytest.mark.parametrize(
    ("mounts", "given", "where"),
    [
        (MOUNT.format(where="/memory", kind="cgroup", options=",memory"), None, "sys/fs/cgroup/memory"),
        (MOUNT.format(where="", kind="cgroup2", options=""), "cpu io memory pids", "sys/fs/cgroup"),
        (MOUNT.format(where="", kind="cgroup2", options=""), "cpu pids", None),
        (MOUNT.format(where="", kind="cgroup2", options=""), None, None),
        (MOUNT.format(where="/cpu", kind="cgroup", options=",cpu"), None, None),
    ],
    ids=["version 1", "version 2", "without the controller", "unreadable", "another controller"],
)
def test_either_version_is_found(tmp_path: Path, mounts: str, given: str | None, where: str | None) -> None:
    table = tmp_path / "proc/self/mountinfo"
    table.parent.mkdir(parents=True)
    table.write_text(mounts)
    folder = tmp_path / "sys/fs/cgroup"
    (folder / "memory").mkdir(parents=True)
    if given is not None:
        (folder / "cgroup.subtree_control").write_text(f"{given}\n")
    if where is not None:
        assert folder_of_memory_groups(tmp_path) == tmp_path / where
        return
    with pytest.raises(MissingCapability, match="control groups with the memory controller") as caught:
        folder_of_memory_groups(tmp_path)
    assert "leave server.memory out" in str(caught.value.hint)
