"""The dataset of the TPC-C-derived workload: its rows, its keys, its consistency conditions, on a real server."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import TypeAdapter, ValidationError

from native_server import Server
from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec, TpccDataset
from plinth.model.errors import RunError
from plinth.model.facts import Installation
from plinth.model.tpcc_tables import SEED_QUERY, seed_comment, seed_in
from plinth.model.trial import Check
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.system.owner import Owner
from plinth.workload import Dataset, dataset_of
from plinth.workload.tpcc_conditions import check_conditions

DATASETS: TypeAdapter[DatasetSpec] = TypeAdapter(DatasetSpec)
KEYS = "SELECT contype::text, count(*)::int FROM pg_constraint WHERE contype IN ('p', 'f') AND connamespace = 'public'::regnamespace GROUP BY 1 ORDER BY 1"


class Place:
    """A database with one warehouse, unless `spec` has more."""

    def __init__(self, server: Server, name: str, **spec: Any) -> None:
        self.server = server
        server.execute(f"CREATE DATABASE {name}")
        self.target = Connection(**server.connection(database=name))
        self.control = psycopg.connect(
            host=str(server.folder), port=server.port, user="postgres", dbname=name, autocommit=True
        )
        self.dataset: Dataset = dataset_of(DATASETS.validate_python({"kind": "tpcc"} | spec))

    def load(self) -> list[str]:
        """Load; the tasks that it reports."""
        tasks: dict[str, None] = {}
        session = DatasetSession(self.control, self.target, HOST)
        self.dataset.populate(session, lambda progress: tasks.update({progress.task: None}))
        return list(tasks)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.control.execute(query.encode()).fetchall()


@pytest.fixture(scope="module")
def loaded(installations: dict[str, Installation], owner: Owner) -> Iterator[Place]:
    """Tests undo what they change."""
    server = Server(installations["18"], owner)
    server.start()
    place = Place(server, "tpcc")
    place.load()
    yield place
    place.control.close()
    server.remove()


@pytest.mark.long
def test_tables_have_their_rows_keys_and_estimated_size(loaded: Place) -> None:
    counts = {
        table: loaded.rows(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("warehouse", "district", "item", "customer", "history", "orders", "new_order", "stock")
    }
    expected = dict.fromkeys(("customer", "history", "orders"), 30_000) | {"warehouse": 1, "district": 10}
    assert counts == expected | {"item": 100_000, "stock": 100_000, "new_order": 9_000}
    ((lines, said),) = loaded.rows("SELECT (SELECT count(*) FROM order_line), (SELECT sum(o_ol_cnt) FROM orders)")
    assert lines == said == pytest.approx(300_000, abs=5 * 548)  # the standard deviation of 30,000 counts of 5 to 15
    assert loaded.rows(KEYS) == [("p", 8)]
    tables = "(relkind = 'r' AND relnamespace = 'public'::regnamespace)"
    ((heap, indexes),) = loaded.rows(
        f"SELECT sum(pg_table_size(oid))::bigint, sum(pg_indexes_size(oid))::bigint FROM pg_class WHERE {tables}"
    )
    estimated = loaded.dataset.size()
    assert (heap, indexes) == (
        pytest.approx(estimated.tables_bytes, rel=0.05),
        pytest.approx(estimated.indexes_bytes, rel=0.05),
    )


@pytest.mark.long
def test_the_seed_is_kept_with_the_tables(loaded: Place) -> None:
    ((comment,),) = loaded.rows(SEED_QUERY)
    assert seed_in(comment) == 1
    assert (seed_in(None), seed_in("warehouses of my own"), seed_in(seed_comment(2**62))) == (None, None, 2**62)


PARTITIONS = "SELECT inhparent::regclass::text, count(*) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE c.relkind = 'r' GROUP BY 1"
ALL_ROWS = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {} t"  # in any order, without a sort
LARGE = ("customer", "history", "orders", "new_order", "order_line", "stock")


@pytest.fixture(scope="module")
def whole(loaded: Place) -> dict[str, tuple[Any, ...]]:
    """ALL_ROWS of two warehouses in whole tables. The hash of a text is the same in all versions."""
    place = Place(loaded.server, "tpcc_whole", warehouses=2)
    place.load()
    found = {table: place.rows(ALL_ROWS.format(table))[0] for table in (*LARGE, "warehouse", "district", "item")}
    place.control.close()
    loaded.server.execute(f"DROP DATABASE {place.target.database} WITH (FORCE)")
    return found


@pytest.mark.long
@pytest.mark.parametrize("server", ["debian"], indirect=True)
def test_partitions_by_warehouse_have_the_rows_of_whole_tables(
    server: Server, whole: dict[str, tuple[Any, ...]]
) -> None:
    parts = Place(server, "tpcc_parts", warehouses=2, partitions=2, foreign_keys=True)
    try:
        tasks = parts.load()
        assert "check foreign keys" in tasks
        assert dict(parts.rows(PARTITIONS)) == dict.fromkeys(LARGE, 2)
        for table, rows in whole.items():
            assert parts.rows(ALL_ROWS.format(table)) == [rows], table
        assert parts.rows("SELECT DISTINCT ol_w_id FROM order_line_1") == [(1,)]
        keys = "SELECT contype::text, count(*)::int FROM pg_constraint WHERE contype IN ('p', 'f') AND conparentid = 0 AND connamespace = 'public'::regnamespace GROUP BY 1 ORDER BY 1"
        assert parts.rows(keys) == [("f", 10), ("p", 8)]
        invalid = "SELECT count(*), count(*) FILTER (WHERE indisvalid) FROM pg_index WHERE indrelid = ANY('{orders,customer}'::regclass[])"
        assert parts.rows(invalid) == [(4, 4)]
        assert parts.load() == []
    finally:
        parts.control.close()
        server.execute(f"DROP DATABASE {parts.target.database} WITH (FORCE)")


def test_a_whole_load_is_not_loaded_again(loaded: Place) -> None:
    assert loaded.load() == []


def test_names_and_shares_are_those_of_the_specification(loaded: Place) -> None:
    first = "SELECT count(DISTINCT c_last) FROM customer WHERE c_id <= 1000 AND c_d_id = 3"
    assert loaded.rows(first) == [(1000,)]
    assert loaded.rows("SELECT c_last FROM customer WHERE c_d_id = 3 AND c_id = 372") == [("PRICALLYOUGHT",)]
    ((bad,),) = loaded.rows("SELECT count(*) FROM customer WHERE c_credit = 'BC'")
    assert bad == pytest.approx(3_000, abs=5 * 52)
    for table in ("i_data FROM item", "s_data FROM stock"):
        column, _, name = table.split()
        ((original,),) = loaded.rows(f"SELECT count(*) FROM {name} WHERE {column} LIKE '%ORIGINAL%'")
        assert original == pytest.approx(10_000, abs=5 * 95), name


# Each spoils one row, in a way that the conditions named must find.
SPOILT = {
    "UPDATE warehouse SET w_ytd = w_ytd + 1": (1, 8),
    "UPDATE district SET d_ytd = d_ytd + 0.01 WHERE d_id = 4": (1, 9),
    "UPDATE district SET d_next_o_id = 3002 WHERE d_id = 4": (2,),
    "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500": (3, 5, 11),
    "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 4 AND o_id = 77": (4, 6),
    "UPDATE orders SET o_carrier_id = NULL WHERE o_d_id = 4 AND o_id = 77": (5, 7),
    "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 4 AND ol_o_id = 77 AND ol_number = 2": (7,),
    "UPDATE order_line SET ol_amount = 5 WHERE ol_d_id = 4 AND ol_o_id = 77 AND ol_number = 2": (10, 12),
    "UPDATE history SET h_amount = 11 WHERE h_d_id = 4 AND h_c_id = 77": (8, 9, 10),
    "UPDATE customer SET c_balance = -9 WHERE c_d_id = 4 AND c_id = 77": (10, 12),
}


def numbers(checks: list[Check]) -> tuple[int, ...]:
    """Of the conditions that are violated."""
    return tuple(int(check.name.split()[2].rstrip(":")) for check in checks if not check.ok)


@pytest.mark.long
@pytest.mark.parametrize("change", SPOILT)
def test_a_row_that_is_altered_is_found_and_named(loaded: Place, change: str) -> None:
    with loaded.control.transaction(force_rollback=True):
        assert loaded.control.execute(change.encode()).rowcount == 1
        checks = check_conditions(loaded.control, initial=True)
        assert numbers(checks) == SPOILT[change]
        for check in checks:
            if not check.ok:
                assert "w_id 1" in check.got and ("d_id 4" in check.got or check.name.split()[2] in ("1:", "8:")), (
                    check.got
                )


def test_trials_are_not_held_to_the_initial_population(loaded: Place) -> None:
    assert len(check_conditions(loaded.control, initial=False)) == 11


@pytest.mark.long
@pytest.mark.parametrize("server", ["debian"], indirect=True)
@pytest.mark.parametrize("loaded_with", [{"foreign_keys": True, "streams": 1, "seed": 2}])
def test_foreign_keys_hold_and_another_seed_has_other_rows(
    server: Server, loaded: Place, loaded_with: dict[str, Any]
) -> None:
    place = Place(server, "tpcc_keys", **loaded_with)
    try:
        tasks = place.load()
        assert tasks[-2:] == ["check foreign keys", "check consistency"]
        assert place.rows(KEYS) == [("f", 10), ("p", 8)]
        one, other = (
            each.rows("SELECT sum(o_ol_cnt), (SELECT max(i_name) FROM item) FROM orders") for each in (place, loaded)
        )
        assert one != other
    finally:
        place.control.close()
        server.execute("DROP DATABASE tpcc_keys WITH (FORCE)")


@pytest.mark.long
def test_a_dataset_that_is_spoilt_while_it_is_loaded_is_refused(loaded: Place) -> None:
    """By a trigger of another user on the tables, for example; here the mark of the check is removed."""
    loaded.control.execute("DELETE FROM plinth_load WHERE step = 'conditions'")
    loaded.control.execute("UPDATE district SET d_next_o_id = 3000 WHERE d_id = 2")
    try:
        with pytest.raises(RunError) as raised:
            loaded.load()
    finally:
        loaded.control.execute("UPDATE district SET d_next_o_id = 3001 WHERE d_id = 2")
    assert any("w_id 1, d_id 2: d_next_o_id 3000" in detail for detail in raised.value.details)
    assert loaded.load() == ["check consistency"]


@pytest.mark.parametrize(("key", "value"), [("partitions", 2), ("warehouses", 0)])
def test_what_it_cannot_do_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError, match=key):
        TpccDataset.model_validate({"kind": "tpcc", key: value})
