"""What survives a power cut on a real file system, and in a real PostgreSQL: all that was acknowledged, unless the disk
lies about flushes."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from emulated_disks import MIB, ServedDisk, run, served
from plinth.model.choices import CutMode
from plinth.model.disk import IgnoreFlush
from plinth.server.installations.find import find_installation
from plinth.server.shared_memory import Guarded, remove_memory_of
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner, server_owner
from plinth.system.process import Child
from plinth.system.runner import Runner
from waiting import wait_until

ENOUGH_ROWS = 200


@pytest.mark.parametrize("mode", ["drop", "subset", "prefix", "torn"])
def test_ext4_keeps_what_was_synced_regardless_of_what_the_cut_leaves(disk: ServedDisk, mode: CutMode):
    with disk.filesystem() as point:
        for number in range(20):
            _write(point / f"synced-{number}", sync=True)
            (point / f"synced-{number}").rename(point / f"renamed-{number}")
        run("sync", "--file-system", str(point))
        for number in range(20):
            _write(point / f"loose-{number}", sync=False)
        _leave_unflushed(point / "direct", disk)
        report = disk.control.power_cut(mode, seed=3)
    assert report.writes_dropped + report.writes_torn > 0
    disk.control.power_on()
    with disk.filesystem(made=True) as point:  # mounting replays the journal
        for number in range(20):
            assert (point / f"renamed-{number}").read_bytes() == _content(f"synced-{number}")
    with disk.loop() as device:
        run("e2fsck", "-f", "-n", device)


class Server:
    """A PostgreSQL on the file system of a disk."""

    def __init__(self, point: Path, socket: Path, log: Path, owner: Owner) -> None:
        self._bindir = Path(find_installation(18, None, owner, Runner()).bindir)
        self._data = point / "data"
        self._socket = socket
        self._log = log
        self._owner = owner
        self._process: Child | None = None

    def init(self) -> None:
        self._data.mkdir()
        os.chown(self._data, self._owner.uid, self._owner.gid)
        argv = [str(self._bindir / "initdb"), "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync"]
        Runner().run(argv, owner=self._owner)

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Its connection string; it is killed at the end."""
        memory = Guarded.at(self._data)
        self._process = Runner().spawn(
            [str(self._bindir / "postgres"), "-D", str(self._data), "-k", str(self._socket), "-c", "listen_addresses="],
            log=LogFile(self._log),
            owner=self._owner,
            cwd=Path("/"),
        )
        conninfo = f"host={self._socket} user=postgres dbname=postgres"
        try:
            wait_until(lambda: _answers(conninfo), f"the server answers: {self._log.read_text()[-2000:]}", timeout_s=60)
            yield conninfo
        finally:
            self._kill()
            remove_memory_of(memory)  # which a machine would have lost with its power

    def _kill(self) -> None:
        """As is needed after a cut: a server that gets only errors does not end on its own."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        data = str(self._data)
        wait_until(lambda: not _processes_in(data), "the server's processes are gone")
        with contextlib.suppress(OSError):  # without power it cannot be removed, and is not looked at
            (self._data / "postmaster.pid").unlink()


@pytest.mark.parametrize("lies", [False, True], ids=["honest", "lying"])
def test_acknowledged_inserts_survive_an_honest_disk_and_not_one_that_lies(scratch: Path, lies: bool):
    owner = server_owner()
    socket = scratch / "socket"
    socket.mkdir()
    os.chown(socket, owner.uid, owner.gid)
    with served(scratch, size_bytes=512 * MIB) as disk:
        with disk.filesystem() as point:
            server = Server(point, socket, scratch / "log", owner)
            (scratch / "log").touch()
            server.init()
            with server.running() as conninfo:
                with psycopg.connect(conninfo, autocommit=True) as connection:
                    connection.execute("CREATE TABLE t (id int)")
                    connection.execute("CHECKPOINT")
                os.sync()
                disk.control.flush_now()
                disk.control.set_lie(IgnoreFlush() if lies else None)
                acknowledged = _insert_until_cut(conninfo, disk)
        disk.control.set_lie(None)
        disk.control.power_on()
        with disk.filesystem(made=True) as point:
            (point / "data" / "postmaster.pid").unlink(missing_ok=True)
            with server.running() as conninfo, psycopg.connect(conninfo) as connection:
                found = {row[0] for row in connection.execute("SELECT id FROM t")}
        lost = acknowledged - found
        if lies:
            assert len(lost) > len(acknowledged) / 2, f"{len(lost)} of {len(acknowledged)} lost"
        else:
            assert not lost, f"{len(lost)} of {len(acknowledged)} lost"
        with disk.loop() as device:
            run("e2fsck", "-f", "-p", device)


def _insert_until_cut(conninfo: str, disk: ServedDisk) -> set[int]:
    """Ids whose commit was acknowledged before the power was cut."""
    acknowledged: set[int] = set()
    enough = threading.Event()

    def insert() -> None:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(conninfo, autocommit=True) as connection:
            for number in range(1_000_000):
                connection.execute("INSERT INTO t VALUES (%s)", (number,))
                acknowledged.add(number)
                if len(acknowledged) == ENOUGH_ROWS:
                    enough.set()

    thread = threading.Thread(target=insert)
    thread.start()
    assert enough.wait(60)
    report = disk.control.power_cut("drop")
    thread.join(60)
    assert not thread.is_alive()
    if disk.control.status().lie is not None:
        assert report.writes_dropped > 0
    return acknowledged


def _answers(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _processes_in(folder: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).startswith(folder):
                found.append(process.name)
    return found


def _content(name: str) -> bytes:
    return name.encode() * 3000


def _write(path: Path, *, sync: bool) -> None:
    with path.open("wb") as file:
        file.write(_content(path.name))
        if sync:
            file.flush()
            os.fsync(file.fileno())


def _leave_unflushed(path: Path, disk: ServedDisk) -> None:
    """Direct writes into a file that is there already: they reach the disk, and no flush follows."""
    _write(path, sync=True)
    run("dd", "if=/dev/zero", f"of={path}", "bs=4k", "count=4", "oflag=direct", "conv=notrunc", "status=none")
    assert disk.control.status().cache_dirty_bytes > 0
