"""External servers: found by libpq's rules, borrowed with our own schema, and given back as they were."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from plinth.model.connection import Connection, Tls
from plinth.model.errors import MissingCapability, Refused, RunError, UsageError
from plinth.model.facts import Installation
from plinth.model.server_spec import ServerSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.external.external_server import ExternalServer
from plinth.server.external.schema import schema_of
from plinth.server.layout import ServerLayout
from plinth.server.server import LocalServer
from plinth.system.clean import clean
from plinth.system.database import connect_unpinned
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.runner import Runner

PASSWORD = "it's secret"
MakeLayout = Callable[..., ServerLayout]


def start(layout: ServerLayout, runner: Runner, journal: Journal, **settings: str | bool) -> LocalServer:
    """A server with a user bench, who has a password and may make schemas in the database bench alone."""
    server = LocalServer(layout, runner, journal)
    server.initdb()
    server.start(settings)
    with connect_unpinned(server.connection) as control:
        control.execute("set password_encryption = 'scram-sha-256'")
        control.execute(f"create role bench login password '{PASSWORD.replace(chr(39), chr(39) * 2)}'")  # type: ignore[arg-type]
        control.execute("create database bench owner bench encoding 'SQL_ASCII' template template0")
    return server


@pytest.fixture(scope="module")
def host(
    installations: dict[str, Installation],
    owner: Owner,
    runner: Runner,
    session_folder: Path,
    session_journal: Journal,
) -> Iterator[LocalServer]:
    """An external server: TCP, scram-sha-256."""
    storage = session_folder / "shared"
    layout = ServerLayout(
        session_journal.run_id,
        "host",
        installations["18"],
        owner,
        ServerSpec(listen="tcp"),
        storage / "host",
        LogFile(storage / "host.log"),
    )
    server = start(layout, runner, session_journal)
    yield server
    server.shutdown()


@pytest.fixture
def at_host(host: LocalServer) -> Connection:
    """How user bench reaches it."""
    return replace(host.connection, user="bench", database="bench", password=PASSWORD)


@pytest.fixture
def string(at_host: Connection) -> str:
    return conninfo(at_host)


def conninfo(to: Connection, **more: str) -> str:
    parts: dict[str, object] = {"host": to.host, "port": to.port, "user": to.user, "dbname": to.database}
    return make_conninfo(**(parts | {"password": to.password} | more))  # type: ignore[arg-type]


def reached(server: ExternalServer) -> Connection:
    return replace(server.connection, options=None, tls=Tls())


def schemas(host: LocalServer) -> set[str]:
    with connect_unpinned(replace(host.connection, database="bench")) as control:
        return {name for (name,) in control.execute("select nspname from pg_namespace where nspname like 'plinth%'")}


class TestWhereAConnectionStringLeads:
    def test_keywords(self, string: str, at_host: Connection) -> None:
        assert reached(ExternalServer(string, "r")) == at_host

    def test_url(self, at_host: Connection) -> None:
        url = f"postgresql://bench:it%27s%20secret@localhost:{at_host.port}/bench?application_name=x"
        assert reached(ExternalServer(url, "r")) == replace(at_host, host="localhost", application_name="x")

    def test_variables(self, at_host: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {
            "PGHOST": at_host.host,
            "PGPORT": str(at_host.port),
            "PGUSER": "bench",
            "PGDATABASE": "bench",
            "PGPASSWORD": PASSWORD,
        }.items():
            monkeypatch.setenv(name, value)
        assert reached(ExternalServer("", "r")) == at_host

    def test_service_and_password_file(
        self, at_host: Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        services, passwords = folder / "services", folder / "passwords"
        services.write_text(f"[lab]\nhost={at_host.host}\nport={at_host.port}\ndbname=bench\nuser=bench\n")
        passwords.write_text(f"{at_host.host}:*:bench:bench:{PASSWORD}\n")
        passwords.chmod(0o600)
        monkeypatch.setenv("PGSERVICEFILE", str(services))
        monkeypatch.setenv("PGPASSFILE", str(passwords))
        server = ExternalServer("service=lab", "r")
        assert reached(server) == at_host
        server.check_alive()

    def test_socket_directory(self, host: LocalServer) -> None:
        sockets = str(host.layout.socket_directory)
        server = ExternalServer(f"host={sockets} port={host.connection.port} user=bench dbname=bench", "r")
        assert reached(server).host == sockets

    def test_options_are_kept(self, string: str) -> None:
        server = ExternalServer(f"{string} options='-c work_mem=1MB'", "r")
        with connect_unpinned(server.connection) as control:
            assert control.execute("select current_setting('work_mem')").fetchone() == ("1MB",)
            assert control.execute("show search_path").fetchone() == (f'"{server.schema}","$user",public',)

    def test_gibberish(self) -> None:
        with pytest.raises(UsageError, match="cannot be read") as caught:
            ExternalServer("host=db1 dbname", "r")
        assert caught.value.where == "server.connection"

    def test_a_wrong_password(self, at_host: Connection) -> None:
        wrong = replace(at_host, password="guess")
        with pytest.raises(RunError, match="cannot connect to the external server") as caught:
            ExternalServer(conninfo(wrong), "r")
        assert "password authentication failed" in "\n".join([caught.value.message, *caught.value.details])
        assert "guess" not in f"{caught.value.message} {caught.value.where} {caught.value.details}"

    def test_nobody_there(self) -> None:
        with pytest.raises(RunError, match=r"No such file|Connection refused"):
            ExternalServer("host=/nowhere user=bench", "r")


def test_our_schema_is_made_and_dropped(host: LocalServer, string: str, journal: Journal) -> None:
    server = ExternalServer(string, "ramdisk-1.x")
    server.open(journal)
    assert schemas(host) == {"plinth_ramdisk-1.x"}
    (entry,) = journal.entries
    assert entry.step.undo is not None
    assert PASSWORD not in entry.step.model_dump_json()
    with connect_unpinned(server.connection) as load:
        load.execute("create table pgbench_accounts as select 1 as aid")
        load.execute("create view seen as select * from pgbench_accounts")
    server.close(journal)
    server.close(journal)
    assert schemas(host) == set()
    assert journal.entries == ()


def test_our_tables_go_before_others_of_the_same_name(string: str, at_host: Connection, journal: Journal) -> None:
    with connect_unpinned(at_host) as theirs:
        theirs.execute("create table public.pgbench_accounts as select 'precious' as aid")
    server = ExternalServer(string, "r")
    server.open(journal)
    with connect_unpinned(server.connection) as load:
        assert load.execute("select aid from pgbench_accounts").fetchone() == ("precious",)
        load.execute("create table pgbench_accounts (aid int)")
        assert load.execute("select count(*) from pgbench_accounts").fetchone() == (0,)
        load.execute("drop table pgbench_accounts")
    server.close(journal)
    with connect_unpinned(at_host) as theirs:
        assert theirs.execute("select aid from public.pgbench_accounts").fetchone() == ("precious",)
        theirs.execute("drop table public.pgbench_accounts")


def test_a_schema_of_that_name_is_left_alone(
    host: LocalServer, string: str, at_host: Connection, journal: Journal
) -> None:
    with connect_unpinned(at_host) as theirs:
        theirs.execute("create schema plinth_r")
    try:
        with pytest.raises(Refused, match="the schema plinth_r is there already"):
            ExternalServer(string, "r").open(journal)
        assert journal.entries == ()
        assert schemas(host) == {"plinth_r"}
    finally:
        with connect_unpinned(at_host) as theirs:
            theirs.execute("drop schema plinth_r")


@pytest.mark.parametrize(("comment", "found"), [("null", ""), ("'mine now'", "but 'mine now'")])
def test_a_schema_without_our_label_is_not_dropped(
    host: LocalServer, string: str, at_host: Connection, journal: Journal, comment: str, found: str
) -> None:
    server = ExternalServer(string, "r")
    server.open(journal)
    with connect_unpinned(at_host) as theirs:
        theirs.execute(f"comment on schema plinth_r is {comment}")  # type: ignore[arg-type]
    with pytest.raises(Refused, match=f"does not have our label 'plinth-r' as its comment {found}".strip()):
        server.close(journal)
    assert schemas(host) == {"plinth_r"}
    with connect_unpinned(at_host) as theirs:
        theirs.execute("comment on schema plinth_r is 'plinth-r'")
    server.close(journal)
    assert schemas(host) == set()


def test_a_user_who_may_not_make_a_schema(at_host: Connection, journal: Journal) -> None:
    server = ExternalServer(conninfo(at_host, dbname="postgres"), "r")
    with pytest.raises(RunError, match=r"cannot make the schema plinth_r: permission denied .*42501") as caught:
        server.open(journal)
    assert caught.value.hint == "grant create on database postgres to bench"


def test_facts_with_gaps_for_what_we_may_not_see(string: str) -> None:
    facts = ExternalServer(string, "r").facts()
    assert facts.on_this_machine is True
    assert facts.version_num // 10_000 == 18
    assert (facts.installation, facts.data_directory, facts.data_checksums) == (None, None, True)
    assert {gap.what for gap in facts.gaps} == {"setting data_directory", "setting config_file"}
    assert "Plinth did not start this server." in facts.run_as_reason
    assert "listen_addresses" in {setting.name for setting in facts.settings}


def test_a_server_that_goes_away(string: str, host: LocalServer) -> None:
    server = ExternalServer(string, "r")
    assert server.alive()
    host.shutdown()
    try:
        assert not server.alive()
        with pytest.raises(RunError, match="cannot connect"):
            server.check_alive()
    finally:
        host.start({})


_DIES_WITH_A_SCHEMA = """
import os, signal, sys
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.external.external_server import ExternalServer
from plinth.system.journal import Journal

