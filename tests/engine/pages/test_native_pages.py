"""The page writer: files that PostgreSQL takes for its own, byte for byte, and every way not to get them."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from native_server import Server
from page_files import first_difference, heap_pages, index_pages, map_pages
from plinth import _native
from plinth.model.tpcc_tables import TABLES as TPCC_TABLES
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from servers import VERSIONS, all_installations
from typed import present

INT8 = {"type": "int8"}
NUMBERS = {
    "kind": "columns",
    "table": "numbers",
    "rows": 200_000,
    "seed": 7,
    "columns": [
        {"kind": "sequence", "first": 1, "step": 1},
        {"kind": "uniform", "min": -100, "max": 100},
        {"kind": "uniform", "min": 1, "max": 32767},
    ],
}
WIDE = {
    "kind": "columns",
    "table": "wide",
    "rows": 5_000,
    "seed": 8,
    "columns": [
        {"kind": "text", "size_bytes": 126, "piece_bytes": 126},
        {"kind": "sequence", "first": -32_000, "step": 12},
        {"kind": "text", "size_bytes": 127, "piece_bytes": 5},
        {"kind": "timestamp", "first_us": -(10**15), "last_us": 10**15, "spaced": False},
        {"kind": "text", "size_bytes": 1, "piece_bytes": 1},
        {"kind": "sequence", "first": -5, "step": 0},
    ],
}
TPCB = {"kind": "tpcb", "scale": 1, "fillfactor": None}


@dataclass(frozen=True)
class Table:
    """A table that is filled twice: by COPY, and by the page writer."""

    generator: dict[str, Any]
    number: int
    """Among the generator's."""
    columns: str
    types: tuple[dict[str, Any], ...]
    """Left out: as the catalog has them."""
    key: int | None
    rows: int
    first_row: int = 0
    fillfactor: int = 100
    key_fillfactor: int = 90


def numbers(rows: int, **changes: Any) -> Table:
    types = (INT8, {"type": "int2"}, {"type": "int2"})
    return Table(NUMBERS, 0, "a bigint, b smallint, c smallint", types, 0, rows, **changes)


def tpcb(number: int, rows: int, columns: str, *types: dict[str, Any]) -> Table:
    return Table(TPCB, number, columns, types, 0, rows)


INT4 = {"type": "int4"}
# 185 rows a page; a leaf is full with 367 entries and keeps 366; 285 leaves are what one page names, and 286 are not.
EDGES = (0, 1, 2, 185, 186, 366, 367, 368, 733, 734, 366 * 285 + 1, 366 * 285 + 2)
TABLES = (
    *(numbers(rows) for rows in EDGES),
    numbers(10_000, fillfactor=10, key_fillfactor=10),
    numbers(9_999, first_row=123_456, fillfactor=73, key_fillfactor=100),
    tpcb(0, 1, "a int, b int, c char(88)", INT4, INT4, {"type": "bpchar", "length": 88}),
    tpcb(1, 10, "a int, b int, c int, d char(84)", INT4, INT4, INT4, {"type": "bpchar", "length": 84}),
    tpcb(2, 5_000, "a int, b int, c int, d char(84)", INT4, INT4, INT4, {"type": "bpchar", "length": 84}),
    Table(
        WIDE,
        0,
        "a text, b smallint, c varchar(127), d timestamp, e char(200), f int",
        (
            {"type": "text"},
            {"type": "int2"},
            {"type": "varchar", "length": 127},
            {"type": "timestamp"},
            {"type": "bpchar", "length": 200},
            INT4,
        ),
        1,
        5_000,
    ),
)


