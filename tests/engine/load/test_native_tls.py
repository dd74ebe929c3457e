"""Encryption: for every connection string, what libpq does against the same server is what the load engine does."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from certificates import Authority, Issued
from native_server import PASSWORD, Finished, Load, Server
from plinth import _native
from plinth.system.conninfo import resolve
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from servers import all_installations

HBA = """\
local all all trust
hostssl all cert_user 127.0.0.1/32 cert
hostssl all tls_user 127.0.0.1/32 scram-sha-256
hostnossl all plain_user 127.0.0.1/32 scram-sha-256
host all both_user 127.0.0.1/32 scram-sha-256
host all md5_user 127.0.0.1/32 md5
host all trusted 127.0.0.1/32 trust
"""
PLAIN, REFUSED = "plain", "refused"
ENCRYPTED = "TLSv1.3"
# An error is what a statement can tell us from within a load.
TELL = """do $$ begin raise exception 'seen <%>',
(select coalesce(version, 'plain') from pg_stat_ssl where pid = pg_backend_pid()); end $$;"""

Outcome = Callable[[str], str]


@dataclass(frozen=True)
class Encrypting:
    """A server that speaks TLS, and who vouches for it."""

    server: Server
    authority: Authority
    stranger: Authority
    version: int

    def string(self, parameters: str, user: str = "both_user", host: str = "localhost") -> str:
        """A connection string of keywords."""
        where = f"host={host} hostaddr=127.0.0.1 port={self.server.port} dbname=postgres user={user}"
        return f"{where} password='{PASSWORD}' connect_timeout=20 {parameters}"

    def show(self, issued: Issued) -> None:
        """Restart it with another certificate."""
        self.server.stop()
        for name, source in (("server.crt", issued.certificate), ("server.key", issued.key)):
            path = self.server.data / name
            path.write_bytes(source.read_bytes())
            path.chmod(0o600)
            self.server.own(path)
        self.server.start()


@pytest.fixture(scope="module", params=["debian", "17"])
def encrypting(
    request: pytest.FixtureRequest, owner: Owner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Encrypting]:
    """PostgreSQL 15 and 17 with certificates of an authority of ours."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = Authority(folder / "ours"), Authority(folder / "other", "a stranger")
    installation = all_installations(owner, Runner())[request.param]
    server = Server(installation, owner, "ssl = on\nssl_ca_file = 'ca.crt'\n", HBA)
    (server.data / "ca.crt").write_bytes(authority.certificate.read_bytes())
    one = Encrypting(server, authority, stranger, int(installation.version.split(".")[0]))
    one.show(authority.issue("good", "localhost", "DNS:localhost,IP:127.0.0.1"))
    users = ["cert_user", "tls_user", "plain_user", "both_user", "trusted"]
    server.execute(";".join(f"create role {user} login password '{PASSWORD}'" for user in users))
    server.execute(f"set password_encryption = md5; create role md5_user login password '{PASSWORD}'")
    yield one
    server.remove()


def libpq(string: str) -> str:
    """The TLS version of libpq's connection, `plain`, or `refused`."""
    try:
        with psycopg.connect(string) as connection:
            seen = connection.execute("select version from pg_stat_ssl where pid = pg_backend_pid()").fetchone()
    except psycopg.OperationalError:
        return REFUSED
    return str(seen[0]) if seen and seen[0] else PLAIN


@pytest.fixture
def plinth(load: Load, finished: Finished) -> Outcome:
    """The same of the load engine's."""

    def outcome(string: str) -> str:
        run = load(resolve(string).for_engine(), TELL, protocol="simple", transactions_per_client=1)
        try:
            (error,) = finished(run).errors
        except _native.ConnectError:
            return REFUSED
        seen = re.search("seen <(.*)>", error.message)
        assert seen is not None, error.message
        return seen[1]

    return outcome


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No default files of the user who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


ONE_SERVER = pytest.mark.parametrize("encrypting", ["17"], indirect=True)
"""For what the client decides, regardless of the server's version."""
MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