ExternalServer(sys.argv[1], "killed").open(Journal.create("killed", UNDO_HANDLERS))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_clean_drops_what_a_killed_plinth_left(host: LocalServer, string: str, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _DIES_WITH_A_SCHEMA, string], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert schemas(host) == {"plinth_killed"}
    error = clean(UNDO_HANDLERS, "killed").error()
    assert isinstance(error, RunError)
    assert "no password supplied" in "\n".join(error.details)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert clean(UNDO_HANDLERS, "killed").error() is None
    assert schemas(host) == set()


def test_a_long_run_id_gives_a_short_name_of_its_own() -> None:
    names = [schema_of(f"plinth-{'long' * 15}-{number}") for number in range(3)]
    assert len(set(names)) == 3
    assert {len(name) for name in names} == {63}
    assert schema_of("plinth-disk-1") == "plinth_disk-1"


class TestTls:
    @pytest.fixture
    def secured(
        self, make_layout: MakeLayout, runner: Runner, journal: Journal, owner: Owner, folder: Path
    ) -> Iterator[Connection]:
        """A server that takes plain and encrypted connections."""
        openssl = shutil.which("openssl")
        assert openssl is not None, "this test needs the package openssl"
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        subprocess.run(
            [
                *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"),
                *("-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
        os.chown(key, owner.uid, owner.gid)
        server = start(
            make_layout("17", listen="tcp"),
            runner,
            journal,
            ssl=True,
            ssl_key_file=str(key),
            ssl_cert_file=str(certificate),
        )
        self.server = server
        yield replace(server.connection, user="bench", database="bench", password=PASSWORD)
        server.shutdown()

    @staticmethod
    def is_encrypted(string: str) -> bool:
        with connect_unpinned(ExternalServer(string, "r").connection) as control:
            (seen,) = control.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()").fetchone() or (None,)
        assert isinstance(seen, bool)
        return seen

    def test_where_both_go_sslmode_decides(self, secured: Connection) -> None:
        assert self.is_encrypted(conninfo(secured))
        assert self.is_encrypted(conninfo(secured, sslmode="require"))
        assert not self.is_encrypted(conninfo(secured, sslmode="disable"))

    def test_a_server_that_insists(self, secured: Connection) -> None:
        hba = self.server.layout.data_directory / "pg_hba.conf"
        hba.write_text("local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        self.server.shutdown()
        self.server.start(self.server.settings)
        secured = replace(secured, port=self.server.connection.port)
        assert self.is_encrypted(conninfo(secured))
        with pytest.raises(RunError, match="cannot connect to the external server") as caught:
            ExternalServer(conninfo(secured, sslmode="disable"), "r")
        assert "no encryption" in "\n".join([caught.value.message, *caught.value.details])

    def test_what_is_left_behind_is_found_again(self, secured: Connection, journal: Journal) -> None:
        server = ExternalServer(conninfo(secured, sslmode="require"), "r")
        server.open(journal)
        entry = journal.entries[-1]
        assert entry.step.undo is not None
        assert "sslmode=require" in entry.step.undo.path
        server.close(journal)


def test_of_several_hosts_the_one_that_takes_us(host: LocalServer, at_host: Connection) -> None:
    sockets = str(host.layout.socket_directory)
    string = conninfo(at_host).replace(f"host={at_host.host}", f"host=/nowhere,{sockets}")
    assert reached(ExternalServer(string, "r")).host == sockets


def test_a_way_to_connect_that_is_not_spoken(string: str) -> None:
    with pytest.raises(MissingCapability, match="replication") as caught:
        ExternalServer(f"{string} replication=database", "r")
    assert (caught.value.exit_code, caught.value.where) == (5, "server.connection")
