"""What goes wrong with managed servers: reported clearly, noticed, and nothing left behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from plinth.model.errors import MissingCapability, Refused, RunError, UsageError
from plinth.run.undo import UNDO_HANDLERS
from plinth.server import server as server_module
from plinth.server.layout import ServerLayout
from plinth.server.processes import serving
from plinth.server.server import LocalServer
from plinth.system.clean import clean
from plinth.system.database import connect_unpinned
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.owner import Owner
from plinth.system.process import all_exit
from plinth.system.runner import Runner

MakeLayout = Callable[..., ServerLayout]
MakeServer = Callable[..., LocalServer]


def end(pid: int) -> None:
    """Kill a process and wait until it is gone."""
    pidfd = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        assert all_exit([pidfd], 10)
    finally:
        os.close(pidfd)


def test_a_directory_that_holds_something(make_layout: MakeLayout, journal: Journal, runner: Runner) -> None:
    layout = make_layout()
    layout.data_directory.mkdir()
    (layout.data_directory / "mine").write_text("precious")
    with pytest.raises(RunError) as caught:
        LocalServer(layout, runner, journal).initdb()
    assert "initdb failed with exit code 1" in caught.value.message
    assert (layout.data_directory / "mine").read_text() == "precious"


def test_a_port_that_is_taken(make_server: MakeServer, journal: Journal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = make_server(listen="tcp", port=port)
        with pytest.raises(MissingCapability) as caught:
            server.start({})
    assert f"port {port} of 127.0.0.1 cannot be had: Address already in use" in caught.value.message
    assert caught.value.where == f"server.port = {port}"
    assert caught.value.exit_code == 5
    assert journal.entries == ()
    server.start({})
    assert server.connection.port == port


def test_a_socket_path_that_is_too_long(
    make_layout: MakeLayout, runner: Runner, journal: Journal, folder: Path
) -> None:
    root = folder / ("long" * 20)
    server = LocalServer(replace(make_layout(), socket_root=root), runner, journal)
    with pytest.raises(UsageError) as caught:
        server.start({})
    assert "has at most 107" in caught.value.message
    assert "TMPDIR" in (caught.value.hint or "")
    assert journal.entries == ()


@pytest.mark.parametrize(
    ("settings", "last_words"),
    [
        ({"huge_pages": "on", "shared_buffers": "1TB"}, "could not map anonymous shared memory"),
        ({"shared_preload_libraries": "no_such_library"}, 'could not access file "no_such_library"'),
        ({"max_connections": 10, "superuser_reserved_connections": 20}, "must be less than"),
    ],
)
def test_a_server_that_does_not_come_up_shows_its_log(
    server: LocalServer, session_journal: Journal, settings: Mapping[str, str | int], last_words: str
) -> None:
    server.shutdown()
    with pytest.raises(RunError) as caught:
        server.start(settings)
    assert "did not come up: it ended with exit code 1" in caught.value.message
    assert caught.value.where == str(server.layout.log.path)
    assert any(last_words in line for line in caught.value.details)
    assert not any("shutting down" in line for line in caught.value.details), "nothing of the start before"
    assert session_journal.entries == ()
    assert not server.layout.socket_directory.exists()
    server.start({})


def test_a_damaged_data_directory(make_server: MakeServer) -> None:
    server = make_server()
    (server.layout.data_directory / "global" / "pg_control").write_bytes(b"\0" * 8192)
    with pytest.raises(RunError, match="did not come up") as caught:
        server.start({})
    assert any("database files are incompatible with server" in line for line in caught.value.details)


def test_a_server_killed_in_mid_trial_is_noticed(make_server: MakeServer, journal: Journal) -> None:
    server = make_server()
    server.start({})
    with connect_unpinned(server.connection) as control:
        control.execute("create table kept as select 42 as answer")
    pid = server.postmaster_pid
    assert pid is not None
    end(pid)
    assert not server.alive()
    assert server.postmaster_pid is None
    with pytest.raises(RunError) as caught:
        server.check_alive()
    assert "was ended by SIGKILL" in caught.value.message
    assert caught.value.details != ()
    assert server.apply({}).how == "start"
    with connect_unpinned(server.connection) as control:
        assert control.execute("select answer from kept").fetchone() == (42,)
    server.shutdown()
    assert journal.entries == ()


def test_kill_leaves_no_process(make_server: MakeServer) -> None:
    server = make_server()
    server.start({})
    with connect_unpinned(server.connection):
        assert len(serving(server.layout.data_directory)) > 3
        server.crash()
    assert serving(server.layout.data_directory) == []
    server.start({})
    assert any("was not properly shut down" in line for line in server.log_tail())


def test_two_servers_in_one_data_directory(make_server: MakeServer, runner: Runner, journal: Journal) -> None:
    first = make_server()
    first.start({})
    with pytest.raises(Refused, match=rf"the server runs already \(pid {first.postmaster_pid}\)"):
        first.start({})
    with pytest.raises(Refused, match="another server runs in this data directory"):
        LocalServer(first.layout, runner, journal).start({})
    first.check_alive()


def test_a_socket_directory_that_is_another_users(make_server: MakeServer, journal: Journal) -> None:
    server = make_server()
    server.layout.socket_directory.mkdir()
    try:
        with pytest.raises(Refused, match="it is there already"):
            server.start({})
        assert journal.entries == ()
        assert server.layout.socket_directory.is_dir()
    finally:
        server.layout.socket_directory.rmdir()


def test_a_server_that_does_not_answer_is_ended_and_that_is_said(
    make_server: MakeServer, journal: Journal, monkeypatch: pytest.MonkeyPatch, folder: Path, owner: Owner
) -> None:
    """A backend that waits for a program to send rows takes no signal but one that ends it at once, and a fast shutdown waits for it."""
    monkeypatch.setattr(server_module, "STOP_TIMEOUT_S", 0.5)
    server = make_server()
    server.start({})
    silent = folder / "silent"
    os.mkfifo(silent)
    os.chown(silent, owner.uid, owner.gid)
    reading = threading.Event()

    def copy() -> None:
        with connect_unpinned(server.superuser_connection) as control, contextlib.suppress(psycopg.Error):
            control.execute("CREATE TABLE t (c text)")
            reading.set()
            control.execute(f"COPY t FROM PROGRAM 'trap \"\" TERM; exec cat {silent}'".encode())

    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(copy)
        assert reading.wait(30)
        with silent.open("wb"):  # comes back when cat has opened it, too
            with pytest.raises(RunError, match="ended without a checkpoint"):
                server.shutdown()
            assert serving(server.layout.data_directory) == []
        copying.result()
    assert journal.entries == ()


_DIES_WITH_A_SERVER = """
import os, signal, sys
from pathlib import Path
from plinth.model.server_spec import ServerSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.installations.find import find_installation
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.runner import Runner

