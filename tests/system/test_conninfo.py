"""Connection strings, services, password files and variables: as libpq resolves them, without connecting."""

import os
import socket
from pathlib import Path

import pytest

from plinth.model.connection import Connection, Host, Tls
from plinth.model.errors import MissingCapability, UsageError
from plinth.system.conninfo import hide_variables, keywords, place, resolve
from plinth.system.libpq import stopped

HERE = "host=db1 user=bench dbname=bench"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without PG* variables and files."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def pgpass(home: Path, lines: str, mode: int = 0o600) -> None:
    path = home / ".pgpass"
    path.write_text(lines)
    path.chmod(mode)


def test_defaults() -> None:
    found = resolve("user=bench")
    assert (found.database, found.port, found.password, found.application_name) == ("bench", 5432, None, "plinth")
    assert found.host.startswith("/")
    assert (found.tls.sslmode, found.channel_binding, found.target_session_attrs) == ("prefer", "prefer", "any")
    assert resolve().user == resolve("").database


def test_variables_are_resolved_though_they_are_hidden_from_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db1")
    hide_variables()
    assert resolve().host == "db1"
    assert stopped("load_balance_hosts='stop here'").parameters.get("host") != "db1", "libpq does not see it afterwards"
    assert os.environ["PGHOST"] == "db1"


def test_keywords_and_urls_say_the_same() -> None:
    words = resolve("host=db1,db2 port=5433,5434 user=u dbname=d password='a b' sslmode=require connect_timeout=7")
    url = resolve("postgresql://u:a%20b@db1:5433,db2:5434/d?sslmode=require&connect_timeout=7")
    assert words == url
    assert words.hosts == (
        Host(host="db1", port=5433, password="a b"),
        Host(host="db2", port=5434, password="a b"),
    )
    assert words.connect_timeout_s == 7


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "PGHOST": "db9",
        "PGPORT": "6000",
        "PGUSER": "u",
        "PGDATABASE": "d",
        "PGPASSWORD": "p",
        "PGOPTIONS": "-c work_mem=1MB",
        "PGTZ": "Europe/Prague it is",
        "PGAPPNAME": "mine",
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": "/ca.crt",
        "PGTARGETSESSIONATTRS": "primary",
        "PGLOADBALANCEHOSTS": "random",
        "PGCHANNELBINDING": "require",
        "PGREQUIREAUTH": "scram-sha-256",
        "PGCONNECT_TIMEOUT": "3",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = resolve()
    assert (found.host, found.port, found.user, found.database, found.password) == ("db9", 6000, "u", "d", "p")
    assert found.options == "-c timezone=Europe/Prague\\ it\\ is -c work_mem=1MB"
    assert (found.application_name, found.connect_timeout_s) == ("mine", 3)
    assert (found.tls.sslmode, found.tls.sslrootcert) == ("verify-full", "/ca.crt")
    assert (found.target_session_attrs, found.load_balance_hosts) == ("primary", True)
    assert (found.channel_binding, found.require_auth) == ("require", "scram-sha-256")
    assert resolve("host=db1 port=1").host == "db1"