class FilledServer:
    """A server whose tables are filled while it does not run."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def create(self, name: str, table: Table, key: bool = True) -> None:
        self.server.execute(
            f"CREATE TABLE {name} ({table.columns}) WITH (fillfactor={table.fillfactor}, autovacuum_enabled=off)"
        )
        if key:
            self.add_key(name, table)

    def add_key(self, name: str, table: Table) -> None:
        if table.key is None:
            return
        column = "abcdef"[present(table.key)]
        self.server.execute(
            f"ALTER TABLE {name} ADD CONSTRAINT {name}_key PRIMARY KEY ({column}) WITH (fillfactor={table.key_fillfactor})"
        )

    def copy(self, name: str, table: Table) -> None:
        piece = {"table": table.number, "into": name, "first_row": table.first_row, "rows": table.rows}
        config = {
            "connection": self.server.connection(),
            "generator": table.generator,
            "streams": 1,
            "freeze": True,
            "pieces": [piece],
        }
        load = _native.BulkLoad(json.dumps(config))
        load.start()
        assert load.wait(60.0)
        assert json.loads(load.result())["errors"] == []

    def path(self, name: str) -> Path:
        ((path,),) = self.server.execute(f"SELECT pg_relation_filepath('{name}')")
        return self.server.data / path

    def relation(self, name: str, table: Table) -> dict[str, Any]:
        index = None
        if table.key is not None:
            path = str(self.path(f"{name}_key"))
            index = {"path": path, "column": table.key, "fillfactor": table.key_fillfactor}
        return {
            "table": table.number,
            "first_row": table.first_row,
            "rows": table.rows,
            "name": name,
            "columns": table.types or self.types(name),
            "heap": str(self.path(name)),
            "fillfactor": table.fillfactor,
            "index": index,
        }

    def types(self, name: str) -> list[dict[str, Any]]:
        rows = self.server.execute(
            "SELECT typname, format_type(atttypid, atttypmod) FROM pg_attribute JOIN pg_type t ON t.oid = atttypid"
            f" WHERE attrelid = '{name}'::regclass AND attnum > 0 ORDER BY attnum"
        )
        named = {"bpchar": ("length",), "varchar": ("length",), "numeric": ("precision", "scale")}
        return [
            {"type": kind} | dict(zip(named.get(kind, ()), map(int, re.findall(r"\d+", text)), strict=False))
            for kind, text in rows
        ]

    def checksums(self, *what: str) -> None:
        argv = [f"{self.server.installation.bindir}/pg_checksums", *what, "-D", str(self.server.data)]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0 or "already enabled" in done.stderr, done.stderr

    def fill(self, config: dict[str, Any]) -> dict[str, Any]:
        load = _native.PageLoad(json.dumps(config))
        load.start()
        return finished(load)

    def counts(self, name: str, key: str) -> dict[str, int]:
        """How many rows are found by each way to look at all."""
        counts: dict[str, int] = {}
        for others in (("indexscan", "indexonlyscan", "bitmapscan"), ("seqscan", "bitmapscan")):
            with self.server.connect() as connection:
                connection.execute("SET max_parallel_workers_per_gather = 0")
                for other in others:
                    connection.execute(f"SET enable_{other} = off".encode())
                query = f"SELECT count({key}) FROM {name}".encode()
                plan = connection.execute(b"EXPLAIN (FORMAT JSON) " + query).fetchone()
                count = connection.execute(query).fetchone()
            assert plan is not None and count is not None
            counts[plan[0][0]["Plan"]["Plans"][0]["Node Type"]] = count[0]
        return counts

    def is_whole(self, name: str, frozen: bool = True) -> None:
        """By PostgreSQL's own checkers, where the installation has them."""
        row = self.server.execute("SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'")
        if row == [(0,)]:
            assert self.server.installation.major == 16, "only this wheel lacks it"
            return
        self.server.execute("CREATE EXTENSION IF NOT EXISTS amcheck; CREATE EXTENSION IF NOT EXISTS pg_visibility")
        assert self.server.execute(f"SELECT * FROM verify_heapam('{name}')") == []
        if self.server.execute(f"SELECT to_regclass('{name}_key') IS NOT NULL") == [(True,)]:
            self.server.execute(f"SELECT bt_index_parent_check('{name}_key', true, true)")
        assert (
            self.server.execute(f"SELECT pg_check_visible('{name}') UNION ALL SELECT pg_check_frozen('{name}')") == []
        )


LONG = ("16", "17")


@pytest.fixture(
    scope="module", params=[pytest.param(one, marks=pytest.mark.long) if one in LONG else one for one in VERSIONS]
)
def filled(request: pytest.FixtureRequest, owner: Owner) -> Iterator[FilledServer]:
    """One that runs, for tests that leave it running."""
    installation = all_installations(owner, Runner())[request.param]
    server = Server(installation, owner, "max_wal_size = 4GB\n")
    filled = FilledServer(server)
    filled.checksums("--enable", "--no-sync")
    server.start()
    yield filled
    server.remove()


