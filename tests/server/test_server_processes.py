"""Ending real servers: the right ones, by every way, and without leaving shared memory behind."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic_ns

import pytest

from plinth.model.errors import Refused
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation
from plinth.server.processes import (
    continue_processes,
    end_server,
    postmaster_pid,
    serving,
    stop_labelled_server,
    suspend_processes,
)
from plinth.system.clean import clean
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.process import STATE, Child, all_exit, stat_fields
from plinth.system.runner import Runner
from public_folder import PUBLIC
from waiting import wait_until

LABEL = "plinth-pm"
OWNER = server_owner()
MAJORS = sorted({18, *(int(folder.name) for folder in Path("/usr/lib/postgresql").glob("[0-9]*"))})
"""18 is the wheel's; others where they are installed, since the layout of shared memory is theirs."""


@pytest.fixture(scope="module", params=MAJORS)
def template(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    """A bindir, and a data directory as initdb made it."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-test-", dir=PUBLIC))
    os.chown(folder, OWNER.uid, OWNER.gid)
    bindir = find_installation(request.param, None, OWNER, Runner()).bindir
    Runner().run([f"{bindir}/initdb", "-D", str(folder / "pgdata"), "-A", "trust", "--no-sync"], owner=OWNER)
    yield bindir, folder / "pgdata"
    shutil.rmtree(folder)


@pytest.fixture
def storage(scratch: Path) -> Path:
    """A storage of ours, with an empty place for a data directory."""
    path = scratch / "storage"
    make_directory(path, LABEL, OWNER)
    return path


@pytest.fixture
def server(template: tuple[str, Path], storage: Path) -> Iterator[Path]:
    """The data directory of a server that is up, in a storage of ours."""
    bindir, made = template
    data_directory = storage / "pgdata"
    shutil.copytree(made, data_directory, copy_function=shutil.copy)
    subprocess.run(["chown", "-R", f"{OWNER.uid}:{OWNER.gid}", data_directory], check=True)
    data_directory.chmod(0o700)
    process = start(bindir, data_directory)
    yield data_directory
    end_server(data_directory, [(signal.SIGKILL, 10.0)])
    process.wait()


def start(bindir: str, data_directory: Path) -> Child:
    settings = ["listen_addresses=", f"unix_socket_directories={data_directory.parent}", "shared_buffers=16MB"]
    argv = [f"{bindir}/postgres", "-D", str(data_directory)] + [word for s in settings for word in ("-c", s)]
    log_path = data_directory.parent / "log"
    process = Runner().spawn(argv, owner=OWNER, cwd=data_directory, log=LogFile(log_path))
    wait_until(lambda: "ready to accept connections" in log_path.read_text() or process.has_ended())
    assert not process.has_ended(), log_path.read_text()
    return process


def shared_memory_of(pids: list[int]) -> set[str]:
    """Names of the shared memory that processes have mapped."""
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    return set(re.findall(r"/dev/shm/PostgreSQL\.\d+|SYSV[0-9a-f]+", maps))


def still_there(names: set[str]) -> set[str]:
    keys = {int(line.split()[0]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
    return {n for n in names if (int(n[4:], 16) in keys if n.startswith("SYSV") else Path(n).exists())}


def test_a_server_is_found_with_all_its_children_and_stopped_in_order(server: Path) -> None:
    pids = serving(server)
    postmaster = postmaster_pid(server)
    assert postmaster in pids
    assert len(pids) >= 4
    assert serving(server / "base") == []
    memory = shared_memory_of(pids)
    assert len(memory) >= 2
    stop_labelled_server(server, LABEL)
    assert serving(server) == []
    assert postmaster_pid(server) is None
    assert "database system is shut down" in (server.parent / "log").read_text()
    assert still_there(memory) == set()
    stop_labelled_server(server, LABEL)  # again: nothing to do


def test_a_server_with_a_stopped_child_is_ended_by_harder_ways(server: Path) -> None:
    pids = serving(server)
    child = next(pid for pid in pids if pid != postmaster_pid(server))
    os.kill(child, signal.SIGSTOP)
    memory = shared_memory_of(pids)
    end_server(server, [(signal.SIGINT, 0.5), (signal.SIGQUIT, 0.5), (signal.SIGKILL, 10.0)])
    assert serving(server) == []
    assert still_there(memory) == set()


def test_a_paused_server_does_nothing_until_it_is_continued(server: Path) -> None:
    before = monotonic_ns()
    assert before <= suspend_processes(server) <= monotonic_ns()
    pids = serving(server)
    assert len(pids) >= 4
    assert {stat_fields(Path(f"/proc/{pid}"))[STATE] for pid in pids} == {"T"}
    continue_processes(server)
    assert not any(stat_fields(Path(f"/proc/{pid}"))[STATE] == "T" for pid in pids)
    assert set(pids) <= set(serving(server)), "and it may have started others"


def test_a_paused_server_shuts_down_when_it_is_asked_to(server: Path) -> None:
    """As by `plinth clean`, when the run that had paused it was killed."""
    suspend_processes(server)
    stop_labelled_server(server, LABEL)
    assert serving(server) == []
    assert "database system is shut down" in (server.parent / "log").read_text()


def kill_postmaster(data_directory: Path) -> None:
    postmaster = postmaster_pid(data_directory)
    assert postmaster is not None
    os.kill(postmaster, signal.SIGKILL)


def kill_all(data_directory: Path) -> None:
    pids = serving(data_directory)
    opened = [os.pidfd_open(pid) for pid in pids]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert all_exit(opened, 10)
    for pidfd in opened:
        os.close(pidfd)


@pytest.mark.parametrize("kill", [kill_postmaster, kill_all])
def test_nothing_stays_of_a_server_that_was_killed(server: Path, kill) -> None:
    memory = shared_memory_of(serving(server))
    kill(server)
    assert still_there(memory), "PostgreSQL cleans up after itself now: then we need not"
    stop_labelled_server(server, LABEL)
    assert serving(server) == []
    assert still_there(memory) == set()


def test_a_server_in_a_directory_without_our_label_is_refused_and_lives(server: Path) -> None:
    with pytest.raises(Refused, match=f"has the label '{LABEL}', not ours, 'plinth-pm0'"):
        stop_labelled_server(server, "plinth-pm0")
    (server.parent / ".plinth-label").unlink()
    with pytest.raises(Refused, match="no label of ours") as refusal:
        stop_labelled_server(server, LABEL)
    assert f"{postmaster_pid(server)}" in refusal.value.message
    assert postmaster_pid(server) in serving(server)


def test_a_pid_in_postmaster_pid_that_serves_nothing_is_never_signalled(storage: Path) -> None:
    data_directory = storage / "pgdata"
    data_directory.mkdir()
    # Neither a process elsewhere, nor one there that is not PostgreSQL, though its pid is in the file.
    for folder in (storage, data_directory):
        with subprocess.Popen(["sleep", "60"], cwd=folder) as bystander:
            (data_directory / "postmaster.pid").write_text(f"{bystander.pid}\n{data_directory}\n")
            assert postmaster_pid(data_directory) is None
            stop_labelled_server(data_directory, LABEL)
            assert bystander.poll() is None
            bystander.kill()


@pytest.mark.parametrize("content", ["", "\n", "rubbish\n", "-1\n", "999999999999\n"])
def test_a_postmaster_pid_that_says_nothing_is_no_server(storage: Path, content: str) -> None:
    (storage / "postmaster.pid").write_text(content)
    assert postmaster_pid(storage) is None
    stop_labelled_server(storage, LABEL)


def test_clean_stops_the_server_of_a_dead_run_and_removes_all(
    template: tuple[str, Path], state_dir: Path, scratch: Path, in_child
) -> None:
    bindir, made = template
    storage = scratch / "storage"
    data_directory = storage / "pgdata"

    def run() -> None:
        journal = Journal.create("pm", UNDO_HANDLERS)
        for name, kind, path in (("dir", "remove_directory", storage), ("server", "stop_server", data_directory)):
            undo = Undo(kind=kind, path=str(path), label=journal.label)
            journal.record(Step(id=name, title=name, undo=undo))
        make_directory(storage, journal.label, OWNER)
        subprocess.run(["cp", "-a", made, data_directory], check=True)
        start(bindir, data_directory)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(run).signal == signal.SIGKILL
    assert postmaster_pid(data_directory) is not None
    memory = shared_memory_of(serving(data_directory))
    result = clean(UNDO_HANDLERS, "pm")
    assert result.error() is None
    assert [step.id for step in result.runs[0].undone] == ["dir", "server"]
    assert serving(data_directory) == []
    assert not storage.exists()
    assert still_there(memory) == set()
    assert clean(UNDO_HANDLERS, "pm").runs == ()


def test_a_data_directory_stays_while_its_server_cannot_be_stopped(
    server: Path, state_dir: Path, scratch: Path
) -> None:
    journal = Journal.create("pm", UNDO_HANDLERS)
    for name, kind, path, label in (
        ("dir", "remove_directory", server.parent, LABEL),
        ("server", "stop_server", server, "plinth-not-ours"),
    ):
        journal.record(Step(id=name, title=name, undo=Undo(kind=kind, path=str(path), label=label)))
    kept = journal.undo_all(Runner())
    assert [left.step.id for left in kept] == ["server", "dir"]
    assert postmaster_pid(server) is not None
    for entry in journal.entries:
        journal.mark_undone(entry)
    journal.close()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _written(content: bytes) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.write_bytes(content)

    return put


@pytest.mark.long
@pytest.mark.parametrize(
    "put",
    [
        _fifo,
        _endless,
        Path.mkdir,
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)),
        *map(_written, (b"", b"\xff\xfe", "\u00b2".encode(), b"9" * 10_000, b"1\n", b"-1\n", b"x\n" * 9)),
    ],
    ids=["FIFO", "endless", "folder", "link", "device", "empty", "bytes", "digit", "digits", "init", "minus", "text"],
)  # fmt: skip
def test_what_the_servers_user_puts_in_place_of_its_pid_file_ends_nothing_and_holds_up_nothing(
    server: Path, put: Callable[[Path], None]
) -> None:
    """SQL of an experiment starts commands as that user."""
    (server / "postmaster.pid").unlink()
    put(server / "postmaster.pid")
    assert postmaster_pid(server) is None
    begun = time.monotonic()
    end_server(server)
    assert serving(server) == [] and time.monotonic() - begun < 60
