"""Control connections: what is left of one that breaks, and text in any encoding."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest

from plinth.server.server import LocalServer
from plinth.system.database import connect

BREAKS = """\
import sys
from pydantic import TypeAdapter
from plinth.model.connection import Connection
from plinth.system.database import connect
from plinth.model.errors import Interrupted
import psycopg
to = TypeAdapter(Connection).validate_json(sys.argv[1])
try:
    with connect(to) as control:
        {block}
except (psycopg.Error, Interrupted) as error:
    print(type(error).__name__, control.closed)
"""
ENDED = "control.execute('SELECT pg_terminate_backend(pg_backend_pid())')"


@pytest.mark.parametrize(
    ("block", "raised"),
    [
        (ENDED, "AdminShutdown"),
        (f"control.execute('BEGIN'); {ENDED}", "AdminShutdown"),
        (f"with control.transaction(): {ENDED}", "AdminShutdown"),
        ("control.pgconn.send_query(b'SELECT pg_sleep(60)'); raise Interrupted('Ctrl-C')", "Interrupted"),
    ],
    ids=["at rest", "in a transaction", "in a block of a transaction", "in a statement that was interrupted"],
)
def test_a_connection_that_breaks_leaves_nothing_on_stderr(server: LocalServer, block: str, raised: str) -> None:
    program = BREAKS.format(block=block)
    words = [sys.executable, "-c", program, json.dumps(server.connection.for_engine())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{raised} True\n", "")


def test_names_of_another_encoding_are_shown(server: LocalServer) -> None:
    """Roles are shared by all databases, in the bytes of the one that they were made in."""
    with closing(connect(server.connection)) as control:
        control.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    latin = replace(server.connection, database="latin")
    query = "SELECT rolname, rolname::text, ARRAY[rolname] FROM pg_roles WHERE rolname LIKE 'caf%'"
    with closing(connect(latin)) as there:
        there.execute('CREATE ROLE "caf\u00e9"'.encode())
        try:
            assert there.execute(query.encode()).fetchone() == ("caf\u00e9", "caf\u00e9", ["caf\u00e9"])
            with closing(connect(server.connection)) as control:
                found = control.execute(query.encode()).fetchone()
        finally:
            there.execute('DROP ROLE "caf\u00e9"'.encode())
    assert found == ("caf\\xe9", "caf\\xe9", ["caf\\xe9"])
    with closing(connect(server.connection)) as control:
        control.execute("DROP DATABASE latin")