@pytest.mark.long
def test_files_are_those_of_copy_freeze_and_a_key(filled: FilledServer) -> None:
    server = filled.server
    for number, table in enumerate(TABLES):
        filled.create(f"copied{number}", table, key=False)
        if table.rows:
            filled.copy(f"copied{number}", table)
        filled.add_key(f"copied{number}", table)
        filled.create(f"written{number}", table)
    server.execute("CHECKPOINT")
    names = [(f"copied{number}", f"written{number}") for number in range(len(TABLES))]
    paths = {name: (filled.path(name), filled.path(f"{name}_key")) for pair in names for name in pair}
    relations = [filled.relation(written, table) for (_, written), table in zip(names, TABLES, strict=True)]
    server.stop()

    for generator in (NUMBERS, WIDE, TPCB):
        here = [one for one, table in zip(relations, TABLES, strict=True) if table.generator is generator]
        result = filled.fill({"generator": generator, "threads": 2, "checksums": True, "relations": here})
        assert result["errors"] == []
        assert result["rows"] == sum(one["rows"] for one in here)
    filled.checksums("--check")
    for copied, written in names:
        here, there = paths[written], paths[copied]
        assert first_difference(heap_pages(here[0]), heap_pages(there[0])) is None, written
        assert first_difference(index_pages(here[1]), index_pages(there[1])) is None, written
        if here[0].stat().st_size:
            assert first_difference(map_pages(here[0]), map_pages(there[0])) is None, written
            assert here[0].stat().st_mode == there[0].stat().st_mode
    assert not list(server.data.rglob("*.plinth"))

    server.start()
    for (copied, written), table in zip(names, TABLES, strict=True):
        filled.is_whole(written)
        rows = f"SELECT count(*) FROM (TABLE {copied} EXCEPT TABLE {written}) missing"
        assert server.execute(rows) == [(0,)], written
        assert filled.counts(written, "abcdef"[present(table.key)]) == {
            "Seq Scan": table.rows,
            "Index Only Scan": table.rows,
        }


TPCC = {"kind": "tpcc", "warehouses": 2, "seed": 5}
# First row and rows of the loader's tables: in one chunk each, with orders that are delivered and others, whose columns are null.
VARIED = {
    "warehouse": (0, 2),
    "district": (0, 20),
    "item": (0, 1_000),
    "customer": (29_900, 200),
    "history": (100, 1_000),
    "orders": (1_500, 1_200),
    "new_order": (0, 1_000),
    "order_line": (20_500, 1_000),
    "stock": (99_900, 300),
}


@pytest.mark.long
def test_rows_of_several_widths_are_those_of_copy_freeze(filled: FilledServer) -> None:
    server = filled.server
    tables = {
        table.name: Table(
            TPCC,
            number,
            table.columns,
            types=(),
            key=None,
            rows=VARIED[table.name][1],
            first_row=VARIED[table.name][0],
            fillfactor=73 if table.name == "customer" else 100,
        )
        for number, table in enumerate(TPCC_TABLES)
    }
    for name, table in tables.items():
        filled.create(f"{name}_copied", table)
        filled.copy(f"{name}_copied", table)
        filled.create(f"{name}_written", table)
    server.execute("CHECKPOINT")
    paths = {name: (filled.path(f"{name}_copied"), filled.path(f"{name}_written")) for name in tables}
    relations = [filled.relation(f"{name}_written", table) for name, table in tables.items()]
    server.stop()
    result = filled.fill({"generator": TPCC, "threads": 2, "checksums": True, "relations": relations})
    assert (result["rows"], result["errors"]) == (sum(table.rows for table in tables.values()), [])
    filled.checksums("--check")
    for name, (copied, written) in paths.items():
        assert first_difference(heap_pages(written), heap_pages(copied)) is None, name
        assert first_difference(map_pages(written), map_pages(copied)) is None, name
    server.start()
    for name in tables:
        filled.is_whole(f"{name}_written")
        rows = f"SELECT count(*) FROM (TABLE {name}_copied EXCEPT TABLE {name}_written) missing"
        assert server.execute(rows) == [(0,)], name
    nulls = "SELECT count(*) FILTER (WHERE ol_delivery_d IS NULL) BETWEEN 1 AND 999 FROM order_line_written"
    assert server.execute(nulls) == [(True,)]


def test_tables_live_on(filled: FilledServer) -> None:
    server = filled.server
    table = numbers(20_000, fillfactor=90)
    filled.create("numbers", table)
    server.execute("CHECKPOINT")
    relation = filled.relation("numbers", table)
    server.stop()
    result = filled.fill({"generator": NUMBERS, "threads": 2, "checksums": True, "relations": [relation]})
    assert (result["rows"], result["errors"]) == (20_000, [])
    server.start()

    server.execute("UPDATE numbers SET b = b + 1 WHERE a % 3 = 0")
    server.execute("INSERT INTO numbers SELECT -g, 1, 1 FROM generate_series(1, 5000) g")
    server.execute("INSERT INTO numbers SELECT g, 1, 1 FROM generate_series(20001, 30000) g")
    server.execute("DELETE FROM numbers WHERE a BETWEEN 5000 AND 9999")
    filled.is_whole("numbers", frozen=False)
    server.stop(signal.SIGQUIT)  # recovery writes to those pages, too
    server.start()
    server.execute("VACUUM FREEZE numbers")
    filled.is_whole("numbers")
    assert filled.counts("numbers", "a") == {"Seq Scan": 30_000, "Index Only Scan": 30_000}
    with pytest.raises(psycopg.errors.UniqueViolation):
        server.execute("INSERT INTO numbers VALUES (4999, 1, 1)")
    server.stop()
    filled.checksums("--check")
    server.start()


