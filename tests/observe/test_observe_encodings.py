"""Databases in encodings other than UTF-8, and names and statements in bytes that are not valid in theirs."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import psycopg
import pytest

from plinth.model.connection import Connection
from plinth.server.facts import external_facts
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from watching import watching

ROLE = b'"caf\xe9"'
"""Roles are shared by all databases, in the bytes of the one that they were made in: valid in LATIN1, in none of the others."""


class Encoded(NamedTuple):
    """A database, its name as it is sent, a name in it, and the text that is shown for it."""

    to: Connection
    name: bytes
    shown: str


NAMES = {"SQL_ASCII": (b"caf\xe9", "caf\\xe9"), "LATIN1": (b"caf\xe9", "café"), "EUC_JP": ("表".encode("euc_jp"), "表")}


@pytest.fixture(scope="module")
def cluster(start_server: Callable[..., LocalServer]) -> LocalServer:
    return start_server("18", shared_preload_libraries="pg_stat_statements")


@pytest.fixture(params=["SQL_ASCII", *(pytest.param(name, marks=pytest.mark.long) for name in ("LATIN1", "EUC_JP"))])
def encoded(request: pytest.FixtureRequest, cluster: LocalServer) -> Iterator[Encoded]:
    """With a schema, a table, a role with settings, and statements, all named in bytes that are not UTF-8."""
    encoding = request.param
    name, shown = NAMES[encoding]
    to = replace(cluster.connection, database=f"in_{encoding.lower()}")
    quoted = b'"%s"' % name
    with closing(connect_unpinned(cluster.connection)) as control:
        control.execute(f"CREATE DATABASE {to.database} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'".encode())
        control.execute("CREATE DATABASE shared TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        with closing(raw(replace(to, database="shared"))) as latin:
            latin.execute(b"CREATE ROLE %s LOGIN SUPERUSER" % ROLE)
            latin.execute(
                b"ALTER ROLE %s SET dynamic_library_path = '$libdir:/caf\xe9'" % cluster.connection.user.encode()
            )
        with closing(raw(to)) as there:
            there.execute(b"CREATE SCHEMA %s" % quoted)
            there.execute(b"SET search_path TO %s" % quoted)
            there.execute(b"CREATE EXTENSION pg_stat_statements")
            # The view converts the statements of all databases, which the server cannot from LATIN1 to EUC_JP.
            there.execute(b"SELECT %s.pg_stat_statements_reset()" % quoted)
            there.execute(b"CREATE TABLE %s (%s int PRIMARY KEY)" % (quoted, quoted))
            there.execute(b"INSERT INTO %s VALUES (1)" % quoted)
        yield Encoded(to, name, shown)
    finally:
        with closing(raw(replace(to, database="shared"))) as latin:
            latin.execute(b"ALTER ROLE %s RESET dynamic_library_path" % cluster.connection.user.encode())
            latin.execute(b"DROP ROLE %s" % ROLE)
        with closing(connect_unpinned(cluster.connection)) as control:
            for database in (to.database, "shared"):
                control.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())


def raw(to: Connection) -> "psycopg.Connection[tuple[object, ...]]":
    """A client that sends its bytes as they are."""
    there = connect_unpinned(to)
    there.execute("SET client_encoding TO 'SQL_ASCII'")
    return there


def test_the_observer_sees_tables_and_statements(cluster: LocalServer, encoded: Encoded) -> None:
    with watching(cluster, connection=encoded.to) as watched:
        for source in ("pg_table", "pg_statements"):
            watched.wait_for_readings(source, 2)
        watched.observation = watched.observer.stop()
    assert not [gap for gap in watched.seen.gaps if "encoding" in gap.reason]
    objects = {sample.object for sample in watched.seen.samples}
    assert f"{encoded.shown}.{encoded.shown}" in objects
    assert any(f'INSERT INTO "{encoded.shown}" VALUES' in each for each in objects)


def test_facts_of_an_external_server(encoded: Encoded) -> None:
    with closing(connect_unpinned(encoded.to, unconverted=True)) as control:
        facts = external_facts(control)
    (path,) = (setting.value for setting in facts.settings if setting.name == "dynamic_library_path")
    assert path == ("$libdir:/café" if encoded.to.database == "in_latin1" else "$libdir:/caf\\xe9")


def test_text_of_a_control_connection(encoded: Encoded) -> None:
    with closing(connect_unpinned(encoded.to)) as control:
        query = (
            "SELECT relname, nspname::text, ARRAY[relname] FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        )
        found = control.execute(f"{query} WHERE relkind = 'r' AND nspname !~ '^pg_|^info'".encode()).fetchone()
        assert found == (encoded.shown, encoded.shown, [encoded.shown])
        control.execute("RESET ALL")
        again = control.execute(
            "SELECT count(relname), min(relname) FROM pg_class WHERE relkind = 'r' AND relname ~ '[^a-z0-9_]'"
        )
        assert again.fetchone() == (1, encoded.shown)
        assert control.info.dbname == encoded.to.database
