"""The server's count of transactions holds against the load's, with what the server has done for itself; and only then."""

import dataclasses
from collections.abc import Iterable, Iterator

import psycopg
import pytest

from plinth.model.base import SettingValue
from plinth.model.load import LoadResult, Totals
from plinth.model.trial import Check
from plinth.model.workload import WorkloadSpec
from plinth.run.trial.checks import EndedTransactions, ended_transactions, transactions_check
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.workload.written import await_sessions
from servers import new_servers
from waiting import wait_until

EAGER: dict[str, SettingValue] = {
    "shared_buffers": "16MB",
    "fsync": False,
    "autovacuum_naptime": "1s",
    "autovacuum_vacuum_threshold": 1,
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_analyze_threshold": 1,
    "autovacuum_analyze_scale_factor": 0,
}
TABLES = 40
WORKLOAD = WorkloadSpec.model_validate({"builtin": "simple-update", "clients": 1})


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with new_servers(EAGER) as start:
        yield start()


@pytest.fixture
def control(server: LocalServer) -> Iterator["psycopg.Connection"]:
    with connect_unpinned(server.connection) as control:
        yield control


def do(server: LocalServer, control: "psycopg.Connection", statements: Iterable[str]) -> None:
    """In a session that has ended then: only so is everything reported that it did."""
    to = dataclasses.replace(server.connection, application_name="load")
    with connect_unpinned(to) as session:
        for statement in statements:
            session.execute(statement.encode())
    await_sessions(control, "load control")


def load_of(done: int) -> LoadResult:
    """What the check looks at of a load."""
    return LoadResult.model_construct(totals=Totals.model_construct(done=done, failed=0, open=0), errors=())


def check(ended: EndedTransactions, done: int) -> Check:
    return transactions_check(ended, load_of(done), WORKLOAD, exclusive=True)


def test_what_autovacuum_commits_is_not_taken_for_anothers(server: LocalServer, control: "psycopg.Connection") -> None:
    do(server, control, (f"CREATE TABLE of_load_{number} (id int)" for number in range(TABLES)))
    began = ended_transactions(control, WORKLOAD)
    for round_of_load in range(4):
        do(server, control, (f"INSERT INTO of_load_{number} SELECT generate_series(1, 10)" for number in range(TABLES)))
        do(server, control, (f"DELETE FROM of_load_{number}" for number in range(TABLES)))
        least = (round_of_load + 1) * TABLES
        wait_until(lambda least=least: ended_transactions(control, WORKLOAD).since(began).autovacuums >= least)
    done = 4 * TABLES * 2
    ended = ended_transactions(control, WORKLOAD).since(began)
    assert check(ended, done).ok, (ended, check(ended, done))
    assert ended.total - done > 100, "more than what is allowed without autovacuum"


def test_transactions_of_another_are_found_and_those_that_lack_too(
    server: LocalServer, control: "psycopg.Connection"
) -> None:
    control.execute("ALTER SYSTEM SET autovacuum = off")
    control.execute("SELECT pg_reload_conf()")
    began = ended_transactions(control, WORKLOAD)
    do(server, control, ["SELECT 1"] * 300)
    ended = ended_transactions(control, WORKLOAD).since(began)
    assert check(ended, 300).ok
    assert not check(ended, 100).ok
    assert not check(ended, 400).ok
