"""Datasets that Plinth generates, loaded into real servers, and what is checked of them after a trial."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import TypeAdapter

from native_server import Finished, Load, Server
from plinth.model.builtin import BUILTINS
from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Refused, RunError
from plinth.model.plan import ScriptText
from plinth.model.progress import Progress
from plinth.model.workload import WorkloadSpec
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.workload import Dataset, await_sessions, dataset_of, scripts_of
from typed import of

DATASETS: TypeAdapter[DatasetSpec] = TypeAdapter(DatasetSpec)


class Place:
    """A database of the test's own."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.target = Connection(**server.connection(database=name))
        server.execute(f"CREATE DATABASE {name}")
        self.control = psycopg.connect(
            host=str(server.folder), port=server.port, user="postgres", dbname=name, autocommit=True
        )

    def load(self, **spec: Any) -> Dataset:
        """Load a dataset; its progress is kept."""
        dataset = dataset_of(DATASETS.validate_python(spec))
        self.progress: list[Progress] = []
        dataset.populate(DatasetSession(self.control, self.target, HOST), self.progress.append)
        return dataset

    def row(self, query: str) -> tuple[Any, ...]:
        found = self.control.execute(query.encode()).fetchone()
        assert found is not None
        return found


@pytest.fixture
def place(server: Server) -> Iterator[Place]:
    place = Place(server, "datasets")
    yield place
    place.control.close()
    server.execute("DROP DATABASE datasets WITH (FORCE)")


NUMBERS = {"kind": "numbers", "rows": 250_000, "operators": 7, "regions": 3}
DIGEST = "SELECT md5(string_agg(n::text, ';' ORDER BY number)) FROM numbers n"


def test_numbers_are_all_there_with_their_key_and_sequence(place: Place) -> None:
    dataset = place.load(**NUMBERS)
    assert place.row("SELECT count(*), min(number), max(number), sum(number) FROM numbers") == (
        250_000,
        1,
        250_000,
        250_000 * 250_001 // 2,
    )
    assert place.row("SELECT min(operator), max(operator), min(region), max(region) FROM numbers") == (1, 7, 1, 3)
    least, most = place.row("SELECT min(c), max(c) FROM (SELECT count(*) c FROM numbers GROUP BY operator, region) x")
    assert 11_000 < least <= most < 13_000  # of 11,905 each
    assert place.row("INSERT INTO numbers (operator) VALUES (1) RETURNING number") == (250_001,)
    estimated = dataset.size()
    tables, indexes = place.row("SELECT pg_table_size('numbers'), pg_indexes_size('numbers')")
    assert tables == pytest.approx(estimated.tables_bytes, rel=0.02)
    assert indexes == pytest.approx(estimated.indexes_bytes, rel=0.02)
    assert {"load rows", "build keys", "functions", "vacuum and count"} == {step.task for step in place.progress}


def test_one_stream_freezes_and_gives_the_same_rows_as_several(place: Place) -> None:
    place.load(**NUMBERS, streams=3)
    by_three = place.row(DIGEST)
    place.control.execute("CREATE EXTENSION pg_visibility")
    frozen = "SELECT count(*) FROM pg_visibility('numbers') WHERE NOT all_frozen"
    assert place.row(frozen)[0] > 0
    place.control.execute("DROP TABLE numbers, plinth_load")
    place.load(**NUMBERS, streams=1)
    assert place.row(DIGEST) == by_three
    assert place.row(frozen) == (0,)
    place.control.execute("DROP TABLE numbers, plinth_load")
    place.load(**NUMBERS, seed=2)
    assert place.row(DIGEST) != by_three
    # Where several streams would wait for each other's pages, one is the default.
    assert (place.row(frozen) == (0,)) == (140_000 <= place.control.info.server_version < 160_000)


TPCB = {"kind": "tpcb", "scale": 1}


def worked(place: Place, dataset: Dataset, load: Load, finished: Finished, **workload: Any) -> Any:
    """The checks of a trial, and its result."""
    spec = WorkloadSpec.model_validate(workload)
    (script,) = scripts_of(spec, BUILTINS[workload["builtin"]].dataset, {})
    before = dataset.before_trial(place.control)
    run = load(
        place.server.connection(database="datasets"),
        of(ScriptText, script).source,
        variables=dataset.variables(),
        clients=4,
        duration_s=0.3,
    )
    result = finished(run)
    assert result.errors == ()
    await_sessions(place.control, place.target.application_name)
    return dataset.after_trial(place.control, before, spec, result), result


