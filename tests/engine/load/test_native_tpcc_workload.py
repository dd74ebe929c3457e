"""The transactions of the TPC-C-derived workload on a real server: what they leave, how often, and that it is consistent."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import TypeAdapter, ValidationError

from native_server import Finished, Load, Server
from plinth.model.connection import Connection
from plinth.model.dataset import TpccDataset
from plinth.model.facts import Installation
from plinth.model.load import LoadResult
from plinth.model.load_config import CompiledTransaction
from plinth.model.workload import WorkloadSpec
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.system.owner import Owner
from plinth.workload import dataset_of, scripts_of
from plinth.workload.commit_ledger import read_commit_ledger
from plinth.workload.commit_ledger_check import compare_ledger, prepare_ledger_tables
from plinth.workload.tpcc_conditions import check_conditions

FORMS: dict[str, dict[str, Any]] = {
    "statements": {},
    "pipelined statements": {"pipeline": True},
    "procedures": {"form": "procedures"},
}


class Place:
    """A server with some warehouses, of which each test gets a copy."""

    def __init__(self, server: Server, warehouses: int) -> None:
        self.server = server
        self.dataset = dataset_of(TypeAdapter(TpccDataset).validate_python({"kind": "tpcc", "warehouses": warehouses}))
        server.execute("CREATE DATABASE loaded")
        with self.connect("loaded") as control:
            connection = Connection(**server.connection(database="loaded"))
            self.dataset.populate(DatasetSession(control, connection, HOST), lambda _: None)

    def connect(self, name: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.server.folder), port=self.server.port, user="postgres", dbname=name, autocommit=True
        )


def made(installation: Installation, owner: Owner, warehouses: int) -> Iterator[Place]:
    server = Server(installation, owner)
    server.start()
    yield Place(server, warehouses)
    server.remove()


@pytest.fixture(scope="module")
def place(installations: dict[str, Installation], owner: Owner) -> Iterator[Place]:
    yield from made(installations["18"], owner, 2)


@pytest.fixture(scope="module")
def old_place(installations: dict[str, Installation], owner: Owner) -> Iterator[Place]:
    yield from made(installations["debian"], owner, 1)


def transactions(workload: dict[str, Any]) -> list[CompiledTransaction]:
    spec = WorkloadSpec.model_validate({"builtin": "tpcc"} | workload)
    return [one for one in scripts_of(spec, "tpcc", {}) if isinstance(one, CompiledTransaction)]


class Copy:
    """A copy of the loaded database, and loads on it."""

    def __init__(self, place: Place, load: Load, finished: Finished) -> None:
        self._place, self._load, self._finished = place, load, finished
        place.server.execute("DROP DATABASE IF EXISTS copy")
        place.server.execute("CREATE DATABASE copy TEMPLATE loaded STRATEGY file_copy")
        self.control = place.connect("copy")
        ((self.last_xid,),) = self.rows("SELECT pg_current_xact_id()::text::bigint")

    def run(self, workload: dict[str, Any] | None = None, **changes: Any) -> LoadResult:
        scripts = [one.model_dump() for one in transactions(workload or {})]
        config = {"variables": self._place.dataset.variables(), "duration_s": None, "deck": True, "max_tries": 20}
        connection = self._place.server.connection(database="copy")
        return self._finished(self._load(connection, **(config | {"scripts": scripts} | changes)))

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


@pytest.mark.long
@pytest.mark.parametrize("workload", [*FORMS.values(), {"home": "uniform"}], ids=[*FORMS, "uniform homes"])
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


@pytest.mark.long
@pytest.mark.parametrize("form", ["statements", "procedures"])
@pytest.mark.parametrize(
    "isolation", ["read-committed", pytest.param("repeatable-read", marks=pytest.mark.long), "serializable"]
)
def test_many_clients_on_one_warehouse_leave_it_consistent(copy: Copy, isolation: str, form: str) -> None:
    workload = {"form": form, "isolation": isolation, "mix": {"delivery": 20}}
    result = copy.run(workload, clients=8, threads=2, transactions_per_client=60, max_tries=3)
    kinds = {error.kind for error in result.errors}
    assert kinds <= {"serialization_failure"}, result.errors
    assert bool(kinds) == (isolation != "read-committed")
    assert copy.violations() == []


@pytest.mark.long
def test_all_forms_leave_the_same_rows(place: Place, load: Load, finished: Finished) -> None:
    check_forms(place, load, finished)


@pytest.mark.long
def test_all_forms_leave_the_same_rows_in_an_older_postgresql(old_place: Place, load: Load, finished: Finished) -> None:
    check_forms(old_place, load, finished)


def check_forms(place: Place, load: Load, finished: Finished) -> None:
    seen = {}
    for form, workload in FORMS.items():
        one = Copy(place, load, finished)
        result = one.run({"rollback_share": 0.1} | workload, transactions_per_client=200, seed=5)
        seen[form] = (contents(one), {script.name: script.measured.rolled_back for script in result.scripts})
        assert (result.errors, result.totals.done) == ((), 200)
        one.control.close()
    assert seen["statements"] == seen["pipelined statements"] == seen["procedures"]


@pytest.mark.long
@pytest.mark.parametrize("form", ["statements", "procedures"])
def test_every_commit_of_a_ledger_is_there(copy: Copy, tmp_path: Path, form: str) -> None:
    """Orders that are rolled back, and transactions that only read, commit nothing."""
    prepare_ledger_tables(copy.control, clients=4)
    workload = {"form": form, "rollback_share": 0.2, "isolation": "repeatable-read"}
    ledger = {"folder": str(tmp_path)}
    result = copy.run(workload, clients=4, threads=2, transactions_per_client=100, ledger=ledger)
    commits = read_commit_ledger(tmp_path)
    rolled_back = sum(script.measured.rolled_back or 0 for script in result.scripts)
    done = counts(result)
    writing = done["new-order"] - rolled_back + done["payment"] + done["delivery"]
    assert rolled_back > 0
    assert len(commits.of_class("acknowledged")) == writing
    check = compare_ledger(commits, copy.control)
    assert (check.rows, check.is_clean) == (writing, True)
    assert copy.violations() == []


@pytest.mark.long
@pytest.mark.parametrize("form", ["statements", pytest.param("procedures", marks=pytest.mark.long)])
def test_an_open_loop_of_transactions(copy: Copy, form: str) -> None:
    rate = {"stages": [{"from_tps": 200.0, "to_tps": 200.0}]}
    result = copy.run({"form": form}, clients=4, threads=2, duration_s=1.0, rate=rate)
    assert result.errors == ()
    # 200 expected, and more than 5 standard deviations to either side.
    assert 120 < result.totals.scheduled < 280
    assert copy.violations() == []


def test_procedures_that_are_not_there_are_named(copy: Copy) -> None:
    copy.control.execute("DROP PROCEDURE tpcc_payment")
    result = copy.run({"form": "procedures"}, transactions_per_client=100)
    (error,) = result.errors
    assert (error.script, error.sqlstate, error.count) == ("payment", "42883", 43)


def paced(waits: dict[str, float]) -> list[dict[str, Any]]:
    """Stock levels with waits of their own; those of the specification would take minutes."""
    return [one.model_dump() | waits for one in transactions({}) if one.name == "stock-level"]


def test_terminals_key_and_think_and_neither_is_a_part_of_latency(copy: Copy) -> None:
    scripts = paced({"keying_s": 0.1, "think_s": 0.05})
    result = copy.run(scripts=scripts, transactions_per_client=8)
    assert (result.totals.done, result.errors) == (8, ())
    (latencies,) = [one for one in result.histograms if one.scope == "transaction"]
    # Between the transactions there are seven keying times at least.
    assert latencies.sum_ns + 7 * 0.1e9 < result.measured_ns


def test_a_terminal_that_waits_ends_with_the_run(copy: Copy) -> None:
    scripts = paced({"keying_s": 1e6, "think_s": 1e6})
    result = copy.run(scripts=scripts, clients=4, duration_s=0.3)
    assert (result.totals.scheduled, result.totals.open, result.errors) == (0, 0, ())


SLOW = {"name": "slow", "source": "SELECT pg_sleep(0.2);\n"}


def test_a_terminal_does_not_wait_for_a_deferred_transaction(copy: Copy) -> None:
    """Which takes 0.2 s: with keying times of 0.3 s eight of them take 4 s, or 2.4 s for whoever does not wait."""
    took_s: dict[bool, float] = {}
    for deferred in (False, True):
        result = copy.run(scripts=[SLOW | {"keying_s": 0.3, "deferred": deferred}], transactions_per_client=9)
        assert (result.totals.done, result.errors) == (9, ())
        took_s[deferred] = result.measured_ns / 1e9
    assert took_s[False] >= 9 * 0.2 + 8 * 0.3
    assert 9 * 0.3 - 0.4 < took_s[True] < took_s[False] - 1


def test_who_is_late_for_a_deferred_transaction_shows_it_as_latency(copy: Copy) -> None:
    """One is due every 0.05 s and takes 0.2 s: the last of six ends 0.2 + 5 x 0.15 s after it was due."""
    result = copy.run(scripts=[SLOW | {"keying_s": 0.05, "deferred": True}], transactions_per_client=6)
    (latencies,) = [one for one in result.histograms if one.scope == "transaction"]
    assert latencies.max_ns > 0.9e9


def test_deliveries_alone_are_deferred() -> None:
    deferred = {one.name for one in transactions({"pacing": "spec", "delivery": "deferred"}) if one.deferred}
    assert deferred == {"delivery"}
    assert not any(one.deferred for one in transactions({"pacing": "spec"}))


def test_pacing_of_the_specification() -> None:
    waits = {one.name: (one.keying_s, one.think_s) for one in transactions({"pacing": "spec"})}
    of_others = {"order-status": (2, 10), "delivery": (2, 5), "stock-level": (2, 5)}
    assert waits == {"new-order": (18, 12), "payment": (3, 12)} | of_others
    assert {(one.keying_s, one.think_s) for one in transactions({})} == {(0, 0)}
    # The ceiling of clause 4.1: new orders a minute of a warehouse, whose terminals do nothing but wait.
    mean_s = sum(one.weight * (one.keying_s + one.think_s) for one in transactions({"pacing": "spec"})) / 100
    assert 10 * 60 / mean_s * 0.45 == pytest.approx(12.86, abs=0.4)


def contents(copy: Copy) -> dict[str, Any]:
    """The number of rows of each of the nine tables, and a sum of hashes of those that the load has written, without the times
    of the server's clock; of new_order, from which rows are deleted, of all. The others are those of the template."""
    times = {"history": "h_date", "orders": "o_entry_d", "order_line": "ol_delivery_d"}
    tables = ["warehouse", "district", "item", "customer", "history", "orders", "new_order", "order_line", "stock"]
    without = {table: f"to_jsonb(x) - '{times[table]}'" if table in times else "to_jsonb(x)" for table in tables}
    written = {table: "true" if table == "new_order" else f"xmin::text::bigint > {copy.last_xid}" for table in tables}
    return {
        table: copy.rows(
            f"SELECT count(*), sum(hashtextextended(({row})::text, 0)) FILTER (WHERE {written[table]}) FROM {table} x"
        )[0]
        for table, row in without.items()
    }


def test_options_of_tpcc_are_refused_elsewhere() -> None:
    for key, value in {"isolation": "serializable", "mix": {"payment": 1}, "rollback_share": 0.5}.items():
        with pytest.raises(ValidationError, match=f'{key}: of builtin = "tpcc" only'):
            WorkloadSpec.model_validate({"builtin": "select-only", key: value})


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"form": "procedures", "pipeline": True}, "pipeline: of form"),
        ({"pacing": "spec", "home": "uniform"}, "home: got uniform"),
        ({"pacing": "spec", "rate": 10}, "rate: not with pacing"),
        ({"delivery": "deferred"}, 'delivery: got deferred without pacing = "spec"'),
    ],
)
def test_options_that_exclude_each_other_are_refused(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        WorkloadSpec.model_validate({"builtin": "tpcc"} | workload)
