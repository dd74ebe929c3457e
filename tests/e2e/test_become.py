"""A host where an ordinary user logs in, and becomes root by sudo where `become` asks for it. All in a child with mounts of its own."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disks import command, in_private_mounts
from hosts_here import HostHere, host_here
from own_sshd import own_sshd

pytestmark = pytest.mark.long
USER, UID = "plinthtest", 61_234
TEXT = """\
spec = 1
name = "become"
question = "Is a file system made there?"
[storage.far]
host = "db1"
kind = "loop"
filesystem = "ext4"
size = "600MiB"
[server]
storage = "far"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
[measure]
warmup = "100ms"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
"""


def _with_user(folder: Path, sudoers: str) -> None:
    """Have this mount namespace know an ordinary user, who may do what `sudoers` says."""
    for name, line in (("passwd", f"{USER}:x:{UID}:{UID}::/:/bin/sh"), ("shadow", f"{USER}:*:20000::::::")):
        original, copy = Path("/etc", name), folder / name
        copy.write_text(f"{original.read_text().rstrip()}\n{line}\n")
        copy.chmod(original.stat().st_mode & 0o777)
        command("mount", "--bind", copy, original)
    command("mount", "-t", "tmpfs", "-o", "mode=755", "sudoers", "/etc/sudoers.d")
    rules = Path("/etc/sudoers.d/plinth-test")
    rules.write_text(sudoers)
    rules.chmod(0o440)


@contextmanager
def _host(folder: Path, sudoers: str) -> Iterator[HostHere]:
    _with_user(folder, sudoers)
    with own_sshd(folder / "own", ["db1"], user=USER) as sshd:
        host = host_here("db1", sshd, folder)
        os.environ["PATH"] = host.environment["PATH"]
        yield host


def _run(project, sudoers: str, become: str) -> "subprocess.CompletedProcess[str]":
    def attempt() -> "subprocess.CompletedProcess[str]":
        with _host(project.folder, sudoers) as host:
            project.write(f"{TEXT}{host.toml}{become}")
            done = project.run()
            assert host.agents() == [] and host.left() == []
            return done

    return in_private_mounts(attempt)


ALLOWED = f"{USER} ALL=(root) NOPASSWD: ALL\n"
BECOME = 'become = "sudo"\n'


def test_with_sudo_the_agent_is_root(project, nothing_left) -> None:
    done = _run(project, ALLOWED, BECOME)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete" and trial["measured"]["done"] > 0
    storage = json.loads((project.bundle / "env" / "storage-far.json").read_text())
    assert storage["filesystem"] == "ext4"
    nothing_left()


def test_where_sudo_asks_for_a_password_the_host_is_named(project, nothing_left: Callable[[], None]) -> None:
    done = _run(project, "", BECOME)
    said = " ".join(done.stderr.split())
    assert done.returncode == 1 and "no agent could be started on host db1: sudo: a password is required" in said, said
    assert not project.bundle.exists()
    nothing_left()
