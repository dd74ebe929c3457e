"""kill -9 in the window in which something is started: between fork, exec, and the word that it may become its program.

A process of ours (here: Plinth) starts one thing of each kind and is killed from outside, at instants spread over the whole
window. At any instant, `clean` right afterwards succeeds, nothing of it runs any more, and nothing is left.
"""

import mmap
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plinth.model.disk import DiskConfig
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation
from plinth.server.processes import serving
from plinth.storage.devices.disk_daemon import daemons, serve_command
from plinth.system.clean import clean
from plinth.system.directory import label_directory, label_of
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.mounts import mounts_within
from plinth.system.owner import current_user, server_owner
from plinth.system.process import arguments
from plinth.system.runner import Gate, Runner
from public_folder import PUBLIC

RUN = "killed"
LABEL = label_of(RUN)
FEW, MANY = 25, 2000
BEFORE, STARTING, WAITING, STARTED = range(4)
STAGES = ("before the start", "between fork and the launcher", "waiting for the word", "after the word")

Prepare = Callable[[Path], tuple[Step, Callable[[], object]]]
"""Readies a folder; gives the step for the journal and what starts the process."""


def emulated_disk(folder: Path) -> tuple[Step, Callable[[], object]]:
    """The daemon of an emulated disk, found by its arguments."""
    mount = folder / "disk"
    mount.mkdir()
    config = DiskConfig(profile="ideal", size_bytes=2**24, backing=str(folder / "backing"), mount=str(mount),
                        control=str(folder / "control"), label=LABEL, seed=1)  # fmt: skip
    argv = serve_command(config)
    step = Step(id="serve", title="serve", argv=argv, undo=Undo(kind="stop_process", path=str(mount), label=LABEL))
    return step, lambda: Runner().spawn(argv, log=LogFile(folder / "log"))


def zfs_fuse(folder: Path) -> tuple[Step, Callable[[], object]]:
    """A daemon that is started through another program, with the same pid."""
    from plinth.storage.devices.zfs import ZfsFuse

    fuse = ZfsFuse(folder)
    fuse.shared.mkdir()
    argv = fuse.command([])
    undo = Undo(kind="stop_zfs_fuse", path=str(fuse.shared), label=LABEL)
    return Step(id="zfs", title="zfs", argv=argv, undo=undo), lambda: Runner().spawn(argv, log=LogFile(folder / "log"))


def postmaster(folder: Path) -> tuple[Step, Callable[[], object]]:
    """A server, found by program and working directory. Its files are those of one cluster, by hard links."""
    owner = server_owner()
    data = folder / "data"
    shutil.copytree(_MADE["cluster"], data, copy_function=os.link)
    for path in (data, *filter(Path.is_dir, data.rglob("*"))):
        os.chown(path, owner.uid, owner.gid)
    argv = (f"{_bindir()}/postgres", "-D", str(data), "-c", "listen_addresses=", "-c", f"unix_socket_directories={data}",
            "-c", "shared_buffers=1MB", "-c", "fsync=off")  # fmt: skip
    step = Step(id="start", title="start", argv=argv, undo=Undo(kind="stop_server", path=str(data), label=LABEL))
    return step, lambda: Runner().spawn(argv, owner=owner, cwd=data, log=LogFile(folder / "log"))


def command(folder: Path) -> tuple[Step, Callable[[], object]]:
    """A command that is waited for, and holds a mount as long as it lives."""
    mount = folder / "mount"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", LABEL, mount], check=True)
    step = Step(id="use", title="use", undo=Undo(kind="unmount", path=str(mount), label=LABEL))
    return step, lambda: Runner().run(["sleep", "1000"], cwd=mount)


_MADE: dict[str, str] = {}


def _bindir() -> str:
    if "bindir" not in _MADE:
        _MADE["bindir"] = find_installation(18, None, server_owner(), Runner()).bindir
    return _MADE["bindir"]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    folder = Path(tempfile.mkdtemp(prefix="plinth-test-", dir=PUBLIC))
    os.chown(folder, server_owner().uid, server_owner().gid)
    argv = [f"{_bindir()}/initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "postgres", "--no-sync"]
    Runner().run(argv, owner=server_owner())
    _MADE["cluster"] = str(folder / "data")
    yield
    shutil.rmtree(folder)


def killed_while_starting(folder: Path, prepare: Prepare, delay_s: float) -> int:
    """Fork a Plinth that starts it, kill that after `delay_s`; returns how far it had come."""
    stage = mmap.mmap(-1, 1)
    pid = os.fork()
    if pid == 0:
        try:
            journal = Journal.create(RUN, UNDO_HANDLERS)
            folder.mkdir(mode=0o755)
            undo = Undo(kind="remove_directory", path=str(folder), label=LABEL)
            journal.record(Step(id="folder", title="folder", undo=undo))
            label_directory(folder, LABEL, current_user(), 0o755)
            step, start = prepare(folder)
            journal.record(step)
            open_gate = Gate.open

            def opening(self: Gate) -> None:
                stage[0] = WAITING
                open_gate(self)
                stage[0] = STARTED

            Gate.open = opening
            stage[0] = STARTING
            start()
            time.sleep(1000)  # until the signal
        finally:
            os._exit(1)
    while stage[0] == BEFORE:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "it could not be prepared"
    time.sleep(delay_s)  # the instant of the kill: what is tried here
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return stage[0]


def left_of(folder: Path) -> list[str]:
    """Processes that name the folder or work in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                process.name != str(os.getpid())
                and str(folder) in f"{arguments(process)} {(process / 'cwd').readlink()}"
            ):
                found.append(f"{process.name}: {arguments(process)}")
        except OSError:
            continue  # it has ended
    return found


def try_kills(kills: int, prepare: Prepare, scratch: Path, window_s: float) -> Counter[str]:
    chosen = random.Random(7)
    stages: Counter[str] = Counter()
    for number in range(kills):
        folder = scratch / f"run{number}"
        stage = killed_while_starting(folder, prepare, chosen.uniform(0, window_s))
        result = clean(UNDO_HANDLERS)
        error = result.error()
        assert error is None, f"kill {number}, {STAGES[stage]}: {error.details}"
        assert result.alive == () and len(result.runs) == 1
        assert left_of(folder) == [], f"kill {number}, {STAGES[stage]}"
        assert not folder.exists()
        assert mounts_within(scratch) == []
        assert daemons(folder / "disk") == [] and serving(folder / "data") == []
        stages[STAGES[stage]] += 1
    return stages


KINDS = [
    pytest.param(emulated_disk, 0.008, id="emulated_disk"),
    pytest.param(zfs_fuse, 0.008, id="zfs_fuse"),
    pytest.param(postmaster, 0.03, id="postmaster"),
    pytest.param(command, 0.03, id="command"),
]


@pytest.mark.long
@pytest.mark.parametrize(("prepare", "window_s"), KINDS)
def test_nobody_outlives_a_plinth_that_was_killed_while_starting_it(
    state_dir: Path, scratch: Path, prepare: Prepare, window_s: float
) -> None:
    try_kills(FEW, prepare, scratch, window_s)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("prepare", "window_s"), KINDS)
def test_nobody_outlives_any_of_two_thousand_kills(
    state_dir: Path, scratch: Path, prepare: Prepare, window_s: float
) -> None:
    stages = try_kills(MANY, prepare, scratch, window_s)
    print(dict(stages))
    if prepare is not command:
        assert stages[STAGES[STARTING]] > 0 and stages[STAGES[STARTED]] > 0, stages
