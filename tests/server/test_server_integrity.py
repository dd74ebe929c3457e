"""Damage that is planted in the files of a real cluster is found, by the check that is for it; a sound cluster has none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plinth.model.durability import Damage
from plinth.server import Server, connect
from plinth.server.integrity.amcheck import check_checksums, check_database, check_unlogged
from plinth.system.runner import Runner

PAGE_BYTES = 8192
MakeCluster = Callable[..., Server]


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Server:
    """With a table of several pages, all visible and frozen, and its key; stopped."""
    made = make_cluster()
    made.start({"autovacuum": False})
    with connect(made.connection) as control:
        control.execute("CREATE TABLE t (id int PRIMARY KEY, payload text)")
        control.execute("INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 1000) n")
        control.execute("VACUUM (FREEZE) t")
    made.shutdown()
    return made


def file_of(cluster: Server, relation: str) -> Path:
    """The main fork of a relation; the cluster is stopped afterwards."""
    cluster.start({"autovacuum": False})
    with connect(cluster.connection) as control:
        row = control.execute("SELECT pg_relation_filepath(%s)", (relation,)).fetchone()
    cluster.shutdown()
    assert row is not None
    return cluster.layout.data_directory / str(row[0])


def checked(cluster: Server) -> dict[str, Damage]:
    """What is found in the running server, by kind."""
    cluster.start({"autovacuum": False, "ignore_checksum_failure": False})
    with connect(cluster.connection) as control:
        integrity = check_database(control, cluster.layout.installation.major)
    cluster.shutdown()
    assert [check.not_run for check in integrity.checks] == [None] * 4
    return {damage.kind: damage for damage in integrity.damage}


def test_a_sound_cluster_has_no_damage(cluster: Server, runner: Runner):
    assert checked(cluster) == {}
    whole = check_checksums(cluster.layout, cluster.layout.installation, runner, enabled=True)
    assert whole.damage == () and whole.checks[0].not_run is None


def test_a_page_with_a_wrong_byte_is_a_checksum_failure(cluster: Server, runner: Runner):
    file = file_of(cluster, "t")
    with file.open("r+b") as opened:
        opened.seek(PAGE_BYTES + 5000)
        opened.write(b"?")
    assert "invalid page in block 1" in checked(cluster)["checksum failure"].evidence[0]
    whole = check_checksums(cluster.layout, cluster.layout.installation, runner, enabled=True)
    assert whole.damage[0].kind == "checksum failure"
    assert "block 1" in whole.damage[0].evidence[0]


def test_an_index_that_lacks_rows_disagrees_with_its_table(cluster: Server):
    file = file_of(cluster, "t_pkey")
    before = file.read_bytes()
    cluster.start({"autovacuum": False})
    with connect(cluster.connection) as control:
        control.execute("INSERT INTO t SELECT n, 'late' FROM generate_series(1001, 1100) n")
    cluster.shutdown()
    file.write_bytes(before)
    found = checked(cluster)["index and heap disagree"]
    assert found.evidence[0].startswith("t_pkey:")
    assert "lacks matching index tuple" in found.evidence[0]


def test_a_page_that_the_map_wrongly_calls_visible_is_found(cluster: Server):
    visibility = file_of(cluster, "t").with_name(file_of(cluster, "t").name + "_vm")
    before = visibility.read_bytes()
    cluster.start({"autovacuum": False})
    with connect(cluster.connection) as control:
        control.execute("DELETE FROM t WHERE id = 1")
    cluster.shutdown()
    visibility.write_bytes(before)
    assert "pg_check_visible" in checked(cluster)["visibility map wrong"].evidence[0]


def test_an_unlogged_table_is_empty_after_a_crash_and_one_that_is_not_is_named(cluster: Server):
    """The control: one that was filled since the recovery, which the check cannot tell from one that was not emptied."""
    cluster.start({"autovacuum": False})
    with connect(cluster.connection) as control:
        control.execute("CREATE UNLOGGED TABLE scratch AS SELECT generate_series(1, 10)")
    cluster.crash()
    cluster.start({"autovacuum": False})
    with connect(cluster.connection) as control:
        assert check_unlogged(control).damage == ()
        control.execute("INSERT INTO scratch SELECT 1")
        (damage,) = check_unlogged(control).damage
    cluster.shutdown()
    assert damage.kind == "unlogged table not reset"
    assert damage.evidence[0].startswith("scratch (oid ") and "has 1 rows" in damage.evidence[0]


def test_a_table_whose_file_is_gone_is_damaged(cluster: Server):
    """The server reports it as an error of the system (58P01), as it does a device that fails."""
    file_of(cluster, "t").unlink()
    assert "t: could not open file" in checked(cluster)["heap damaged"].evidence[0]


def test_an_extension_that_a_damaged_catalogue_refuses_is_damage(cluster: Server):
    catalogue = file_of(cluster, "pg_extension_name_index")
    with catalogue.open("r+b") as opened:
        opened.seek(PAGE_BYTES)
        opened.write(b"?" * 200)
    cluster.start({"autovacuum": False})
    with connect(cluster.connection) as control:
        integrity = check_database(control, cluster.layout.installation.major)
    cluster.shutdown()
    (damage,) = [damage for damage in integrity.damage if damage.kind == "heap damaged"]
    assert any("extension amcheck cannot be made" in one for one in damage.evidence)
    assert integrity.checks[0].not_run is not None


def test_without_checksums_their_check_is_not_run(cluster: Server, runner: Runner):
    whole = check_checksums(cluster.layout, cluster.layout.installation, runner, enabled=False)
    assert whole.damage == ()
    assert whole.checks[0].not_run is not None and "without data checksums" in whole.checks[0].not_run
