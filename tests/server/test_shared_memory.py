"""Shared memory of servers that are killed: found also where nothing of their data directory can be read any more."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from plinth.model.errors import Refused
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.layout import ServerLayout
from plinth.server.processes import end_server, kill_processes
from plinth.server.server import LocalServer
from plinth.server.settings.ask import SettingsProbe
from plinth.server.settings.dry_start import DryStart
from plinth.server.shared_memory import Guarded, remove_memory_of
from plinth.system.clean import clean
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.owner import Owner
from plinth.system.runner import CommandError, Runner
from shared_memory import Memory, memory_of, system_v_segments
from typed import present
from waiting import wait_until

SETTINGS = [{}, {"shared_memory_type": "sysv"}, {"dynamic_shared_memory_type": "sysv"}]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_server_that_lost_its_power_leaves_none_though_its_lock_file_is_gone(make_server, settings) -> None:
    server: LocalServer = make_server()
    server.start({"shared_buffers": "1MB", **settings})
    memory = memory_of(server.postmaster_pid)
    assert len(memory.names()) >= 2
    (server.layout.data_directory / "postmaster.pid").unlink()
    server.lose_power()
    assert memory.left() == set()


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_server_that_is_killed_leaves_none_though_its_lock_file_is_gone(make_server, settings) -> None:
    server: LocalServer = make_server()
    server.start({"shared_buffers": "1MB", **settings})
    memory = memory_of(server.postmaster_pid)
    (server.layout.data_directory / "postmaster.pid").unlink()
    end_server(server.layout.data_directory, [(signal.SIGKILL, 10.0)])
    assert memory.left() == set()


def killed_with_its_server(data_directory: Path) -> Memory | None:
    """The memory of a server that a command has started there, once both have been killed."""
    try:
        inode = data_directory.stat().st_ino
    except FileNotFoundError:
        return None
    for row in system_v_segments():
        if row["key"] % 2**32 == inode % 2**32:
            with contextlib.suppress(OSError):  # it has just ended, and the next comes
                group = os.getpgid(row["cpid"])
                os.killpg(group, signal.SIGSTOP)  # so that what is seen now is there when it is killed
                memory = Memory(frozenset(), frozenset())
                with contextlib.suppress(OSError):
                    memory = memory_of(row["cpid"])
                os.killpg(group, signal.SIGKILL if memory.segments and memory.files else signal.SIGCONT)
                return memory if memory.segments and memory.files else None
    return None


def test_an_initdb_that_is_killed_leaves_none_of_its_servers(make_layout, runner: Runner, journal: Journal) -> None:
    layout: ServerLayout = make_layout("18")
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(wait_until, lambda: killed_with_its_server(layout.data_directory), "a server of initdb's")
        with pytest.raises(CommandError):
            LocalServer(layout, runner, journal).initdb()
        assert present(killing.result()).left() == set()
    assert journal.entries == ()


@pytest.mark.long
def test_a_dry_start_that_is_killed_leaves_none(
    installations, owner: Owner, runner: Runner, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    dry, probe = DryStart(installations["18"], owner, runner, 2**40), SettingsProbe(installations["18"], owner, runner)

    def killed() -> Memory | None:
        return next(filter(None, map(killed_with_its_server, scratch.glob("plinth-start-*"))), None)

    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(wait_until, killed, "a dry start")
        with pytest.raises(CommandError):
            for number in count():  # each takes some milliseconds only
                if killing.done():
                    break
                dry.lacking({"shared_buffers": f"{1000 + number}MB"}, probe.definitions)
        assert present(killing.result()).left() == set()


DOCKERS = "chown,dac_override,fsetid,fowner,mknod,net_raw,setgid,setuid,setfcap,setpcap,net_bind_service,sys_chroot,kill,audit_write"
CAPABILITIES = ",".join(f"+{name}" for name in (*DOCKERS.split(","), "sys_ptrace"))
CONTAINER = ("setpriv", f"--bounding-set=-all,{CAPABILITIES}", "--inh-caps=-all", "--")
REMOVES = """\
import sys
from plinth.server.shared_memory import Guarded, remove_memory_of
print(*remove_memory_of(Guarded.from_text(sys.argv[1])), sep="\\n")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
def test_root_who_may_not_administer_the_machine_removes_that_of_its_server(make_server) -> None:
    """As in a container that has CAP_SYS_PTRACE more than Docker's: root may neither read a segment of another user nor remove it."""
    server: LocalServer = make_server()
    server.start({"shared_buffers": "1MB"})
    memory = memory_of(server.postmaster_pid)
    guarded = Guarded.at(server.layout.data_directory)
    kill_processes(server.layout.data_directory)
    assert memory.left() != set()
    argv = [*CONTAINER, sys.executable, "-c", REMOVES, str(guarded)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert memory.left() == set()
    assert sum("System V" in line for line in done.stdout.splitlines()) == 1


def test_clean_removes_what_a_server_left_whose_data_directory_is_gone(
    make_layout: Callable[..., ServerLayout], owner: Owner, folder: Path, in_child
) -> None:
    """A power cut takes it; Plinth, which was to remove the memory, is killed before."""
    layout = make_layout("18")

    def run() -> int | None:
        journal = Journal.create("dies", UNDO_HANDLERS)
        server = LocalServer(layout, Runner(), journal)
        server.initdb()
        server.start({})
        kill_by_parent.write_text(str(server.postmaster_pid))
        os.kill(os.getpid(), signal.SIGKILL)

    kill_by_parent = folder / "pid"
    assert in_child(run).signal == signal.SIGKILL
    memory = memory_of(int(kill_by_parent.read_text()))
    kill_processes(layout.data_directory)
    shutil.rmtree(layout.data_directory)
    assert memory.left(), "PostgreSQL cleans up after itself now: then we need not"
    result = clean(UNDO_HANDLERS, "dies")
    assert result.error() is None
    assert memory.left() == set()


def test_memory_in_use_and_that_of_others_stays(make_server, journal: Journal) -> None:
    server: LocalServer = make_server()
    server.start({})
    memory = memory_of(server.postmaster_pid)
    guarded = Guarded.at(server.layout.data_directory)
    assert remove_memory_of(guarded) == [], "processes are attached to it"
    kill_processes(server.layout.data_directory)
    for other in (
        guarded._replace(device=guarded.device + 1),
        guarded._replace(inode=guarded.inode + 1),
        guarded._replace(uid=guarded.uid + 1),
    ):
        assert remove_memory_of(other) == []
    assert memory.left() == memory.names()
    assert len(remove_memory_of(guarded)) >= 2
    assert memory.left() == set()
    server.crash()


def test_what_a_journal_notes_is_read_again_and_nothing_else(folder: Path, owner: Owner) -> None:
    make_directory(folder / "data", "plinth-x", owner)
    guarded = Guarded.at(folder / "data")
    assert Guarded.from_text(str(guarded)) == guarded
    for text in ("", "shared-memory", "shared-memory:1:2", "shared-memory:1:2:3:4", "shared-memory:1:2:x"):
        with pytest.raises(Refused):
            Guarded.from_text(text)
    journal = Journal.create("odd", UNDO_HANDLERS)
    undo = Undo(kind="remove_shared_memory", path="shared-memory:1", label=journal.label)
    entry = journal.record(Step(id="server.x.memory", title="x", undo=undo))
    assert len(journal.undo_all(Runner())) == 1
    journal.mark_undone(entry)
    journal.close()


@pytest.mark.parametrize("settings", SETTINGS)
def test_memory_that_another_process_is_reading_is_removed_after_that(make_server, settings) -> None:
    """Another Plinth attaches to each segment that is left, to read whose it is."""
    server: LocalServer = make_server()
    server.start({"shared_buffers": "1MB", **settings})
    memory = memory_of(server.postmaster_pid)
    libc = ctypes.CDLL(None)
    libc.shmat.restype, libc.shmdt.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    for segment in sorted(memory.segments):
        address = libc.shmat(segment, None, 0o10000)
        assert address not in (None, ctypes.c_void_p(-1).value)
        detaching = threading.Timer(0.3, libc.shmdt, [address])
        if segment == min(memory.segments):
            kill_processes(server.layout.data_directory)
        detaching.start()
    end_server(server.layout.data_directory)
    assert memory.left() == set()


IPC_CREAT, IPC_EXCL, IPC_RMID = 0o1000, 0o2000, 0


def make_segment(key: int, content: bytes) -> int:
    """Make a System V segment of the size of PostgreSQL's header; returns its id."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(ctypes.c_int(key), 56, IPC_CREAT | IPC_EXCL | 0o600)
    assert segment >= 0, os.strerror(ctypes.get_errno())
    address = libc.shmat(segment, None, 0)
    ctypes.memmove(address, content, len(content))
    libc.shmdt(ctypes.c_void_p(address))
    return segment


@pytest.mark.parametrize(
    ("content", "is_ended", "is_removed"),
    [(b"", True, True), (b"", False, False), (b"of another program", True, False)],
    ids=["empty", "creator lives", "not empty"],
)
def test_an_empty_segment_of_a_postmaster_that_was_killed_is_removed(
    folder: Path, in_child, content: bytes, is_ended: bool, is_removed: bool
) -> None:
    """It wrote the segment's key to postmaster.pid on a slow disk, before the header."""
    data_directory = folder / "data"
    data_directory.mkdir()
    guarded = Guarded.at(data_directory)
    key = ctypes.c_int(guarded.inode).value
    segment = in_child(lambda: make_segment(key, content)).value if is_ended else make_segment(key, content)
    assert (remove_memory_of(guarded) != []) is is_removed
    is_there = ctypes.CDLL(None).shmctl(segment, IPC_RMID, None) == 0
    assert is_there is not is_removed


LOOKS = """\
import sys, time
from plinth.server.shared_memory import Guarded, remove_memory_of
began = time.monotonic()
removed = remove_memory_of(Guarded.from_text(sys.argv[1]))
print(len(removed), time.monotonic() - began)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another PID namespace needs root")
def test_memory_of_a_server_of_another_pid_namespace_is_neither_waited_for_nor_removed(make_server) -> None:
    server: LocalServer = make_server()
    server.start({"shared_buffers": "1MB"})
    memory = memory_of(server.postmaster_pid)
    other = str(Guarded.at(server.layout.data_directory)._replace(inode=1))
    argv = ("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", LOOKS, other)
    removed, took_s = Runner().run(argv).stdout.split()
    assert (removed, float(took_s) < 0.5) == ("0", True), took_s
    assert memory.names() == memory.left()
    server.crash()