def test_every_acknowledged_update_has_written_its_rows(place: Place, load: Load, finished: Finished) -> None:
    dataset = place.load(**NUMBERS, streams=1)  # of one stream every page is full
    for statements in (1, 2):
        (check,), result = worked(
            place, dataset, load, finished, builtin="numbers-update", statements=statements, active_rows=200_000
        )
        assert check.ok, check
        assert int(check.got) == result.totals.done * statements > 0
    # What was updated lies behind the 1,352 pages that were loaded.
    (moved, greatest) = place.row("SELECT count(*), max(number) FROM numbers WHERE ctid >= '(1352,0)'")
    assert moved > 0 and greatest <= 200_000
    checks, result = worked(place, dataset, load, finished, builtin="numbers-select")
    assert (checks, result.totals.done > 0) == ([], True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "builtin", "planted", "evidence"),
    [
        (NUMBERS, "numbers-update", "DELETE FROM numbers WHERE number = 3", "got='249999'"),
        ({"kind": "upsert", "rows": 2_000}, "upsert", "DELETE FROM upserted WHERE id = 3", "got='1999'"),
        (TPCB, "tpcb-like", "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 3", "in tellers"),
        (TPCB, "simple-update", "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 3", "in accounts"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_invariants_hold_after_any_commits_and_what_breaks_one_is_named(
    place: Place, load: Load, finished: Finished, spec: dict[str, Any], builtin: str, planted: str, evidence: str
) -> None:
    dataset = place.load(**spec)
    workload = WorkloadSpec.model_validate({"builtin": builtin})
    before = dataset.before_trial(place.control)
    _, result = worked(place, dataset, load, finished, builtin=builtin)
    assert result.totals.done > 0
    checks = dataset.after_cut(place.control, before, workload)
    assert checks and all(check.ok for check in checks)
    place.control.execute(planted.encode())
    assert [
        evidence in repr(check) for check in dataset.after_cut(place.control, before, workload) if not check.ok
    ] == [True]


def test_writes_that_are_lost_fail_the_check(place: Place, load: Load, finished: Finished) -> None:
    dataset = place.load(**NUMBERS)
    place.control.execute("CREATE RULE lost AS ON UPDATE TO numbers DO INSTEAD NOTHING")
    (check,), _ = worked(place, dataset, load, finished, builtin="numbers-update")
    assert not check.ok
    assert check.got == "0"


def test_rows_that_go_missing_are_an_error_of_the_load(place: Place) -> None:
    place.control.execute(
        "CREATE FUNCTION odd() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF tg_tag = 'ALTER TABLE' THEN DELETE FROM numbers WHERE number = 3; END IF; END $$;"
        "CREATE EVENT TRIGGER odd ON ddl_command_end EXECUTE FUNCTION odd()"
    )
    with pytest.raises(RunError, match="numbers has 249,999 rows after the load instead of 250,000"):
        place.load(**NUMBERS)


def test_a_table_in_the_way_is_an_error_and_stays(place: Place) -> None:
    place.control.execute("CREATE TABLE numbers AS SELECT 7 AS number")
    with pytest.raises(Refused, match="the table numbers is there already, with rows: it is not ours") as raised:
        place.load(**NUMBERS)
    assert raised.value.exit_code == 4 and "rename that table" in str(raised.value.hint)
    assert place.row("SELECT number FROM numbers") == (7,)
    assert place.row("SELECT to_regclass('plinth_load')") == (None,)


@pytest.mark.parametrize("words", ["", "COMMENT ON TABLE plinth_load IS 'another'"])
def test_a_progress_table_that_is_not_ours_is_an_error_and_stays(place: Place, words: str) -> None:
    place.control.execute("CREATE TABLE plinth_load AS SELECT 7 AS number")
    if words:
        place.control.execute(words.encode())
    with pytest.raises(Refused, match="plinth_load is there already, of another dataset"):
        place.load(**NUMBERS)
    assert place.row("SELECT number FROM plinth_load") == (7,)


@pytest.mark.parametrize(("builtin", "rows", "ids"), [("upsert-function", 2_000, None), ("upsert", 0, 3_000)])
def test_upserts_insert_and_update_and_each_trial_begins_alike(
    place: Place, load: Load, finished: Finished, builtin: str, rows: int, ids: int | None
) -> None:
    dataset = place.load(kind="upsert", rows=rows, ids=ids)
    greatest = ids or 10 * rows
    for _ in range(2):
        (check,), result = worked(place, dataset, load, finished, builtin=builtin)
        assert check.ok, check
        assert int(check.got) == result.totals.done > 0
        updates = f"FILTER (WHERE crt_time > '2013-01-01' AND id <= {rows})"
        count, last, updated = place.row(f"SELECT count(*), max(id), count(*) {updates} FROM upserted")
        assert rows < count <= greatest and rows < last <= greatest
        assert (updated > 0) == (rows > 0)
    dataset.before_trial(place.control)
    assert place.row("SELECT count(*), coalesce(max(id), 0) FROM upserted") == (rows, rows)


def test_rows_to_upsert_have_text_that_repeats_and_a_time(place: Place) -> None:
    dataset = place.load(kind="upsert", rows=100_000)
    assert place.row("SELECT min(length(info)), max(length(info)), count(DISTINCT info) FROM upserted") == (
        290,
        290,
        100_000,
    )
    assert place.row("SELECT bool_and(info = repeat(left(info, 29), 10)) FROM upserted") == (True,)
    assert place.row("SELECT min(crt_time)::text, max(crt_time)::text FROM upserted") == ("2012-12-12 12:12:12",) * 2
    tables, indexes = place.row("SELECT pg_table_size('upserted'), pg_indexes_size('upserted')")
    assert tables == pytest.approx(dataset.size().tables_bytes, rel=0.02)
    assert indexes == pytest.approx(dataset.size().indexes_bytes, rel=0.02)


def test_an_error_that_the_function_swallows_is_reported_by_the_check(
    place: Place, load: Load, finished: Finished
) -> None:
    dataset = place.load(kind="upsert", rows=1_000)
    place.control.execute("ALTER TABLE upserted ADD CHECK (id < 2000)")
    (check,), result = worked(place, dataset, load, finished, builtin="upsert-function")
    assert not check.ok
    assert int(check.got) < result.totals.done


COLUMNS = {
    "id": {"kind": "sequence", "first": 10, "step": 5, "type": "int"},
    "customer": {"kind": "zipfian", "min": 1, "max": 1000, "parameter": 1.5},
    "level": {"kind": "gaussian", "min": -100, "max": 100, "type": "smallint"},
    "Note": {"kind": "text", "size": 200, "compressibility": 0.75},
    "at": {"kind": "timestamp", "first": "2020-01-01 00:00:00", "last": "2020-12-31 23:59:59.5"},
    "seen": {"kind": "timestamp", "first": "1969-12-31 00:00:00", "last": "1970-01-02 00:00:00", "spaced": False},
}


def test_columns_of_ones_own(place: Place) -> None:
    spec = {"kind": "generated", "table": "My-events", "rows": 50_000, "columns": COLUMNS, "key": "id"}
    dataset = place.load(**spec)
    assert place.row('SELECT count(*), min(id), max(id) FROM "My-events"') == (50_000, 10, 10 + 5 * 49_999)
    assert place.row(
        'SELECT pg_typeof(id)::text, pg_typeof(customer)::text, pg_typeof(level)::text FROM "My-events"'
    ) == (
        "integer",
        "bigint",
        "smallint",
    )
    first, second, many = place.row(
        'SELECT count(*) FILTER (WHERE customer = 1), count(*) FILTER (WHERE customer = 2), count(DISTINCT customer) FROM "My-events"'
    )
    assert first > 2 * second > 0 and many > 300
    mean, deviation = place.row('SELECT avg(level)::float, stddev(level)::float FROM "My-events"')
    assert mean == pytest.approx(0, abs=0.5)
    assert deviation == pytest.approx(10, rel=0.05)
    assert place.row(
        'SELECT bool_and("Note" = repeat(left("Note", 50), 4)), count(DISTINCT "Note") FROM "My-events"'
    ) == (
        True,
        50_000,
    )
    assert place.row(
        'SELECT min(at)::text, max(at)::text, corr(id, extract(epoch FROM at))::numeric(9, 6)::text FROM "My-events"'
    ) == (
        "2020-01-01 00:00:00",
        "2020-12-31 23:59:59.5",
        "1.000000",
    )
    assert place.row(
        "SELECT bool_and(seen BETWEEN '1969-12-31' AND '1970-01-02'), count(DISTINCT seen::date) >= 2 FROM \"My-events\""
    ) == (True, True)
    tables, indexes = place.row("""SELECT pg_table_size('"My-events"'), pg_indexes_size('"My-events"')""")
    assert tables == pytest.approx(dataset.size().tables_bytes, rel=0.05)
    assert indexes == pytest.approx(dataset.size().indexes_bytes, rel=0.05)
    assert dataset.before_trial(place.control) == {}
