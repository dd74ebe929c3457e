"""Real servers for the load engine: started, stopped and crashed as a test needs it."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import PGconn, Ping

from initdb_copies import DataDirectories
from plinth import _native
from plinth.model.facts import Installation
from plinth.model.load import LoadResult
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from public_folder import PUBLIC

Load = Callable[..., _native.LoadRun]
Finished = Callable[[_native.LoadRun], LoadResult]

HBA = """\
local all all trust
host all md5_user 127.0.0.1/32 md5
host all clear_user 127.0.0.1/32 password
host all all 127.0.0.1/32 scram-sha-256
"""
SETTINGS = """\
fsync = off
shared_buffers = 64MB
max_connections = 600
deadlock_timeout = 20ms
restart_after_crash = on
"""
LOGGING = """
logging_collector = on
log_directory = 'log'
log_filename = 'postgresql.log'
log_file_mode = 0644
log_timezone = 'UTC'
log_destination = 'jsonlog'
log_connections = on
log_disconnections = on
log_min_duration_statement = 0
lc_messages = 'C'
"""
"""Settings of a server that logs every statement with its duration, as a replay needs it."""
PASSWORD = "correct horse"


@cache
def _data_directories() -> DataDirectories:
    made = DataDirectories()
    atexit.register(made.remove)
    return made


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A PostgreSQL server of the test's own, on a Unix socket (trust) and on TCP (passwords)."""

    def __init__(
        self, installation: Installation, owner: Owner, settings: str = "", hba: str = HBA, *, is_copy: bool = True
    ) -> None:
        """`is_copy`: its data directory, and so its system identifier, is that of the test's other servers of this version."""
        self.installation = installation
        self.folder = Path(tempfile.mkdtemp(prefix="plinth-native-", dir=PUBLIC))
        self.port = free_port()
        self._owner = owner
        self._process: subprocess.Popen[Any] | None = None
        os.chown(self.folder, owner.uid, owner.gid)
        self.folder.chmod(0o755)
        self._make_data_directory(is_copy=is_copy)
        (self.data / "pg_hba.conf").write_text(hba)
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write(f"{SETTINGS}port = {self.port}\nunix_socket_directories = '{self.folder}'\n{settings}")

    def _make_data_directory(self, *, is_copy: bool) -> None:
        program = f"{self.installation.bindir}/initdb"
        argv = (
            program,
            f"--pgdata={self.data}",
            "-U",
            "postgres",
            "--no-sync",
            "--auth=trust",
            "--locale=C",
            "-E",
            "UTF8",
        )
        run = Runner().run
        if is_copy:
            _data_directories().initdb(run, argv, self._owner)
        else:
            run(argv, owner=self._owner)

    def own(self, path: Path) -> None:
        """Give a file to the user that the server runs as."""
        os.chown(path, self._owner.uid, self._owner.gid)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def pid(self) -> int:
        """The postmaster."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with (self.folder / "log").open("ab") as log:
            argv = [f"{self.installation.bindir}/postgres", "-D", str(self.data)]
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, **self._as_owner())
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until it takes connections."""
        assert self._process is not None
        where = f"host={self.folder} port={self.port} user=postgres dbname=postgres".encode()
        while PGconn.ping(where) != Ping.OK:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it, fast unless another signal is given, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Stop it and delete everything."""
        self.stop()
        shutil.rmtree(self.folder)

    def where(self) -> list[str]:
        """Options of libpq's programs."""
        return ["-h", str(self.folder), "-p", str(self.port), "-U", "postgres"]

    def connection(self, **changes: Any) -> dict[str, Any]:
        """The engine's connection: the Unix socket, unless changed."""
        here = {"host": str(self.folder), "port": self.port, "user": "postgres", "database": "postgres"}
        return here | changes

    def connect(self) -> "psycopg.Connection[Any]":
        """A control connection."""
        return psycopg.connect(
            host=str(self.folder), port=self.port, user="postgres", dbname="postgres", autocommit=True
        )

    @contextmanager
    def role(self, options: str) -> Iterator[str]:
        """A role that nobody else has, which may log in; dropped at the end, when nothing is granted to it any more."""
        name = f"role_{uuid.uuid4().hex}"
        self.execute(f"create role {name} login {options}")
        try:
            yield name
        finally:
            self.execute(f"drop role {name}")

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last."""
        with self.connect() as connection:
            cursor = connection.execute(sql)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def pgbench(self, *options: str) -> str:
        """Run the installation's pgbench."""
        argv = [f"{self.installation.bindir}/pgbench", *self.where(), *options, "postgres"]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def pgbench_failing(self, *options: str) -> str:
        """Run it with what must fail: what it says."""
        argv = [f"{self.installation.bindir}/pgbench", *self.where(), *options, "postgres"]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode != 0, done.stderr
        return done.stderr

    def pgbench_debugging(self, *options: str) -> str:
        """Run it: what `debug()` prints."""
        argv = [f"{self.installation.bindir}/pgbench", *self.where(), *options, "postgres"]
        said = subprocess.run(argv, check=True, capture_output=True, text=True).stderr
        return "".join(line for line in said.splitlines(keepends=True) if line.startswith("debug("))

    def _as_owner(self) -> dict[str, Any]:
        if self._owner.is_current_user:
            return {}
        return {"user": self._owner.uid, "group": self._owner.gid, "extra_groups": [], "cwd": "/"}