run_id, data = sys.argv[1], Path(sys.argv[2])
owner, runner = server_owner(), Runner()
installation = find_installation(18, None, owner, runner)
layout = ServerLayout(run_id, "c", installation, owner, ServerSpec(), data, LogFile(data.parent.with_suffix(".log")))
server = LocalServer(layout, runner, Journal.create(run_id, UNDO_HANDLERS))
server.start({})
print(server.postmaster_pid, layout.socket_directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_clean_stops_what_a_killed_plinth_left(server: LocalServer, folder: Path, owner: Owner, runner: Runner) -> None:
    server.shutdown()
    storage = folder / "storage"
    make_directory(storage, "plinth-killed", owner)
    data = storage / "data"
    runner.run(["cp", "-a", str(server.layout.data_directory), str(data)], owner=owner)
    killed = subprocess.run(
        [sys.executable, "-c", _DIES_WITH_A_SERVER, "killed", str(data)], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    pid, sockets = killed.stdout.split()
    assert int(pid) in serving(data), "it outlives the one who started it"
    assert Path(sockets).is_dir()
    result = clean(UNDO_HANDLERS, "killed")
    assert result.error() is None
    assert [step.id for step in result.runs[0].undone] == ["server.c.sockets", "server.c.memory", "server.c.start"]
    assert serving(data) == []
    assert not Path(sockets).exists()
    assert clean(UNDO_HANDLERS, "killed").runs == (), "a second time there is nothing to do"
