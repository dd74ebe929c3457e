"""What a load came to, and updates after it: looked at in a real server."""

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
from plinth.system.database import database_errors
from plinth.workload import Dataset, dataset_of, loaded_tables

DATASETS: TypeAdapter[DatasetSpec] = TypeAdapter(DatasetSpec)


@pytest.fixture
def control(server: Server) -> Iterator[psycopg.Connection[Any]]:
    server.execute("CREATE DATABASE loaded")
    with psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", dbname="loaded", autocommit=True
    ) as connection:
        yield connection
    server.execute("DROP DATABASE loaded WITH (FORCE)")


def load(server: Server, control: psycopg.Connection[Any], **spec: Any) -> tuple[Dataset, list[Progress]]:
    reported: list[Progress] = []
    dataset = dataset_of(DATASETS.validate_python(spec))
    target = Connection(**server.connection(database="loaded"))
    dataset.populate(DatasetSession(control, target, HOST), reported.append)
    return dataset, reported


def test_sizes_levels_and_pages_are_those_of_the_server(server: Server, control: psycopg.Connection[Any]) -> None:
    load(server, control, kind="numbers", rows=200_000)
    (table,), gaps = loaded_tables(control)
    (key,) = table.indexes
    assert gaps == ()
    assert (table.name, table.rows, key.name) == ("numbers", 200_000, "numbers_pkey")
    row = control.execute("SELECT pg_table_size('numbers'), pg_relation_size('numbers_pkey')").fetchone()
    assert row == (table.size_bytes, key.size_bytes)
    # 200,000 entries of 20 bytes: more leaves than one page names, fewer than two levels could.
    assert key.levels == 2 or (key.levels == 1 and key.size_bytes < 366 * 8192 * 2)
    assert key.levels is not None
    assert key.lookup_buffers == key.levels + 1 + 1, "each level, the leaf, and the row's page"
    assert control.execute("SELECT count(*) FROM pg_extension WHERE extname = 'pageinspect'").fetchone() == (0,)


def test_every_table_is_there_and_one_without_rows_has_no_lookup(
    server: Server, control: psycopg.Connection[Any]
) -> None:
    load(server, control, kind="tpcb", scale=1)
    control.execute("CREATE TABLE nothing (id int PRIMARY KEY)")
    tables, _ = loaded_tables(control)
    assert tables[0].name == "pgbench_accounts"
    lookups = {table.name: [index.lookup_buffers for index in table.indexes] for table in tables}
    assert lookups["nothing"] == [None]
    assert lookups["pgbench_history"] == []
    assert lookups["pgbench_branches"] == [2]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("text", r"O'Brien \ Söhne"),
        ("uuid", "0198c5a0-0000-7000-8000-000000000000"),
        ("bytea", r"\x00ff"),
        ("bool", "t"),
    ],
)
def test_keys_of_any_type_are_looked_up(control: psycopg.Connection[Any], type_: str, value: str) -> None:
    control.execute(f'CREATE TABLE "Kunden ""neu""" ("Schlüssel ""1""" {type_} PRIMARY KEY)'.encode())
    control.execute('INSERT INTO "Kunden ""neu""" VALUES (%s)', (value,))
    (table,), gaps = loaded_tables(control)
    assert ([index.lookup_buffers for index in table.indexes], gaps) == ([2], ())


def test_a_full_disk_is_reported_as_such_regardless_of_the_servers_hint(control: psycopg.Connection[Any]) -> None:
    raising = "DO $$ BEGIN RAISE 'no space' USING ERRCODE = 'disk_full', HINT = 'Check free disk space.'; END $$"
    with pytest.raises(RunError) as caught, database_errors("load the dataset", "1-disk"):
        control.execute(raising)
    assert caught.value.message == "cannot load the dataset: no space (SQLSTATE 53100)"
    assert caught.value.hint == "the storage is full: give it a larger size, or load less"


def test_who_may_not_look_gets_a_gap(server: Server, control: psycopg.Connection[Any]) -> None:
    control.execute("CREATE ROLE plain; GRANT ALL ON SCHEMA public TO plain; SET ROLE plain")
    try:
        control.execute("CREATE TABLE own (id int PRIMARY KEY); INSERT INTO own VALUES (1)")
        (table,), gaps = loaded_tables(control)
    finally:
        control.execute("RESET ROLE; DROP OWNED BY plain; DROP ROLE plain")
    assert [index.levels for index in table.indexes] == [None]
    assert [gap.what for gap in gaps] == ["levels of B-trees"]
    assert "permission denied" in gaps[0].reason


def test_updates_after_loading_leave_dead_rows_in_a_larger_table(
    server: Server, control: psycopg.Connection[Any]
) -> None:
    rows = 30_000
    dataset, reported = load(server, control, kind="numbers", rows=rows, updates_per_row=1.5, vacuum=False)
    assert reported[-1] == Progress("update rows at random", 1.5 * rows, 1.5 * rows, "rows")
    assert [step.id for step in dataset.steps()][-1] == "dataset.updates"
    assert control.execute("SELECT count(*), min(number), max(number) FROM numbers").fetchone() == (rows, 1, rows)
    control.execute("SELECT pg_stat_force_next_flush()" if control.info.server_version >= 150_000 else "SELECT 1")
    written = control.execute("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'numbers'").fetchone()
    assert written == (1.5 * rows,)
    size = control.execute("SELECT pg_relation_size('numbers')").fetchone()
    assert size is not None
    # Pages that are written again make room of versions that nobody sees any more, so it is less than 2.5 times.
    assert rows * 45 * 1.3 < size[0] <= dataset.size().tables_bytes * 1.02
