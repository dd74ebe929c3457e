"""The sql dataset in a real server: loaded, prepared for trials, and its failures reported by file and line."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import TypeAdapter

from native_server import Server
from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import RunError
from plinth.model.progress import Progress
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.workload import Dataset, dataset_of

DATASETS: TypeAdapter[DatasetSpec] = TypeAdapter(DatasetSpec)
SCHEMA = "CREATE TABLE customers (id int PRIMARY KEY, name text);\nCREATE TABLE orders (id bigserial, customer int);\n"
LOAD = """\
COPY customers FROM stdin;
1\tAnna
2\tBertil
\\.
INSERT INTO orders (customer) SELECT 1 + n % 2 FROM generate_series(1, 10 * :rows) n;
"""
FILES = {
    "schema.sql": SCHEMA,
    "load.sql": LOAD,
    "index.sql": "CREATE INDEX ON orders (customer);",
    "reset.sql": "DELETE FROM orders WHERE id > 10 * :rows;",
}
SPEC: dict[str, Any] = {
    "kind": "sql",
    "schema": "schema.sql",
    "load": ["load.sql"],
    "after_load": "index.sql",
    "before_trial": "reset.sql",
    "rows": 500,
    "checks": {"customers": 2, "orders": "10 * :rows"},
}


class Place:
    """A database of the test's own, and a session in it, as of a managed server."""

    def __init__(self, server: Server) -> None:
        self.target = Connection(**server.connection(database="sql"))
        self._where = {"host": str(server.folder), "port": server.port, "user": "postgres", "dbname": "sql"}
        self.control = self.session()

    def session(self, options: str = "") -> "psycopg.Connection[Any]":
        return psycopg.connect(**self._where, options=options, autocommit=True)

    def load(self, files: dict[str, str], control: "psycopg.Connection[Any] | None" = None, **spec: Any) -> Dataset:
        dataset = dataset_of(DATASETS.validate_python(SPEC | spec), FILES | files)
        self.progress: list[Progress] = []
        dataset.populate(DatasetSession(control or self.control, self.target, HOST), self.progress.append)
        return dataset

    def row(self, query: str) -> tuple[Any, ...]:
        found = self.control.execute(query.encode()).fetchone()
        assert found is not None
        return found


@pytest.fixture
def place(server: Server) -> Iterator[Place]:
    server.execute("CREATE DATABASE sql")
    place = Place(server)
    yield place
    place.control.close()
    server.execute("DROP DATABASE sql WITH (FORCE)")


def test_files_make_fill_and_index_tables_and_each_trial_begins_alike(place: Place) -> None:
    dataset = place.load({})
    assert place.row("SELECT count(*), min(id), max(id) FROM orders") == (5_000, 1, 5_000)
    assert place.row("SELECT string_agg(name, ',' ORDER BY id) FROM customers") == ("Anna,Bertil",)
    assert place.row("SELECT count(*) FROM pg_indexes WHERE tablename = 'orders'") == (1,)
    analysed = "SELECT count(*) FROM pg_class WHERE relname IN ('orders', 'customers') AND reltuples > 0"
    assert place.row(analysed) == (2,)
    assert {step.task for step in place.progress} >= {"make the tables", "fill the tables", "vacuum"}
    assert dataset.variables() == {"scale": "1", "rows": "500"}
    assert [step.title for step in dataset.steps()][:2] == [
        "make the tables: schema.sql, 2 statements",
        "fill the tables: load.sql, 2 statements",
    ]
    place.control.execute("INSERT INTO orders (customer) VALUES (7); UPDATE orders SET customer = 1")
    assert dataset.before_trial(place.control) == {}
    assert place.row("SELECT count(*) FROM orders") == (5_000,)
    place.control.execute("CREATE EXTENSION pgstattuple")
    assert place.row("SELECT dead_tuple_count FROM pgstattuple('orders')") == (0,)


def test_a_plain_dump_loads(place: Place) -> None:
    """It empties search_path, and names its schema."""
    dump = "SET statement_timeout = 0;\nSELECT pg_catalog.set_config('search_path', '', false);\n"
    dump += "CREATE TABLE public.customers (id int);\nCOPY public.customers (id) FROM stdin;\n1\n2\n\\.\n"
    place.load({"dump.sql": dump}, schema="dump.sql", load=[], after_load=[], before_trial=[], checks={"customers": 2})


FAILURES = [
    ({"schema.sql": SCHEMA + "\nCREATE TABLE x (\n id int,\n b nosuchtype\n);"}, {}, "schema.sql:6", 'type "nosuchtype" does not exist'),
    ({"load.sql": LOAD + "SELECT\n  1 / (:rows - 500);"}, {}, "load.sql:6", "division by zero (SQLSTATE 22012)"),
    ({"load.sql": LOAD.replace("2\tBertil", "two\tBertil")}, {}, "load.sql:1", "invalid input syntax for type integer"),
    ({"index.sql": "DO $$\nBEGIN\n  RAISE 'no';\nEND $$;"}, {}, "index.sql:1", "no (SQLSTATE P0001)"),
    ({"index.sql": "BEGIN;\nCREATE INDEX ON orders (customer);"}, {}, "index.sql", "leave a transaction open"),
    ({}, {"checks": {"orders": 4}}, "dataset.checks.orders", "orders has 5,000 rows after the load instead of 4"),
    ({}, {"checks": {"order": 4}}, "dataset.checks.order", "there is no table order"),
    ({"load.sql": "COPY customers FROM stdin (FORMAT binary);\n\\.\n"}, {}, "load.sql:1", "COPY file signature not recognized"),
    ({}, {"checks": {"orders": "0); DELETE FROM orders; --"}}, "dataset.checks.orders", "is several statements"),
    ({}, {"checks": {"orders": ":rows +"}}, "dataset.checks.orders", "the check cannot be made: syntax error"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "spec", "where", "message"), FAILURES, ids=[row[2] for row in FAILURES])
def test_what_fails_is_reported_by_file_and_line(
    place: Place, files: dict[str, str], spec: dict[str, Any], where: str, message: str
) -> None:
    with pytest.raises(RunError) as caught:
        place.load(files, **spec)
    assert caught.value.where == where
    assert message in caught.value.message


def test_on_an_external_server_nothing_is_left_outside_of_the_runs_schema(place: Place) -> None:
    place.control.execute("CREATE SCHEMA plinth_run; CREATE TABLE public.customers AS SELECT 'theirs' AS name")
    with place.session('-c search_path="plinth_run","$user",public') as control:
        dataset = place.load({}, control)
        dataset.before_trial(control)
        assert place.row("SELECT count(*) FROM plinth_run.orders") == (5_000,)
        assert place.row("SELECT name FROM public.customers") == ("theirs",)
        control.execute("DROP TABLE orders, customers")
        with pytest.raises(RunError, match=r"outside of the schema .*: public.left_behind") as caught:
            place.load({"index.sql": "CREATE TABLE public.left_behind ();"}, control)
        assert "leave out names of schemas" in (caught.value.hint or "")
