"""Tables and indexes of a real server: listed with their files, and read into memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.server.prewarm import RelationReader, relations
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from servers import new_servers

ROWS = 20_000


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    """With shared buffers that hold all of it, which are empty after `restart`."""
    with new_servers({"shared_buffers": "64MB", "autovacuum": False}) as start:
        server = start()
        with connect_unpinned(server.connection) as control:
            control.execute("CREATE TABLE t (id int PRIMARY KEY, payload text, long text)")
            control.execute("ALTER TABLE t ALTER long SET STORAGE EXTERNAL")
            control.execute(f"INSERT INTO t SELECT n, repeat('x', 100), '' FROM generate_series(1, {ROWS}) n".encode())
            control.execute("INSERT INTO t VALUES (0, '', repeat('y', 100000))")
            control.execute("CREATE TABLE empty (id int)")
            control.execute("CREATE SCHEMA other")
            control.execute("CREATE TABLE other.u AS SELECT 1 AS a")
            control.execute("VACUUM t")
        yield server


def restart(server: LocalServer) -> None:
    settings = server.settings
    server.shutdown()
    server.start(settings)


def test_tables_come_first_with_their_toast_and_files(server: LocalServer) -> None:
    with connect_unpinned(server.connection) as control:
        found = relations(control, "public")
        everywhere = relations(control)
    names = [relation.name for relation in found]
    assert names[0] == "t" and "t_pkey" in names and not {"empty", "other.u"} & set(names)
    assert sum(name.startswith("pg_toast.") for name in names) == 2, "the table and its index"
    assert [relation.is_index for relation in found] == sorted(relation.is_index for relation in found)
    assert {relation.name for relation in everywhere} - set(names) == {"other.u"}
    folder = Path(server.layout.data_directory)
    for relation in found:
        assert sum(file.stat().st_size for file in relation.files(folder)) == relation.size_bytes


@pytest.mark.parametrize("installed", [True, False])
def test_what_was_read_is_in_shared_buffers(server: LocalServer, installed: bool) -> None:
    restart(server)
    with connect_unpinned(server.connection) as control:
        control.execute("DROP EXTENSION IF EXISTS pg_prewarm")
        reader = RelationReader(control, may_install=installed)
        assert reader.how == ("pg_prewarm" if installed else "sequential scans")
        found = relations(control, "public")
        (table,) = [relation for relation in found if relation.name == "t"]
        (key,) = [relation for relation in found if relation.name == "t_pkey"]
        assert (reader.reads(table), reader.reads(key)) == (True, installed)
        assert bool(reader.gaps) is not installed
        assert reader.read(table) == table.size_bytes, "shared buffers were empty"
        assert reader.read(table) == 0
