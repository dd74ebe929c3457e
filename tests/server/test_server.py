"""The life of managed servers of every version: made, started, changed, read back, stopped."""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from plinth.model.errors import RunError
from plinth.model.facts import Installation
from plinth.server.layout import MEMORY, ServerLayout
from plinth.server.processes import serving
from plinth.server.server import LocalServer
from plinth.server.settings.ask import OWNED, configuration_files
from plinth.system.database import connect_unpinned
from plinth.system.journal import Journal
from plinth.system.owner import Owner
from plinth.system.runner import CommandRecord, Runner
from servers import EVERY_VERSION

MakeLayout = Callable[..., ServerLayout]
MakeServer = Callable[..., LocalServer]


def ask(server: LocalServer, query: str) -> object:
    """The first column of the query's only row."""
    with connect_unpinned(server.connection) as control:
        row = control.execute(query).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return row[0]


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("version", EVERY_VERSION)
def test_life_of_a_server(
    version: str, checksums: bool, make_layout: MakeLayout, journal: Journal, owner: Owner
) -> None:
    ran: list[CommandRecord] = []
    layout = make_layout(version, data_checksums=checksums, wal_segment_size_mb=4)
    server = LocalServer(layout, Runner(ran.append), journal)
    server.initdb()
    assert not server.alive()
    server.start({"shared_buffers": "32MB", "wal_buffers": -1, "fsync": False})
    pid = server.postmaster_pid
    assert server.alive() and pid is not None
    assert Path(f"/proc/{pid}").stat().st_uid == owner.uid != 0
    assert ask(server, "show wal_segment_size") == "4MB"
    facts = server.facts()
    assert (facts.version, facts.installation, facts.data_checksums) == (
        ask(server, "show server_version"),
        layout.installation,
        checksums,
    )
    assert (facts.run_as, facts.run_as_reason, facts.data_directory) == (
        owner.name,
        owner.reason,
        str(layout.data_directory),
    )
    settings = {setting.name: setting for setting in facts.settings}
    buffers = settings["shared_buffers"]
    assert (buffers.asked, buffers.value, buffers.unit, buffers.source) == ("32MB", "4096", "8kB", "configuration file")
    assert settings["wal_buffers"].asked == "-1"
    assert int(settings["wal_buffers"].value) > 0, "worked out by the server"
    assert settings["fsync"].value == "off"
    sockets, memory, started = (entry.step for entry in journal.entries)
    assert (sockets, started) == (layout.sockets_step(), layout.start_step())
    assert memory.id == layout.step_id(MEMORY)
    assert layout.socket_directory.stat().st_mode & 0o777 == 0o700
    server.shutdown()
    assert not server.alive()
    assert not layout.socket_directory.exists()
    assert serving(layout.data_directory) == []
    assert journal.entries == ()
    planned = [(step.argv, step.user) for step in layout.steps() if step.argv]
    done = [(command.argv, None if owner.is_current_user else command.user) for command in ran]
    assert [command for command in done if command in planned] == planned, "what ran is what the plan says"


def test_a_server_starts_again_with_its_data(server: LocalServer) -> None:
    with connect_unpinned(server.connection) as control:
        control.execute("create table kept as select 42 as answer")
    server.shutdown()
    server.start({})
    with connect_unpinned(server.connection) as control:
        assert control.execute("select answer from kept").fetchone() == (42,)
        control.execute("drop table kept")


def test_stop_is_quiet_when_nothing_runs(server: LocalServer) -> None:
    server.shutdown()
    server.shutdown()
    assert not server.alive()
    with pytest.raises(RunError, match="has not been started"):
        server.check_alive()


def test_settings_are_applied_by_reload_or_restart_as_needed(server: LocalServer) -> None:
    server.shutdown()
    assert server.apply({"work_mem": "8MB"}) == ("start", ("work_mem",))
    first = server.postmaster_pid
    assert server.apply({"work_mem": "8MB"}) == ("nothing", ())
    assert server.apply({"WORK_MEM": "16MB", "fsync": "no"}) == ("reload", ("fsync", "work_mem"))
    assert (ask(server, "show work_mem"), ask(server, "show fsync")) == ("16MB", "off")
    assert server.postmaster_pid == first
    assert server.apply({}) == ("reload", ("fsync", "work_mem"))
    assert (ask(server, "show work_mem"), ask(server, "show fsync")) == ("4MB", "on"), "left out is back to default"
    assert server.apply({"shared_buffers": "64MB"}) == ("restart", ("shared_buffers",))
    assert server.postmaster_pid != first
    assert ask(server, "show shared_buffers") == "64MB"


