"""The transactions of the TPC-C-derived workload on a real server: what they leave, how often, and that it is consistent."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import TypeAdapter, ValidationError

from native_server import Finished, Load, Server
from plinth.model.connection import Connection
from plinth.model.dataset import TpccDataset
from plinth.model.facts import Installation
from plinth.model.load import LoadResult
from plinth.model.workload import WorkloadSpec
from plinth.run.loading import LoadSession
from plinth.system.owner import Owner
from plinth.workload import dataset_of, scripts_of
from plinth.workload.tpcc_conditions import check_conditions

SPEC = TypeAdapter(TpccDataset).validate_python({"kind": "tpcc", "warehouses": 2})


class Place:
    """A server with two warehouses, of which each test gets a copy."""

    def __init__(self, server: Server) -> None:
        self.server = server
        server.execute("CREATE DATABASE loaded")
        with self.connect("loaded") as control:
            dataset_of(SPEC).load(
                LoadSession(control, Connection(**server.connection(database="loaded"))), lambda _: None
            )

    def connect(self, name: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.server.folder), port=self.server.port, user="postgres", dbname=name, autocommit=True
        )


@pytest.fixture(scope="module")
def place(installations: dict[str, Installation], owner: Owner) -> Iterator[Place]:
    server = Server(installations["18"], owner)
    server.start()
    yield Place(server)
    server.remove()


class Copy:
    """A copy of the loaded database, and loads on it."""

    def __init__(self, place: Place, load: Load, finished: Finished) -> None:
        self._place, self._load, self._finished = place, load, finished
        place.server.execute("DROP DATABASE IF EXISTS copy")
        place.server.execute("CREATE DATABASE copy TEMPLATE loaded STRATEGY file_copy")
        self.control = place.connect("copy")

    def run(self, workload: dict[str, Any] | None = None, **changes: Any) -> LoadResult:
        spec = WorkloadSpec.model_validate({"builtin": "tpcc"} | (workload or {}))
        scripts = [one.model_dump() for one in scripts_of(spec, "tpcc", {})]
        config = {"variables": dataset_of(SPEC).variables(), "duration_s": None, "deck": True, "max_tries": 20}
        connection = self._place.server.connection(database="copy")
        return self._finished(self._load(connection, scripts=scripts, **(config | changes)))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.control.execute(query.encode()).fetchall()

    def violations(self) -> list[str]:
        return [check.got for check in check_conditions(self.control, initial=False) if not check.ok]


@pytest.fixture
def copy(place: Place, load: Load, finished: Finished) -> Iterator[Copy]:
    one = Copy(place, load, finished)
    yield one
    one.control.close()


def counts(result: LoadResult) -> dict[str, int]:
    return {script.name: script.measured.done for script in result.scripts}


@pytest.mark.parametrize("workload", [{}, {"pipeline": True}, {"home": "uniform"}])
def test_a_deck_of_transactions_leaves_what_it_must(copy: Copy, workload: dict[str, Any]) -> None:
    result = copy.run({"rollback_share": 0.2} | workload, transactions_per_client=300)
    assert (result.errors, result.totals.failed) == ((), 0)
    assert counts(result) == {"new-order": 135, "payment": 129, "order-status": 12, "delivery": 12, "stock-level": 12}
    rolled_back = {script.name: script.measured.rolled_back for script in result.scripts}
    committed = 135 - (rolled_back["new-order"] or 0)
    assert 5 <= 135 - committed <= 55  # 27 expected
    assert set(rolled_back.values()) == {135 - committed, 0}
    ((orders, payments, undelivered),) = copy.rows(
        "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM history), (SELECT count(*) FROM new_order)"
    )
    assert (orders, payments) == (60_000 + committed, 60_000 + 129)
    assert undelivered == 18_000 + committed - 12 * 10
    assert copy.violations() == []


@pytest.mark.parametrize("isolation", ["read-committed", "repeatable-read", "serializable"])
def test_many_clients_on_one_warehouse_leave_it_consistent(copy: Copy, isolation: str) -> None:
    workload = {"isolation": isolation, "mix": {"delivery": 20}}
    result = copy.run(workload, clients=8, threads=2, transactions_per_client=60, max_tries=3)
    kinds = {error.kind for error in result.errors}
    assert kinds <= {"serialization_failure"}, result.errors
    assert bool(kinds) == (isolation != "read-committed")
    assert copy.violations() == []


def test_both_ways_of_sending_leave_the_same_rows(place: Place, load: Load, finished: Finished) -> None:
    seen = []
    for pipeline in (False, True):
        one = Copy(place, load, finished)
        one.run({"pipeline": pipeline}, transactions_per_client=200, seed=5)
        seen.append(contents(one))
        one.control.close()
    assert seen[0] == seen[1]


def contents(copy: Copy) -> dict[str, Any]:
    """All rows of the nine tables as a sum of hashes, without the times of the server's clock."""
    times = {"history": "h_date", "orders": "o_entry_d", "order_line": "ol_delivery_d"}
    tables = ["warehouse", "district", "item", "customer", "history", "orders", "new_order", "order_line", "stock"]
    without = {table: f"to_jsonb(x) - '{times[table]}'" if table in times else "to_jsonb(x)" for table in tables}
    return {
        table: copy.rows(f"SELECT count(*), sum(hashtextextended(({row})::text, 0)) FROM {table} x")[0]
        for table, row in without.items()
    }


def test_options_of_tpcc_are_refused_elsewhere() -> None:
    for key, value in {"isolation": "serializable", "mix": {"payment": 1}, "rollback_share": 0.5}.items():
        with pytest.raises(ValidationError, match=f'{key}: of builtin = "tpcc" only'):
            WorkloadSpec.model_validate({"builtin": "select-only", key: value})
