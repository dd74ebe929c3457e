"""Transactions that are cut off, delayed, corrupted, timed out or overtaken by a restart: what counts as done is on the
server, and what is on the server counts as done or failed."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from native_server import PASSWORD, Finished, Load, Server
from plinth.model.load import LoadResult
from proxy import Harm, Proxy, proxied
from typed import present

pytestmark = pytest.mark.parametrize("server", ["18"], indirect=True)

TRANSACTION = "begin;\ninsert into harmed values (1);\nselect 'between';\nend;\n"


def through(server: Server, proxy: Proxy) -> dict[str, object]:
    """The engine's connection through a proxy; it is not encrypted, so that harm reaches the engine."""
    return server.connection(host="127.0.0.1", port=proxy.port, user="scram_user", password=PASSWORD)


@dataclass(frozen=True)
class Said:
    """How many bytes the server says in a login, and in a transaction."""

    login: int
    transaction: int


@pytest.fixture
def said(server: Server, load: Load, finished: Finished) -> Iterator[Said]:
    """Measured without harm; the table `harmed` is there and empty."""
    server.execute("create table harmed (x int)")
    totals = []
    for transactions in (1, 2):
        with proxied(server.port) as proxy:
            run = load(
                through(server, proxy), TRANSACTION, protocol="simple", seed=1, transactions_per_client=transactions
            )
            finished(run)
            totals.append(proxy.passed_bytes[True])
    server.execute("truncate harmed")
    yield Said(login=2 * totals[0] - totals[1], transaction=totals[1] - totals[0])
    server.execute("drop table harmed")


def rows(server: Server) -> int:
    """Transactions that the server committed."""
    ((count,),) = server.execute("select count(*) from harmed")
    return count


@pytest.mark.parametrize("kind", ["close", "reset"])
def test_cut_inside_a_transaction(server: Server, load: Load, finished: Finished, said: Said, kind: str) -> None:
    struck = set()
    for within in range(0, said.transaction, 9):
        before = rows(server)
        with proxied(server.port, Harm(kind, said.login + within)) as proxy:  # type: ignore[arg-type]
            result = finished(load(through(server, proxy), TRANSACTION, protocol="simple", transactions_per_client=1))
        (error,) = result.errors
        assert (error.kind, error.line) == ("connection_lost", present(error.statement) + 1)
        assert (result.totals.done, result.totals.failed, result.clients_aborted) == (0, 1, 1)
        assert rows(server) - before <= (error.statement == 3), "only the answer to the commit can be lost after it"
        struck.add(error.statement)
    assert struck == {0, 1, 2, 3}


def test_corrupted_inside_a_transaction(server: Server, load: Load, said: Said) -> None:
    outcomes = set()
    for within in range(0, said.transaction, 3):
        before = rows(server)
        with proxied(server.port, Harm("corrupt", said.login + within)) as proxy:
            config = {"protocol": "simple", "transactions_per_client": 1, "stop_timeout_s": 0.0}
            run = load(through(server, proxy), TRANSACTION, **config)
            run.start()
            if not run.wait(0.3):
                # A length that became greater announces what never comes: a stop ends that too.
                run.stop()
                assert run.wait(10.0), "it hangs"
        result = LoadResult.model_validate_json(run.result())
        totals = result.totals
        assert totals.scheduled == totals.done + totals.failed + totals.open == 1
        assert totals.failed == sum(error.count for error in result.errors if error.kind != "cancel")
        assert {error.kind for error in result.errors} <= {"protocol", "connection_lost", "sql", "script", "cancel"}
        assert rows(server) - before >= totals.done, "done, and not on the server"
        outcomes |= {error.kind for error in result.errors} | ({"done"} if totals.done else set())
    assert {"protocol", "done"} <= outcomes


def test_delayed_inside_a_transaction(server: Server, load: Load, finished: Finished, said: Said) -> None:
    """Every byte that comes late is in the latency."""
    pause_s = 0.001
    with proxied(server.port, Harm("drip", said.login, pause_s=pause_s)) as proxy:
        result = finished(load(through(server, proxy), TRANSACTION, protocol="simple", transactions_per_client=3))
    assert (result.totals.done, result.errors) == (3, ())
    (transactions,) = [one for one in result.histograms if one.scope == "transaction"]
    assert transactions.min_ns >= said.transaction * pause_s * 1e9
    assert rows(server) == 3


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_a_statement_that_takes_too_long(server: Server, load: Load, finished: Finished, protocol: str) -> None:
    """The server ends the statement; its transaction is rolled back, fails and has no latency; the client continues."""
    script = (
        "\\set n :n + 1\nbegin;\n\\if :n % 3 = 0\nset local statement_timeout = '20ms';\nselect pg_sleep(60);\n\\endif\n"
        "select 1;\nend;\n"
    )
    variables = {"n": "0"}
    run = load(
        server.connection(), script, protocol=protocol, clients=2, transactions_per_client=10, variables=variables
    )
    result = finished(run)
    assert (result.totals.done, result.totals.failed, result.clients_aborted) == (14, 6, 0)
    (error,) = result.errors
    assert (error.kind, error.sqlstate, error.statement, error.line) == ("sql", "57014", 2, 5)
    assert error.count == 6 and "statement timeout" in error.message
    counts = {(one.scope, one.statement): one.count for one in result.histograms}
    assert counts[("transaction", None)] == 14
    assert ("statement", 2) not in counts


def test_a_server_that_is_restarted(server: Server, own_server: Server, load: Load, finished: Finished) -> None:
    own_server.execute("create table harmed (x int)")
    run = load(own_server.connection(), TRANSACTION, clients=4, threads=2, duration_s=60.0)
    run.start()
    while rows(own_server) < 50:
        assert not run.wait(0.01)
    own_server.stop(signal.SIGINT)
    own_server.start()
    assert run.wait(20.0), "no client has a connection any more, so the run is over"
    result = LoadResult.model_validate_json(run.result())
    assert not result.interrupted
    assert result.totals.failed == sum(error.count for error in result.errors) == result.clients_aborted == 4
    for error in result.errors:
        assert (error.kind, error.line) == ("connection_lost", present(error.statement) + 1)
    assert result.totals.done <= rows(own_server) <= result.totals.done + result.totals.failed
    again = finished(load(own_server.connection(), TRANSACTION, clients=4, threads=2, transactions_per_client=5))
    assert (again.totals.done, again.errors) == (20, ())