def test_settings_of_an_extension_come_with_its_library(server: LocalServer) -> None:
    asked = {"shared_preload_libraries": "pg_stat_statements, auto_explain", "pg_stat_statements.max": 200}
    assert server.apply(asked).how == "restart"
    assert ask(server, "show pg_stat_statements.max") == "200"
    assert server.apply(asked | {"auto_explain.log_min_duration": "3s"}).how == "reload"
    settings = {setting.name: setting for setting in server.facts().settings}
    assert settings["auto_explain.log_min_duration"].value == "3000"
    assert settings["shared_preload_libraries"].asked == "pg_stat_statements, auto_explain"


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"pg_stat_statements.max": 200}, "pg_stat_statements.max: the server does not know it; no library"),
        ({"work_mem": "100.5kB"}, "work_mem: asked '100.5kB', got 100kB"),
        ({"checkpoint_timeout": "90500ms"}, "checkpoint_timeout: asked '90500ms', got 90s"),
        ({"shared_buffers": "20001kB"}, "shared_buffers: asked '20001kB', got 2500 x 8kB"),
        ({"archive_command": "/bin/true"}, "archive_command: asked '/bin/true', got (disabled)"),
        (
            {"shared_preload_libraries": "auto_explain", "auto_explain.log_format": "yamml"},
            "auto_explain.log_format: asked 'yamml', got text",
        ),
    ],
)
@pytest.mark.parametrize("how", ["start", "apply"])
def test_what_was_not_taken_is_an_error(
    server: LocalServer, asked: Mapping[str, str | int], complaint: str, how: str
) -> None:
    if how == "start":
        server.shutdown()
    with pytest.raises(RunError) as caught:
        server.apply(asked)
    assert complaint in caught.value.message
    assert caught.value.where is not None and "pg_settings" in caught.value.where


def test_every_setting_that_was_not_taken_is_named(server: LocalServer) -> None:
    with pytest.raises(RunError) as caught:
        server.apply({"work_mem": "100.5kB", "maintenance_work_mem": "64MB", "a.b": 1})
    assert caught.value.message.startswith("2 settings were not taken: work_mem:")
    assert [line.partition(":")[0] for line in caught.value.details] == ["a.b"]


def test_what_was_not_taken_is_an_error_again(server: LocalServer) -> None:
    for _ in range(2):
        with pytest.raises(RunError, match="work_mem: asked"):
            server.apply({"work_mem": "100.5kB"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_line_prefix", "it's 100 \\ a 'test' # \\n %m "),
        ("wal_compression", "on"),
        ("synchronous_commit", "false"),
        ("timezone", "utc"),
        ("datestyle", "iso"),
        ("log_file_mode", "0640"),
        ("random_page_cost", 1.1),
        ("wal_writer_delay", "1s"),
        ("zero_damaged_pages", True),
        ("huge_pages", "try"),
        ("autovacuum_work_mem", -1),
        ("log_min_messages", "debug"),
        ("transaction_buffers", 0),
    ],
)
def test_what_was_taken_in_another_spelling(server: LocalServer, name: str, value: str | float) -> None:
    server.apply({name: value})
    if name == "log_line_prefix":
        assert ask(server, "show log_line_prefix") == value


def test_a_change_behind_our_back_is_seen(make_server: MakeServer) -> None:
    """ALTER SYSTEM goes before our configuration."""
    server = make_server()
    server.start({"work_mem": "8MB"})
    with connect_unpinned(server.connection) as control:
        control.execute("alter system set work_mem = '1MB'")
    with pytest.raises(RunError, match=r"work_mem: asked '16MB', got 1024kB .*postgresql\.auto\.conf"):
        server.apply({"work_mem": "16MB"})
    assert server.alive()


def test_a_reload_of_what_needs_a_restart_is_an_error(server: LocalServer) -> None:
    with pytest.raises(RunError, match=r"shared_buffers: asked '64MB', got .* waits for a restart"):
        server.reload({"shared_buffers": "64MB"})


def test_tcp_takes_a_password(make_server: MakeServer) -> None:
    server = make_server(listen="tcp")
    server.start({})
    assert server.connection.host == "127.0.0.1"
    assert server.connection.password is not None
    assert ask(server, "select inet_server_addr()::text") == "127.0.0.1/32"
    secret = ask(server, "select rolpassword from pg_authid where rolname = 'postgres'")
    assert str(secret).startswith("SCRAM-SHA-256$")
    assert server.connection.password not in repr(server.connection)
    before = server.connection
    server.shutdown()
    server.start({})
    assert server.connection == before


