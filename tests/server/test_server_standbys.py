"""Standbys made by a real pg_basebackup, of each version: their places, their upstream, and that they follow."""

from dataclasses import replace

import pytest

from plinth.model.errors import PlinthError, RunError
from plinth.server.replication import standby as module
from plinth.server.replication.standby import LocalStandby, await_caught_up
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.system.log_file import LogFile


def ignore(progress) -> None:
    """Nobody looks."""


@pytest.fixture
def make_standby(folder, runner, journal):
    """A standby of a node, in the same storage; not made yet."""

    def make(upstream: LocalServer, name: str, **places) -> LocalStandby:
        data = upstream.layout.data_directory.with_name(name)
        tablespaces = {space: data.with_name(f"{name}.{space}") for space in upstream.layout.tablespaces}
        layout = replace(
            upstream.layout,
            name=name,
            data_directory=data,
            log=LogFile(folder / f"{name}.log"),
            standby=name,
            upstream=upstream.layout,
            wal_directory=None,
            tablespaces=tablespaces,
            spec=upstream.layout.spec.model_copy(update={"port": None}),
        )
        return LocalStandby(replace(layout, **places), upstream, runner, journal)

    return make


def execute(server: LocalServer, *statements: str):
    with connect_unpinned(server.connection) as control:
        *_, done = [control.execute(statement.encode()) for statement in statements]
        return done.fetchall() if done.description else None


@pytest.mark.long
@pytest.mark.parametrize("version", ["debian", "17", "18"])
def test_a_cascade_follows_and_is_read_back(make_layout, make_standby, runner, journal, version):
    layout = make_layout(version, data_checksums=True)
    bulk = layout.data_directory.with_name("bulk")
    primary = LocalServer(replace(layout, tablespaces={"bulk": bulk}), runner, journal)
    primary.initdb()
    primary.start({"shared_buffers": "16MB"})
    primary.make_tablespaces()
    execute(primary, "create table t tablespace bulk as select generate_series(1, 1000) as n")
    a = make_standby(primary, "a", wal_directory=layout.data_directory.with_name("a.wal"))
    duration_s, size_bytes = a.back_up(ignore)
    assert duration_s > 0
    assert 20e6 < size_bytes < 200e6
    a.start({"shared_buffers": "24MB"})
    b = make_standby(a, "b")
    b.back_up(ignore)
    b.start({})
    primary.apply({"shared_buffers": "16MB", "synchronous_standby_names": "FIRST 1 (a)"})
    execute(primary, "set synchronous_commit = remote_apply", "insert into t select generate_series(1, 500)")
    found = await_caught_up(primary, [a, b], ignore)
    assert {name: (one.upstream, one.sync_state, one.in_recovery, one.slot_active) for name, one in found.items()} == {
        "a": ("primary", "sync", True, True),
        "b": ("a", "async", True, True),
    }
    for standby in (a, b):
        assert execute(standby, "select count(*) from t") == [(1500,)]
    facts = a.facts()
    assert facts.wal_directory == str(a.layout.wal_directory)
    assert facts.tablespaces == {"bulk": str(a.layout.tablespaces["bulk"])}
    assert {one.name: one.value for one in facts.settings}["shared_buffers"] in ("24MB", "3072")
    primary.shutdown()  # the primary first: it ends when its standbys have all
    for standby in (a, b):
        standby.shutdown()
    primary.start({})
    for standby in (a, b):
        standby.start({})
    assert await_caught_up(primary, [a, b], ignore)["b"].slot_active
    for server in (primary, a, b):
        server.shutdown()


def test_it_logs_in_by_tcp_with_the_password_of_its_primary(make_layout, make_standby, runner, journal):
    layout = make_layout("18", listen="tcp")
    primary = LocalServer(layout, runner, journal)
    primary.initdb()
    primary.start({})
    a = make_standby(primary, "a")
    a.back_up(ignore)
    a.start({})
    await_caught_up(primary, [a], ignore)
    with connect_unpinned(a.connection) as control:
        assert control.execute(b"select pg_is_in_recovery()").fetchone() == (True,)
    assert a.connection.port != primary.connection.port
    # Its own password is set although commits wait for a standby that is not there yet.
    primary.shutdown()
    primary.start({"synchronous_standby_names": "a"})
    for server in (primary, a):
        server.shutdown()


@pytest.fixture
def pair(make_server, make_standby):
    primary = make_server()
    primary.start({})
    standby = make_standby(primary, "a")
    yield primary, standby
    standby.shutdown()


def test_a_backup_that_was_cut_short_is_made_again(pair):
    primary, standby = pair
    execute(primary, "select pg_create_physical_replication_slot('a')")
    standby.back_up(ignore)
    standby.start({})
    assert await_caught_up(primary, [standby], ignore)["a"].slot == "a"


def test_no_slot_is_left(make_server, make_standby):
    primary = make_server()
    primary.start({"max_replication_slots": 1})
    execute(primary, "select pg_create_physical_replication_slot('theirs')")
    with pytest.raises(PlinthError) as caught:
        make_standby(primary, "a").back_up(ignore)
    assert "all replication slots are in use" in "\n".join(caught.value.details)


def test_one_that_does_not_follow_is_reported(pair, monkeypatch):
    primary, standby = pair
    monkeypatch.setattr(module, "NO_PROGRESS_S", 0.5)
    standby.back_up(ignore)
    standby.start({"recovery_min_apply_delay": "1h"})
    execute(primary, "create table late ()")
    with pytest.raises(RunError, match=r"standby a has not caught up: .* bytes behind, its slot active"):
        await_caught_up(primary, [standby], ignore)
    execute(standby, "select pg_promote()")
    with pytest.raises(RunError, match="a is not in recovery"):
        await_caught_up(primary, [standby], ignore)