@pytest.mark.long
@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("both_user", [PLAIN, PLAIN, ENCRYPTED, ENCRYPTED, REFUSED, REFUSED]),
        ("tls_user", [REFUSED, ENCRYPTED, ENCRYPTED, ENCRYPTED, REFUSED, REFUSED]),
        ("plain_user", [PLAIN, PLAIN, PLAIN, REFUSED, REFUSED, REFUSED]),
        ("md5_user", [PLAIN, PLAIN, ENCRYPTED, ENCRYPTED, REFUSED, REFUSED]),
        ("trusted", [PLAIN, PLAIN, ENCRYPTED, ENCRYPTED, REFUSED, REFUSED]),
    ],
)
def test_modes_without_authorities(encrypting: Encrypting, plinth: Outcome, user: str, expected: list[str]) -> None:
    for sslmode, outcome in zip(MODES, expected, strict=True):
        string = encrypting.string(f"sslmode={sslmode}", user)
        assert (sslmode, libpq(string), plinth(string)) == (sslmode, outcome, outcome)


CERTIFICATES: dict[str, tuple[Callable[[Encrypting], Issued], list[str]]] = {
    # For require, verify-ca and verify-full, with the authority's certificate as sslrootcert.
    "wrong host": (lambda at: at.authority.issue("w", "db.invalid", "DNS:db.invalid"), [ENCRYPTED, ENCRYPTED, REFUSED]),
    "expired": (lambda at: at.authority.issue("e", "localhost", expired=True), [REFUSED, REFUSED, REFUSED]),
    "common name": (lambda at: at.authority.issue("c", "localhost"), [ENCRYPTED] * 3),
    "common name with another": (
        lambda at: at.authority.issue("b", "localhost", "DNS:db.invalid"),
        [ENCRYPTED, ENCRYPTED, REFUSED],
    ),
    "wildcard": (lambda at: at.authority.issue("a", "*.localhost", "DNS:*.localhost"), [ENCRYPTED, ENCRYPTED, REFUSED]),
    "version 1": (lambda at: at.authority.issue_version_1("v", "localhost"), [ENCRYPTED] * 3),
    "version 1 of a stranger": (lambda at: at.stranger.issue_version_1("v", "localhost"), [REFUSED] * 3),
    "stranger": (lambda at: at.stranger.issue("s", "localhost"), [REFUSED] * 3),
    "self-signed": (lambda at: at.authority.self_signed("self", "localhost"), [REFUSED] * 3),
    "p256": (lambda at: at.authority.issue("p256", "localhost", key="p256"), [ENCRYPTED] * 3),
    "p384": (lambda at: at.authority.issue("p384", "localhost", key="p384"), [ENCRYPTED] * 3),
}


@pytest.mark.long
@ONE_SERVER
@pytest.mark.parametrize("kind", CERTIFICATES)
def test_certificates_of_servers(encrypting: Encrypting, plinth: Outcome, kind: str) -> None:
    make, expected = CERTIFICATES[kind]
    encrypting.show(make(encrypting))
    root = f"sslrootcert={encrypting.authority.certificate}"
    for sslmode, outcome in zip(("require", "verify-ca", "verify-full"), expected, strict=True):
        string = encrypting.string(f"sslmode={sslmode} {root}")
        assert (sslmode, libpq(string), plinth(string)) == (sslmode, outcome, outcome)
    # A certificate that is not trusted sends sslmode=prefer back to a plain connection, where the server takes one.
    string = encrypting.string(f"sslmode=prefer {root}")
    fallback = ENCRYPTED if expected[0] == ENCRYPTED else PLAIN
    assert (libpq(string), plinth(string)) == (fallback, fallback)


