"""Several hosts, by libpq's rules: for every string, libpq ends up where the load engine does."""

import os
import re
import resource
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from native_server import PASSWORD, Finished, Load, Server, free_port
from plinth import _native
from plinth.model.connection import Connection
from plinth.model.facts import Installation
from plinth.system.conninfo import resolve
from plinth.system.owner import Owner

TELL = "do $$ begin raise exception 'seen <%>', current_setting('port'); end $$;"
Outcome = Callable[[str], str]


@pytest.fixture(scope="module")
def primary(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    server = Server(installations["debian"], owner)
    server.start()
    server.execute(f"create role scram_user login password '{PASSWORD}'")
    yield server
    server.remove()


@pytest.fixture(scope="module")
def standby(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    """In hot standby: recovering forever, from nowhere."""
    server = Server(installations["debian"], owner)
    (server.data / "standby.signal").touch()
    server.own(server.data / "standby.signal")
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def read_only(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    server = Server(installations["debian"], owner, "default_transaction_read_only = on\n")
    server.start()
    yield server
    server.remove()


def libpq(string: str) -> str:
    """The port of the server where libpq ends up, in a process of its own, or `none`."""
    psql = shutil.which("psql")
    assert psql is not None, "these tests need Debian's package postgresql-client"
    ran = subprocess.run([psql, "-XAtd", string, "-c", "show port"], capture_output=True, text=True, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else "none"


@pytest.fixture
def plinth(load: Load, finished: Finished) -> Outcome:
    """The same of the load engine."""

    def outcome(string: str) -> str:
        run = load(resolve(string).for_engine(), TELL, protocol="simple", transactions_per_client=1)
        try:
            (error,) = finished(run).errors
        except _native.ConnectError:
            return "none"
        seen = re.search("seen <(.*)>", error.message)
        assert seen is not None, error.message
        return seen[1]

    return outcome


def among(*servers: Server, more: str = "", user: str = "postgres") -> str:
    hosts = ",".join(str(server.folder) for server in servers)
    ports = ",".join(str(server.port) for server in servers)
    return f"host={hosts} port={ports} user={user} dbname=postgres connect_timeout=20 {more}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("attrs", "order", "reached"),
    [
        ("any", "psr", "p"),
        ("any", "sp", "s"),
        ("read-write", "srp", "p"),
        ("read-write", "sr", ""),
        ("read-only", "prs", "r"),
        ("read-only", "p", ""),
        ("primary", "srp", "r"),
        ("primary", "s", ""),
        ("standby", "prs", "s"),
        ("standby", "pr", ""),
        ("prefer-standby", "prs", "s"),
        ("prefer-standby", "rp", "r"),
    ],
)
def test_target_session_attrs(
    primary: Server, standby: Server, read_only: Server, plinth: Outcome, attrs: str, order: str, reached: str
) -> None:
    servers = {"p": primary, "s": standby, "r": read_only}
    string = among(*(servers[letter] for letter in order), more=f"target_session_attrs={attrs}")
    expected = str(servers[reached].port) if reached else "none"
    assert (libpq(string), plinth(string)) == (expected, expected)


def test_hosts_that_do_not_answer_are_passed_over(primary: Server, plinth: Outcome) -> None:
    for dead in ("127.0.0.1", "/nonexistent", "no.such.host.invalid", "::1"):
        string = f"host={dead},{primary.folder} port={free_port()},{primary.port} user=postgres dbname=postgres"
        assert (libpq(string), plinth(string)) == (str(primary.port), str(primary.port))


def test_a_host_that_is_silent_is_passed_over_in_time(primary: Server, plinth: Outcome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        string = (
            f"host=127.0.0.1,{primary.folder} port={silent.getsockname()[1]},{primary.port} user=postgres "
            "dbname=postgres sslmode=disable connect_timeout=2"
        )
        assert (libpq(string), plinth(string)) == (str(primary.port), str(primary.port))


@contextmanager
def saying(answer: bytes) -> Iterator[int]:
    """A server that says one thing to everybody, on a port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(1024)
                    peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def refusal(sqlstate: str) -> bytes:
    body = f"SFATAL\0VFATAL\0C{sqlstate}\0Mno\0\0".encode()
    return b"E" + (len(body) + 4).to_bytes(4, "big") + body


@pytest.mark.parametrize(("sqlstate", "continues"), [("57P03", True), ("53300", False), ("28P01", False)])
def test_after_a_refusal(primary: Server, plinth: Outcome, sqlstate: str, continues: bool) -> None:
    with saying(refusal(sqlstate)) as port:
        string = (
            f"host=127.0.0.1,{primary.folder} port={port},{primary.port} user=postgres dbname=postgres sslmode=disable"
        )
        expected = str(primary.port) if continues else "none"
        assert (libpq(string), plinth(string)) == (expected, expected)


def test_a_wrong_password_is_final(primary: Server, read_only: Server, plinth: Outcome) -> None:
    string = (
        f"host=127.0.0.1,{read_only.folder} port={primary.port},{read_only.port} user=scram_user password=wrong "
        "dbname=postgres sslmode=disable"
    )
    assert (libpq(string), plinth(string)) == ("none", "none")


def test_load_is_balanced(primary: Server, read_only: Server, load: Load, finished: Finished) -> None:
    string = among(primary, read_only, more="load_balance_hosts=random")
    script = f"select 1 / (current_setting('port') = '{primary.port}')::int;"
    result = finished(load(resolve(string).for_engine(), script, clients=40, transactions_per_client=1))
    (error,) = result.errors
    assert error.count + result.totals.done == 40
    # One of two hosts for all 40: once in 2^39 runs.
    assert 0 < error.count < 40


def test_all_reasons_are_reported(load: Load) -> None:
    string = f"host=127.0.0.1,/nonexistent port={free_port()} user=u dbname=d"
    with pytest.raises(_native.ConnectError) as raised:
        load(resolve(string).for_engine(), "select 1;").start()
    assert re.search(
        r"2 attempts failed: cannot connect to 127\.0\.0\.1:\d+: .*; then: cannot connect to /nonexistent/",
        raised.value.message,
    )


def test_an_abstract_socket(installations: dict[str, Installation], owner: Owner, plinth: Outcome) -> None:
    name = f"@plinth-test-{os.getpid()}"
    server = Server(installations["debian"], owner, f"unix_socket_directories = '{{folder}}, {name}'\n")
    configuration = server.data / "postgresql.conf"
    configuration.write_text(configuration.read_text().replace("{folder}", str(server.folder)))
    try:
        server.start()
        string = f"host={name} port={server.port} user=postgres dbname=postgres"
        assert (libpq(string), plinth(string)) == (str(server.port), str(server.port))
    finally:
        server.remove()


@pytest.mark.parametrize(("user", "goes"), [("nobody", False), ("postgres", True)])
def test_requirepeer(primary: Server, plinth: Outcome, owner: Owner, user: str, goes: bool) -> None:
    user = owner.name if goes else user
    string = among(primary, more=f"requirepeer={user}")
    expected = str(primary.port) if goes else "none"
    assert (libpq(string), plinth(string)) == (expected, expected)


def strangers() -> dict[str, tuple[bytes, str]]:
    def message(tag: bytes, body: bytes) -> bytes:
        return tag + (len(body) + 4).to_bytes(4, "big") + body

    def authentication(code: int, data: bytes = b"") -> bytes:
        return message(b"R", code.to_bytes(4, "big") + data)

    return {
        "http": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a PostgreSQL server?"),
        "ssh": (b"SSH-2.0-OpenSSH_9.2\r\n", "not a PostgreSQL server?"),
        "garbage": (bytes(range(1, 200)), "not a PostgreSQL server?"),
        "negative length": (b"R\xff\xff\xff\xff", "impossible length of -1 bytes"),
        "absurd length": (b"S\x7f\xff\xff\xff", "impossible length of 2147483647 bytes"),
        "nothing": (b"", "ended the connection while logging in"),
        "half a message": (authentication(0)[:6], "ended the connection while logging in"),
        "gssapi": (authentication(7), "the server asks for GSSAPI"),
        "sspi": (authentication(9), "the server asks for SSPI"),
        "unknown method": (authentication(99), "authentication method 99"),
        "unknown mechanism": (authentication(10, b"OAUTHBEARER\0\0"), "SASL with OAUTHBEARER"),
        "binding without encryption": (authentication(10, b"SCRAM-SHA-256-PLUS\0\0"), "not encrypted"),
        "older protocol": (message(b"v", bytes([0, 3, 0, 0, 0, 0, 0, 1]) + b"_pq_.x\0"), "protocol 3.0"),
        "text": (b"Ecould not fork new process for connection: no memory\n\0", "FATAL: could not fork"),
        "end of login at once": (message(b"Z", b"I"), "unexpected message 'Z'"),
        "scram cut short": (authentication(10, b"SCRAM-SHA-256\0\0") + authentication(0), "unexpected message 'R'"),
        "notices, then no": (message(b"N", b"SNOTICE\0Mhm\0\0") * 3 + refusal("28000"), "FATAL: no (SQLSTATE 28000)"),
        "in, then no": (authentication(0) + refusal("3D000"), "FATAL: no (SQLSTATE 3D000)"),
    }


@pytest.mark.parametrize("kind", strangers())
def test_strangers(load: Load, kind: str) -> None:
    answer, words = strangers()[kind]
    with saying(answer) as port:
        at = Connection(host="127.0.0.1", port=port, user="u", database="d", password=PASSWORD)
        with pytest.raises(_native.ConnectError) as raised:
            load(at.for_engine(), "select 1;", connect_timeout_s=5.0).start()
    assert words in raised.value.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"H", "answers the request for TLS with 'H'"),
        (b"N", "does not speak TLS, and sslmode=require"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "TLS: "),
        (b"S" + refusal("28000"), "TLS: "),
        (b"", "ended the connection"),
    ],
)
def test_strangers_that_are_asked_for_tls(load: Load, answer: bytes, words: str) -> None:
    with saying(answer) as port:
        string = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=require"
        with pytest.raises(_native.ConnectError) as raised:
            load(resolve(string).for_engine(), "select 1;", connect_timeout_s=5.0).start()
    assert words in raised.value.message


@pytest.mark.long
def test_a_thousand_sessions_from_one_thread(
    installations: dict[str, Installation], owner: Owner, load: Load, finished: Finished
) -> None:
    settings = "max_connections = 1010\nshared_buffers = 32MB\n"
    server = Server(
        installations["debian"], owner, settings, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )
    server.start()
    try:
        server.execute(f"create role scram_user login password '{PASSWORD}'")
        at: dict[str, Any] = server.connection(host="127.0.0.1", user="scram_user", password=PASSWORD)
        before_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        result = finished(load(at, "select 1;", clients=1000, transactions_per_client=2, connect_timeout_s=60.0))
        assert (result.measured.done, result.errors) == (2000, ())
        # Without keeping the salted password, its thousandfold computation alone is more than this.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before_s < 1
        server.execute("alter system set superuser_reserved_connections = 3")
        result = finished(
            load(at, "select 1;", clients=1100, threads=2, transactions_per_client=1, connect_timeout_s=60.0)
        )
        (error,) = result.errors
        assert (error.kind, error.sqlstate) == ("connect", "53300")
        assert error.count + result.totals.done == 1100
    finally:
        server.stop()
        shutil.rmtree(server.folder)