@pytest.mark.long
@pytest.mark.parametrize("filled", ["debian", "18"], indirect=True)
def test_tables_and_keys_of_several_files_are_whole(filled: FilledServer) -> None:
    """3 GiB: a heap of three files, and a key of two, with three levels above its leaves, next to the one PostgreSQL builds."""
    server = filled.server
    rows = 5_200_000  # that few to a page
    table = numbers(rows, fillfactor=10, key_fillfactor=10)
    table = replace(table, generator=NUMBERS | {"rows": rows})
    filled.create("large", table)
    server.execute("CHECKPOINT")
    relation = filled.relation("large", table)
    server.stop()
    result = filled.fill({"generator": table.generator, "threads": 2, "checksums": True, "relations": [relation]})
    assert (result["rows"], result["errors"]) == (rows, [])
    heap, key = Path(relation["heap"]), Path(relation["index"]["path"])
    assert [len(list(path.parent.glob(f"{path.name}.*"))) for path in (heap, key)] == [2, 1]
    filled.checksums("--check")
    server.start()
    filled.is_whole("large")
    assert server.execute("SELECT count(*), min(a), max(a), sum(a) FROM large") == [
        (rows, 1, rows, rows * (rows + 1) // 2)
    ]
    server.execute("CREATE UNIQUE INDEX sparse ON large (a) WITH (fillfactor = 10)")
    sparse = filled.path("sparse")
    server.execute("CHECKPOINT")
    assert first_difference(index_pages(key), index_pages(sparse)) is None
    server.execute("DROP TABLE large")


def empty_table(folder: Path) -> dict[str, Any]:
    """The files of an empty table without a key, and what would fill it with 2 GB."""
    (folder / "1").touch()
    relation = {
        "table": 0,
        "first_row": 0,
        "rows": 50_000_000,
        "name": "numbers",
        "columns": [INT8],
        "heap": f"{folder}/1",
        "fillfactor": 100,
        "index": None,
    }
    column = {"kind": "sequence", "first": 1, "step": 1}
    generator = {"kind": "columns", "table": "numbers", "rows": 50_000_000, "seed": 1, "columns": [column]}
    return {"generator": generator, "threads": 2, "checksums": False, "relations": [relation]}


def finished(load: _native.PageLoad) -> dict[str, Any]:
    assert load.wait(600.0)
    return json.loads(load.result())


def test_a_full_disk_is_reported_and_nothing_unfinished_is_left(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", tmp_path], check=True)
    try:
        load = _native.PageLoad(json.dumps(empty_table(tmp_path)))
        load.start()
        result = finished(load)
        assert {(one["kind"], one["table"], one["path"]) for one in result["errors"]} == {
            ("no_space", "numbers", f"{tmp_path}/1")
        }
        assert "No space left on device" in result["errors"][0]["message"]
        assert (result["rows"], result["interrupted"]) == (0, False)
        assert [path.name for path in tmp_path.iterdir()] == ["1"]
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_stop_ends_it(scratch: Path) -> None:
    load = _native.PageLoad(json.dumps(empty_table(scratch)))
    load.start()
    while json.loads(load.progress())["rows_done"] < 100_000:
        assert not load.wait(0.01), load.result()
    load.stop()
    result = finished(load)
    assert (result["interrupted"], result["errors"], result["rows"]) == (True, [], 0)
    assert [path.name for path in scratch.iterdir()] == ["1"]
    with pytest.raises(_native.EngineError, match="started before"):
        load.start()


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    config = empty_table(tmp_path)
    with pytest.raises(_native.ConfigError, match="unknown field `streams`"):
        _native.PageLoad(json.dumps(config | {"streams": 1}))
    with pytest.raises(_native.ConfigError, match="unknown variant `uuid`"):
        _native.PageLoad(json.dumps(config).replace("int8", "uuid"))
    with pytest.raises(_native.ConfigError, match="threads: got 0, allowed are 1 to 256"):
        _native.PageLoad(json.dumps(config | {"threads": 0}))