class TestVerification:
    @pytest.fixture(autouse=True)
    def _good(self, encrypting: Encrypting) -> None:
        if not (encrypting.authority.folder / "san.crt").exists():
            encrypting.show(encrypting.authority.issue("san", "x", "DNS:localhost,DNS:*.example.org,IP:127.0.0.1"))

    @pytest.mark.parametrize(
        ("host", "outcome"),
        [
            ("localhost", ENCRYPTED),
            ("LOCALHOST", ENCRYPTED),
            ("127.0.0.1", ENCRYPTED),
            ("127.0.0.2", REFUSED),
            ("db.example.org", ENCRYPTED),
            ("a.db.example.org", REFUSED),
            ("example.org", REFUSED),
            ("x", REFUSED),
            ("under_score", REFUSED),
            ("''", REFUSED),
        ],
    )
    def test_names(self, encrypting: Encrypting, plinth: Outcome, host: str, outcome: str) -> None:
        root = encrypting.authority.certificate
        string = encrypting.string(f"sslmode=verify-full sslrootcert={root}", host=host)
        assert (libpq(string), plinth(string)) == (outcome, outcome)

    def test_a_server_trusted_by_its_own_certificate(self, encrypting: Encrypting, plinth: Outcome) -> None:
        own = encrypting.authority.self_signed("pinned", "localhost")
        encrypting.show(own)
        string = encrypting.string(f"sslmode=verify-full sslrootcert={own.certificate}")
        assert (libpq(string), plinth(string)) == (ENCRYPTED, ENCRYPTED)
        encrypting.show(encrypting.authority.issue("san", "x", "DNS:localhost,DNS:*.example.org,IP:127.0.0.1"))

    @pytest.mark.parametrize(
        ("parameters", "outcome"),
        [
            ("sslmode=verify-ca", REFUSED),
            ("sslmode=require sslrootcert=/nonexistent", ENCRYPTED),
            ("sslmode=verify-ca sslrootcert=/nonexistent", REFUSED),
            ("sslmode=verify-full sslrootcert=system", REFUSED),
            ("sslmode=require ssl_min_protocol_version=TLSv1.3", ENCRYPTED),
            ("sslmode=require ssl_max_protocol_version=TLSv1.2", "TLSv1.2"),
            ("sslmode=require sslsni=0", ENCRYPTED),
            ("sslmode=require channel_binding=require", ENCRYPTED),
            ("sslmode=require ssl_max_protocol_version=TLSv1.2 channel_binding=require", "TLSv1.2"),
            ("sslmode=require channel_binding=disable", ENCRYPTED),
            ("sslmode=disable channel_binding=require", REFUSED),
            ("sslmode=prefer channel_binding=require user=md5_user", REFUSED),
            ("sslmode=prefer channel_binding=require user=trusted", REFUSED),
            ("sslmode=prefer require_auth=scram-sha-256", ENCRYPTED),
            ("sslmode=prefer require_auth=none", REFUSED),
            ("sslmode=prefer require_auth=none user=trusted", ENCRYPTED),
            ("sslmode=prefer require_auth=!none user=trusted", REFUSED),
            ("sslmode=prefer require_auth=md5 user=md5_user", ENCRYPTED),
            ("sslmode=prefer require_auth=!md5,!password user=md5_user", REFUSED),
        ],
    )
    def test_parameters(self, encrypting: Encrypting, plinth: Outcome, parameters: str, outcome: str) -> None:
        string = encrypting.string(parameters)
        assert (libpq(string), plinth(string)) == (outcome, outcome)

    def test_without_asking_first(self, encrypting: Encrypting, plinth: Outcome) -> None:
        string = encrypting.string("sslmode=require sslnegotiation=direct")
        outcome = ENCRYPTED if encrypting.version >= 17 else REFUSED
        assert (libpq(string), plinth(string)) == (outcome, outcome)

    def test_revoked_certificates(self, encrypting: Encrypting, plinth: Outcome, tmp_path: Path) -> None:
        root = f"sslmode=verify-ca sslrootcert={encrypting.authority.certificate}"
        none = encrypting.string(f"{root} sslcrl={encrypting.authority.revoked()}")
        assert (libpq(none), plinth(none)) == (ENCRYPTED, ENCRYPTED)
        bad = encrypting.authority.issue("bad", "localhost")
        encrypting.show(bad)
        lists = encrypting.authority.revoked(bad)
        revoked = encrypting.string(f"{root} sslcrl={lists}")
        assert (libpq(revoked), plinth(revoked)) == (REFUSED, REFUSED)
        folder = tmp_path / "lists"
        folder.mkdir()
        (folder / "list.pem").write_bytes(lists.read_bytes())
        assert plinth(encrypting.string(f"{root} sslcrldir={folder}")) == REFUSED
        foreign = encrypting.string(f"{root} sslcrl={encrypting.stranger.revoked()}")
        assert (libpq(foreign), plinth(foreign)) == (REFUSED, REFUSED)
        (encrypting.authority.folder / "san.crt").unlink()