def test_services(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = home / "services"
    services.write_text("# ours\n[lab]\nhost=db7\nport=7777\nuser=lab_user\nsslmode=disable\n[other]\nhost=no\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPORT", "1")
    found = resolve("service=lab dbname=d")
    assert (found.host, found.port, found.user, found.database) == ("db7", 7777, "lab_user", "d")
    assert resolve("service=lab host=db8").host == "db8"
    monkeypatch.setenv("PGSERVICE", "lab")
    assert resolve().host == "db7"
    with pytest.raises(UsageError, match='definition of service "nope" not found'):
        resolve("service=nope")
    (home / ".pg_service.conf").write_text("[mine]\nhost=db6\n")
    monkeypatch.delenv("PGSERVICEFILE")
    assert resolve("service=mine").host == "db6"
    folder = home / "etc"
    folder.mkdir()
    (folder / "pg_service.conf").write_text("[system]\nhost=db5\n")
    monkeypatch.setenv("PGSYSCONFDIR", str(folder))
    assert resolve("service=system").host == "db5"


def test_password_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pgpass(home, "# ours\ndb1:5432:bench:bench:one\n*:*:*:bench:any\\:\\\\one\nlocalhost:*:*:local:socket\n")
    assert resolve(HERE).password == "one"
    assert resolve(f"{HERE} port=1").password == "any:\\one"
    assert resolve("host=db1 user=nobody").password is None
    assert resolve("user=local").password == "socket"
    assert resolve(f"{HERE} password=given").password == "given"
    several = resolve("host=db1,db2 user=bench dbname=bench")
    assert [host.password for host in several.hosts] == ["one", "any:\\one"]
    other = home / "other"
    other.write_text("*:*:*:*:other\n")
    other.chmod(0o600)
    assert resolve(f"{HERE} passfile={other}").password == "other"
    monkeypatch.setenv("PGPASSFILE", str(other))
    assert resolve(HERE).password == "other"


def test_a_password_file_that_others_may_read_is_not_used_and_says_so(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pgpass(home, "*:*:*:*:open\n", 0o644)
    assert resolve(HERE).password is None
    assert "has group or world access" in capfd.readouterr().err


def test_lists_of_hosts() -> None:
    found = resolve("host=a,,/run hostaddr=127.0.0.1,::1, port=1,,3 user=u")
    assert [(host.host, host.hostaddr, host.port) for host in found.hosts] == [
        ("a", "127.0.0.1", 1),
        ("", "::1", 5432),
        ("/run", None, 3),
    ]
    assert [host.port for host in resolve("host=a,b port=9").hosts] == [9, 9]
    assert [host.hostaddr for host in resolve("hostaddr=127.0.0.1,127.0.0.2").hosts] == ["127.0.0.1", "127.0.0.2"]
    assert resolve("host=a,b").only(Host(host="b", port=2)).hosts == (Host(host="b", port=2),)


def test_default_files(home: Path) -> None:
    assert resolve(HERE).tls == Tls(sslmode="prefer", ssl_min_protocol_version="TLSv1.2")
    folder = home / ".postgresql"
    folder.mkdir()
    for name in ("root.crt", "postgresql.crt", "postgresql.key", "root.crl"):
        (folder / name).touch()
    tls = resolve(HERE).tls
    found = (tls.sslrootcert, tls.sslcert, tls.sslkey, tls.sslcrl)
    assert found == tuple(str(folder / name) for name in ("root.crt", "postgresql.crt", "postgresql.key", "root.crl"))
    assert resolve(f"{HERE} sslcertmode=disable").tls.sslcert is None
    named = resolve(f"{HERE} sslrootcert=system sslcert=/c sslkey=/k sslcrldir=/d").tls
    assert (named.sslmode, named.sslrootcert, named.sslcert) == ("verify-full", "system", "/c")
    assert (named.sslkey, named.sslcrldir) == ("/k", "/d")


def test_nothing_is_connected() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        resolve(f"host=127.0.0.1 port={listener.getsockname()[1]}")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("string", "words"),
    [
        ("host=db1 dbname", 'missing "="'),
        ("hots=db1", "invalid connection option"),
        ("host=a,b port=1,2,3", "could not match 3 port numbers to 2 hosts"),
        ("host=a,b hostaddr=127.0.0.1", "could not match 2 host names to 1 hostaddr values"),
        ("port=70000", 'invalid port number: "70000"'),
        ("port=x", 'invalid port number: "x"'),
        ("sslmode=maybe", 'invalid sslmode value: "maybe"'),
        ("sslmode=require sslrootcert=system", "weak sslmode"),
        ("sslmode=prefer sslnegotiation=direct", "weak sslmode"),
        ("channel_binding=maybe", "invalid channel_binding value"),
        ("require_auth=magic", "invalid require_auth value"),
        ("target_session_attrs=any-old", "invalid target_session_attrs value"),
        ("load_balance_hosts=maybe", "invalid load_balance_hosts value"),
        ("ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2", "invalid SSL protocol version range"),
        ("connect_timeout=soon", 'invalid integer value "soon" for connection option "connect_timeout"'),
        ("requirepeer=no-such-user", "no user 'no-such-user'"),
    ],
)
def test_what_libpq_does_not_take(string: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(string, "server.connection")
    assert words in caught.value.message
    assert caught.value.where == "server.connection"


@pytest.mark.parametrize(
    "string",
    [
        "replication=database",
        "replication=true",
        "sslcertmode=require",
        "ssl_min_protocol_version=TLSv1 ssl_max_protocol_version=TLSv1.1",
        "min_protocol_version=3.2",
    ],
)
def test_what_is_not_spoken(string: str) -> None:
    with pytest.raises(MissingCapability) as caught:
        resolve(string)
    assert caught.value.hint == "see docs/guides/connections.md for what is supported"


@pytest.mark.parametrize(
    "string",
    [
        "postgresql://u:geheim@[::1/d",
        "host=a password=geheim sslmode=x",
        "host=a password='geheim with it' port",
        "postgresql://u:geheim@h:x/d?sslmode=y",
        "host=a sslpassword=geheim port=x",
    ],
)
def test_errors_keep_passwords(string: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(string)
    assert "geheim" not in f"{caught.value} {caught.value.details} {caught.value.__cause__}"


def test_no_representation_shows_secrets() -> None:
    found = resolve("host=a,b password=geheim sslpassword=geheim sslcert=/c")
    assert (found.password, found.tls.sslpassword) == ("geheim", "geheim")
    assert "geheim" not in f"{found!r} {found} {place(found)}"


def test_the_way_back_to_keywords() -> None:
    string = "host=db1 hostaddr=::1 port=7 user=u dbname=d sslmode=verify-ca sslrootcert=/ca channel_binding=require"
    found = resolve(string)
    given = {name: value for name, value in keywords(found).items() if value is not None}
    assert resolve(" ".join(f"{name}={value}" for name, value in given.items() if value != "")) == found
    assert place(found) == "host=db1 hostaddr=::1 port=7 user=u dbname=d sslmode=verify-ca sslrootcert=/ca"
    assert place(Connection(host="/run", port=1, user="u", database="d")) == "host=/run port=1 user=u dbname=d"


def test_an_engine_of_openssl_is_refused_since_libpq_would_load_it(tmp_path):
    for key in (f"{tmp_path}/engine.so:key", "pkcs11:object"):
        with pytest.raises(MissingCapability, match="sslkey=ENGINE:KEY"):
            resolve(f"host=127.0.0.1 port=1 sslcert={tmp_path}/cert sslkey={key}")
