"""Damage that is planted in the files of a real server is found, by the check that is for it; a sound server has none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plinth.model.durability import Damage
from plinth.server.integrity.amcheck import check_checksums, check_database, check_unlogged
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.system.runner import Runner

PAGE_BYTES = 8192
MakeServer = Callable[..., LocalServer]


@pytest.fixture
def server(make_server: MakeServer) -> LocalServer:
    """With a table of several pages, all visible and frozen, and its key; stopped."""
    made = make_server()
    made.start({"autovacuum": False})
    with connect_unpinned(made.connection) as control:
        control.execute("CREATE TABLE t (id int PRIMARY KEY, payload text)")
        control.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 1000) n")
        control.execute("VACUUM (FREEZE) t")
    made.shutdown()
    return made


def file_of(server: LocalServer, relation: str) -> Path:
    """The main fork of a relation; the server is stopped afterwards."""
    server.start({"autovacuum": False})
    with connect_unpinned(server.connection) as control:
        row = control.execute("SELECT pg_relation_filepath(%s)", (relation,)).fetchone()
    server.shutdown()
    assert row is not None
    return server.layout.data_directory / str(row[0])


def checked(server: LocalServer) -> dict[str, Damage]:
    """What is found in the running server, by kind."""
    server.start({"autovacuum": False, "ignore_checksum_failure": False})
    with connect_unpinned(server.connection) as control:
        integrity = check_database(control, server.layout.installation.major)
    server.shutdown()
    assert [check.not_run for check in integrity.checks] == [None] * 4
    return {damage.kind: damage for damage in integrity.damage}


def test_a_sound_server_has_no_damage(server: LocalServer, runner: Runner):
    assert checked(server) == {}
    whole = check_checksums(server.layout, server.layout.installation, runner, enabled=True)
    assert whole.damage == () and whole.checks[0].not_run is None


def test_a_page_with_a_wrong_byte_is_a_checksum_failure(server: LocalServer, runner: Runner):
    file = file_of(server, "t")
    with file.open("r+b") as opened:
        opened.seek(PAGE_BYTES + 5000)
        opened.write(b"?")
    assert "invalid page in block 1" in checked(server)["checksum failure"].evidence[0]
    whole = check_checksums(server.layout, server.layout.installation, runner, enabled=True)
    assert whole.damage[0].kind == "checksum failure"
    assert "block 1" in whole.damage[0].evidence[0]


def test_an_index_that_lacks_rows_disagrees_with_its_table(server: LocalServer):
    file = file_of(server, "t_pkey")
    before = file.read_bytes()
    server.start({"autovacuum": False})
    with connect_unpinned(server.connection) as control:
        control.execute("INSERT INTO t SELECT n, 'late' FROM generate_series(1001, 1100) n")
    server.shutdown()
    file.write_bytes(before)
    found = checked(server)["index and heap disagree"]
    assert found.evidence[0].startswith("t_pkey:")
    assert "lacks matching index tuple" in found.evidence[0]


def test_a_page_that_the_map_wrongly_calls_visible_is_found(server: LocalServer):
    visibility = file_of(server, "t").with_name(file_of(server, "t").name + "_vm")
    before = visibility.read_bytes()
    server.start({"autovacuum": False})
    with connect_unpinned(server.connection) as control:
        control.execute("DELETE FROM t WHERE id = 1")
    server.shutdown()
    visibility.write_bytes(before)
    assert "pg_check_visible" in checked(server)["visibility map wrong"].evidence[0]


def test_an_unlogged_table_is_empty_after_a_crash_and_one_that_is_not_is_named(server: LocalServer):
    """The control: one that was filled since the recovery, which the check cannot tell from one that was not emptied."""
    server.start({"autovacuum": False})
    with connect_unpinned(server.connection) as control:
        control.execute("CREATE UNLOGGED TABLE scratch AS SELECT generate_series(1, 10)")
    server.crash()
    server.start({"autovacuum": False})
    with connect_unpinned(server.connection) as control:
        assert check_unlogged(control).damage == ()
        control.execute("INSERT INTO scratch SELECT 1")
        (damage,) = check_unlogged(control).damage
    server.shutdown()
    assert damage.kind == "unlogged table not reset"
    assert damage.evidence[0].startswith("scratch (oid ") and "has 1 rows" in damage.evidence[0]


def test_a_table_whose_file_is_gone_is_damaged(server: LocalServer):
    """The server reports it as an error of the system (58P01), as it does a device that fails."""
    file_of(server, "t").unlink()
    assert "t: could not open file" in checked(server)["heap damaged"].evidence[0]


def test_an_extension_that_a_damaged_catalogue_refuses_is_damage(server: LocalServer):
    catalogue = file_of(server, "pg_extension_name_index")
    with catalogue.open("r+b") as opened:
        opened.seek(PAGE_BYTES)
        opened.write(b"?" * 200)
    server.start({"autovacuum": False})
    with connect_unpinned(server.connection) as control:
        integrity = check_database(control, server.layout.installation.major)
    server.shutdown()
    (damage,) = [damage for damage in integrity.damage if damage.kind == "heap damaged"]
    assert any("extension amcheck cannot be made" in one for one in damage.evidence)
    assert integrity.checks[0].not_run is not None


def test_without_checksums_their_check_is_not_run(server: LocalServer, runner: Runner):
    whole = check_checksums(server.layout, server.layout.installation, runner, enabled=False)
    assert whole.damage == ()
    assert whole.checks[0].not_run is not None and "without data checksums" in whole.checks[0].not_run


def test_without_the_program_the_check_of_checksums_is_not_run(server: LocalServer, runner: Runner):
    """Some builds bring nothing but the server."""
    bare = server.layout.installation.model_copy(update={"bindir": "/nonexistent"})
    whole = check_checksums(server.layout, bare, runner, enabled=True)
    assert whole.damage == ()
    assert whole.checks[0].not_run == "/nonexistent/pg_checksums: there is no such program"