@ONE_SERVER
class TestClientCertificates:
    @pytest.fixture
    def mine(self, encrypting: Encrypting) -> Issued:
        folder = encrypting.authority.folder
        if (folder / "me.crt").exists():
            return Issued(folder / "me.crt", folder / "me.key")
        return encrypting.authority.issue("me", "cert_user")

    def check(self, encrypting: Encrypting, plinth: Outcome, parameters: str, outcome: str) -> None:
        string = encrypting.string(f"sslmode=require {parameters}", "cert_user")
        assert (libpq(string), plinth(string)) == (outcome, outcome)

    def test_good_and_bad_ones(self, encrypting: Encrypting, plinth: Outcome, mine: Issued) -> None:
        authority = encrypting.authority
        self.check(encrypting, plinth, f"sslcert={mine.certificate} sslkey={mine.key}", ENCRYPTED)
        self.check(encrypting, plinth, "", REFUSED)
        self.check(encrypting, plinth, f"sslcert={mine.certificate} sslkey={mine.key} sslcertmode=disable", REFUSED)
        for other in (
            authority.issue("someone", "someone_else"),
            authority.issue("late", "cert_user", expired=True),
            encrypting.stranger.issue("me", "cert_user"),
        ):
            self.check(encrypting, plinth, f"sslcert={other.certificate} sslkey={other.key}", REFUSED)

    @pytest.mark.parametrize("key", ["p256", "p384", "ed25519", "version 1"])
    def test_kinds(self, encrypting: Encrypting, plinth: Outcome, key: str) -> None:
        authority, name = encrypting.authority, f"kind-{key.replace(' ', '-')}"
        make = authority.issue_version_1 if key == "version 1" else lambda *who: authority.issue(*who, key=key)
        issued = make(name, "cert_user")
        self.check(encrypting, plinth, f"sslcert={issued.certificate} sslkey={issued.key}", ENCRYPTED)

    def test_default_files(self, encrypting: Encrypting, plinth: Outcome, mine: Issued, home: Path) -> None:
        folder = home / ".postgresql"
        folder.mkdir()
        for name, source in (("postgresql.crt", mine.certificate), ("postgresql.key", mine.key)):
            (folder / name).write_bytes(source.read_bytes())
            (folder / name).chmod(0o600)
        # libpq's own idea of home is that of the process, whose environment it reads.
        self.check(encrypting, plinth, "", ENCRYPTED)
        (folder / "root.crt").write_bytes(encrypting.stranger.certificate.read_bytes())
        self.check(encrypting, plinth, "", REFUSED)

    def test_keys_that_others_may_read(self, encrypting: Encrypting, plinth: Outcome, mine: Issued) -> None:
        for mode, outcome in ((0o644, REFUSED), (0o660, REFUSED), (0o640, ENCRYPTED), (0o400, ENCRYPTED)):
            mine.key.chmod(mode)
            self.check(encrypting, plinth, f"sslcert={mine.certificate} sslkey={mine.key}", outcome)
        mine.key.chmod(0o600)

    def test_encrypted_keys(self, encrypting: Encrypting, plinth: Outcome, mine: Issued) -> None:
        key = encrypting.authority.encrypted(mine.key, "open sesame")
        files = f"sslcert={mine.certificate} sslkey={key}"
        self.check(encrypting, plinth, f"{files} sslpassword='open sesame'", ENCRYPTED)
        self.check(encrypting, plinth, f"{files} sslpassword=guess", REFUSED)