def test_a_unix_server_listens_on_nothing_else(make_server: MakeServer) -> None:
    server = make_server(port=6001)
    server.start({})
    assert ask(server, "show listen_addresses") == ""
    assert (Path(server.connection.host) / ".s.PGSQL.6001").is_socket()


def test_inherited_variables_lead_nowhere(make_server: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGHOST": "/nowhere",
        "PGPORT": "1",
        "PGSERVICE": "nothing",
        "PGOPTIONS": "-c work_mem=1MB",
        "PGDATA": "/nowhere",
        "PGTZ": "Asia/Tokyo",
        "PGSSLMODE": "verify-full",
    }.items():
        monkeypatch.setenv(name, value)
    server = make_server()
    server.start({"work_mem": "8MB", "timezone": "UTC"})
    assert ask(server, "show work_mem") == "8MB"
    assert ask(server, "show timezone") == "UTC"
    assert os.environ["PGSERVICE"] == "nothing", "the environment stays as it was"


def test_settings_that_plinth_owns_are_settings(server: LocalServer) -> None:
    with connect_unpinned(server.connection) as control:
        known = {name for (name,) in control.execute("select name from pg_settings")}
    newer = set(configuration_files(19)) - set(configuration_files(server.layout.installation.major))
    assert set(OWNED) - known == newer


def test_checksums_are_asked_for_as_each_version_wants(
    make_layout: MakeLayout, installations: Mapping[str, Installation]
) -> None:
    layout = make_layout("18", data_checksums=False)
    step = layout.initdb_step()
    assert step.argv is not None and "--no-data-checksums" in step.argv
    older = make_layout("17", data_checksums=False).initdb_step()
    assert older.argv is not None and not any("checksums" in word for word in older.argv)
    assert step.argv[0] == f"{installations['18'].bindir}/initdb"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_text_is_text_in_any_encoding_of_a_database(make_server: MakeServer, encoding: str) -> None:
    server = make_server()
    server.start({})
    with connect_unpinned(server.connection) as control:
        control.execute(f"create database other template template0 encoding '{encoding}' locale 'C'".encode())
    with connect_unpinned(replace(server.connection, database="other")) as control:
        name = "表" if encoding == "EUC_JP" else "tablé"
        control.execute(f'create table "{name}" (i int) partition by range (i)'.encode())
        found = control.execute(
            "select relname, partstrat, relkind::text, current_setting('server_encoding')"
            " from pg_class join pg_partitioned_table on partrelid = oid"
        ).fetchone()
        assert found == (name, "r", "p", encoding)


def test_a_server_that_is_recovering_from_a_crash_of_its_own_is_shut_down(make_server):
    """PostgreSQL 18 that is told to just when it begins the recovery never ends."""
    server = make_server()
    server.start({"fsync": False})
    with connect_unpinned(server.connection) as control:
        backend = control.info.backend_pid
        os.kill(backend, signal.SIGSEGV)
        with pytest.raises(psycopg.OperationalError):
            control.execute("SELECT pg_sleep(60)")
    server.wait_out_recovery(backend)
    server.shutdown()
    assert "database system is shut down" in "\n".join(server.layout.log.path.read_text().splitlines()[-3:])


def test_what_was_written_without_fsync_is_synced_before_a_server_that_relies_on_it(
    make_layout: MakeLayout, journal: Journal
) -> None:
    """Its checkpoints flush only what they write themselves: a power cut would lose the rest of an honest disk's data."""
    ran: list[CommandRecord] = []
    server = LocalServer(make_layout("18"), Runner(ran.append), journal)
    server.initdb()

    def syncs() -> int:
        return sum(command.argv[0] == "sync" and str(server.layout.data_directory) in command.argv for command in ran)

    try:
        for settings, count, how in (
            ({}, 0, "start"),
            ({"fsync": "of"}, 0, "reload"),
            ({"fsync": False, "work_mem": "5MB"}, 0, "reload"),
            ({"work_mem": "5MB"}, 1, "reload"),
            ({"fsync": "on"}, 1, "reload"),
            ({"fsync": "off", "shared_buffers": "16MB"}, 1, "restart"),
            ({"FSYNC": "0", "shared_buffers": "17MB"}, 1, "restart"),
            ({"fsync": "yes"}, 2, "restart"),
        ):
            assert server.apply(settings).how == how, settings
            assert syncs() == count, settings
            assert ask(server, "select setting from pg_settings where name = 'fsync'") == (
                "off" if settings.get("fsync", settings.get("FSYNC", "on")) in ("of", "off", "0", False) else "on"
            )
    finally:
        server.shutdown()
