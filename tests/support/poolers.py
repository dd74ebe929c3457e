"""PgBouncer before a server, as whoever runs the server has set it up."""

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psycopg

from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from waiting import wait_until

PORT = 6432
CONFIGURATION = """\
[databases]
* = {server}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = {port}
auth_type = any
pool_mode = {mode}
default_pool_size = 20
ignore_startup_parameters = {ignored}
"""


@contextmanager
def pgbouncer(
    server: str, folder: Path, mode: Literal["session", "transaction", "statement"], *, ignores_options: bool
) -> Iterator[str]:
    """A running PgBouncer, by its connection string; `server` is that of the server, `folder` is made for it."""
    owner, runner = server_owner(), Runner()
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "the tests need Debian's package pgbouncer"
    folder.mkdir()
    configuration = folder / "pgbouncer.ini"
    ignored = "extra_float_digits" + (", options" if ignores_options else "")
    configuration.write_text(CONFIGURATION.format(server=server, folder=folder, port=PORT, mode=mode, ignored=ignored))
    if not owner.is_current_user:
        for path in (folder, configuration):
            os.chown(path, owner.uid, owner.gid)
    process = runner.spawn([program, str(configuration)], owner=owner, cwd=folder, log=LogFile(folder / "log"))
    try:
        wait_until(lambda: _listens(folder / f".s.PGSQL.{PORT}") or process.has_ended())
        assert not process.has_ended(), (folder / "log").read_text()
        yield f"host={folder} port={PORT} user=bench dbname=postgres"
    finally:
        os.kill(process.pid, signal.SIGINT)
        process.wait()


def _listens(path: Path) -> bool:
    """Whether connections are taken: the file of a socket is there before that."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


def made_in(string: str) -> list[tuple[str, str]]:
    """The schemas, and the tables and functions outside of the system's, that a server has."""
    query = """\
        SELECT 'schema', nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)'
        UNION ALL SELECT relnamespace::regnamespace::text, relname FROM pg_class
        WHERE relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
        UNION ALL SELECT pronamespace::regnamespace::text, proname FROM pg_proc
        WHERE pronamespace::regnamespace::text !~ '^(pg_|information_schema)' ORDER BY 1, 2"""
    with psycopg.connect(string) as control:
        return control.execute(query).fetchall()