@pytest.mark.long
@ONE_SERVER
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("sslmode=verify-ca", "no file of trusted authorities; set sslrootcert"),
        ("sslmode=verify-ca sslrootcert={stranger}", "none of the authorities in sslrootcert has signed it"),
        ("sslmode=verify-full sslrootcert={ours} host=db.invalid", 'not for host "db.invalid"'),
        ("sslmode=verify-full sslrootcert={ours} host=''", "set host, too"),
        ("sslmode=require sslcert={ours} sslkey=/nonexistent", "sslkey /nonexistent: No such file"),
        ("sslmode=require sslcert={ours} sslkey={key}", "not the key of the certificate"),
        ("sslmode=require sslcert={ours} sslkey={ours}", "others may read it; chmod 0600"),
        ("sslmode=require sslrootcert=/etc/hostname", "no certificate"),
        ("sslmode=require sslcrl=/nonexistent sslrootcert={ours}", "sslcrl /nonexistent"),
        ("sslmode=require sslcert={ours} sslkey={encrypted}", "set sslpassword"),
        ("sslmode=require sslcert={ours} sslkey={encrypted} sslpassword=geheim", "is sslpassword right?"),
        ("sslmode=require sslcert={ours} sslkey={old}", "openssl pkcs8 -topk8"),
    ],
)
def test_errors_teach_and_keep_secrets(encrypting: Encrypting, load: Load, parameters: str, words: str) -> None:
    authority = encrypting.authority
    encrypting.show(authority.issue("teach", "localhost"))
    key = authority.folder / "teach.key"
    old = authority.folder / "old.key"
    authority.openssl("rsa", "-aes128", "-traditional", "-in", str(key), "-passout", "pass:x", "-out", str(old))
    old.chmod(0o600)
    files = {
        "ours": authority.certificate,
        "stranger": encrypting.stranger.certificate,
        "key": key,
        "encrypted": authority.encrypted(key, "open sesame"),
        "old": old,
    }
    with pytest.raises(_native.ConnectError) as raised:
        load(resolve(encrypting.string(parameters.format(**files))).for_engine(), "select 1;").start()
    assert words in raised.value.message
    assert not any(secret in raised.value.message for secret in (PASSWORD, "geheim"))


@ONE_SERVER
def test_a_load_over_tls(encrypting: Encrypting, load: Load, finished: Finished) -> None:
    encrypting.show(encrypting.authority.issue("load", "localhost"))
    at = resolve(encrypting.string(f"sslmode=verify-full sslrootcert={encrypting.authority.certificate}"))
    long = "select repeat('x', 1000000), g from generate_series(1, 3) g;"
    for script in ("select 1;", long, f"select length('{'y' * 300_000}');"):
        result = finished(load(at.for_engine(), script, clients=20, threads=2, transactions_per_client=5))
        assert (result.measured.done, result.errors) == (100, ())


@ONE_SERVER
def test_an_encrypted_bulk_load(encrypting: Encrypting) -> None:
    at = resolve(encrypting.string("sslmode=require", "postgres")).for_engine()
    encrypting.server.execute("alter role postgres password 'correct horse'")
    (encrypting.server.data / "pg_hba.conf").write_text(HBA + "hostssl all postgres 127.0.0.1/32 scram-sha-256\n")
    encrypting.server.execute("select pg_reload_conf()")
    encrypting.server.pgbench("-i", "-I", "dt", "-q")
    config = {"connection": at, "generator": {"kind": "tpcb", "scale": 3, "fillfactor": None}, "streams": 2}
    run = _native.BulkLoad(json.dumps(config))
    run.start()
    assert run.wait(60.0)
    assert json.loads(run.result())["errors"] == []
    assert encrypting.server.execute("select count(*) from pgbench_accounts") == [(300_000,)]
