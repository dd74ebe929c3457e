"""Damage that no checksum shows is planted in the files of real servers: each kind is found, and what a load, kill -9 and a
recovery leave is none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from plinth.server.integrity.amcheck import check_database
from plinth.server.integrity.fingerprint import Fingerprint, compare_fingerprint, take_fingerprint
from plinth.server.integrity.other_databases import check_other_databases
from plinth.server.integrity.page_pointers import check_pointers, read_pointers
from plinth.server.integrity.pages import relation_files
from plinth.server.integrity.table_scan import scan
from plinth.server.integrity.transaction_status import check_transaction_status
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from servers import StartServer, new_servers

PAGE_BYTES = 8192
_SETTINGS = {"autovacuum": False, "shared_buffers": "16MB", "fsync": False}
_TABLES = """
DROP TABLE IF EXISTS t, b;
CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 0, payload text);
CREATE INDEX t_hash ON t USING hash (payload);
CREATE INDEX t_gist ON t USING gist (point(id, n));
CREATE TABLE b (id int, payload text);
ALTER TABLE b ALTER payload SET STORAGE EXTERNAL;
INSERT INTO t SELECT n, 0, 'row ' || n FROM generate_series(1, 3000) n;
INSERT INTO b SELECT n, repeat('x', 5000) FROM generate_series(1, 20) n;
"""


@pytest.fixture(scope="module")
def start() -> Iterator[StartServer]:
    with new_servers(_SETTINGS) as start:
        yield start


@pytest.fixture(scope="module", params=["18", pytest.param("debian", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, start: StartServer) -> LocalServer:
    """PostgreSQL 18 and 15, without checksums of pages."""
    return start(request.param)


@dataclass
class Planted:
    """A server with two tables, of which a fingerprint is taken, and its files while it is stopped."""

    server: LocalServer
    before: Fingerprint | None = None
    not_run: dict[str, str] = field(default_factory=dict)

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        with connect_unpinned(self.server.connection) as control:
            answers = [control.execute(one.encode()) for one in statements]
            return answers[-1].fetchall() if answers[-1].description else []

    def begin(self, *statements: str) -> None:
        """Make the tables, and take their fingerprint as a cut does."""
        self.sql(*_TABLES.strip().split("\n"))
        self.begin_again(*statements)

    def begin_again(self, *statements: str) -> None:
        """Take the fingerprint after these statements."""
        self.sql("SELECT", *statements)
        with connect_unpinned(self.server.connection) as control:
            self.before = take_fingerprint(control, self.server.layout.data_directory)

    def file(self, relation: str) -> Path:
        if relation.startswith("'base/"):  # of another database
            return self.server.layout.data_directory / relation.strip("'")
        ((path,),) = self.sql(f"SELECT pg_relation_filepath({relation})")
        return self.server.layout.data_directory / str(path)

    def edit(self, relation: str, change: Callable[[bytearray], object]) -> None:
        """Stop the server, change the file of a relation (an expression of SQL), and start it."""
        path = self.file(relation)
        self.server.shutdown()
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)
        self.server.start(_SETTINGS)

    def crash(self) -> None:
        self.server.crash()
        self.server.start(_SETTINGS)

    def found(self) -> dict[str, list[str]]:
        """What the checks find, by kind."""
        where, major = self.server.layout.data_directory, self.server.layout.installation.major
        with connect_unpinned(self.server.connection) as control:
            made = [compare_fingerprint(control, where, self.before), check_database(control, major)]
            others, pointers = check_other_databases(control, self.server.connection, major)
            made += [check_transaction_status(control), others]
            pointers.append(read_pointers(control))
        self.server.shutdown()
        made += [check_pointers(where, one) for one in pointers]
        self.server.start(_SETTINGS)
        self.not_run = {check.name: check.not_run for one in made for check in one.checks if check.not_run}
        by_kind: dict[str, list[str]] = {}
        for damage in (damage for one in made for damage in one.damage):
            by_kind.setdefault(damage.kind, []).extend(damage.evidence)
        return by_kind


@pytest.fixture
def planted(server: LocalServer) -> Iterator[Planted]:
    if not server.alive():
        server.start(_SETTINGS)
    yield Planted(server)


def zero(block: int) -> Callable[[bytearray], None]:
    """Writes zeros over a page."""

    def change(content: bytearray) -> None:
        assert len(content) > block * PAGE_BYTES and any(content[block * PAGE_BYTES :][:PAGE_BYTES])
        content[block * PAGE_BYTES : (block + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)

    return change


def put_back(content: bytearray, old: bytes) -> None:
    """Write the old image of the last page of which the new one differs."""
    pages = [slice(at, at + PAGE_BYTES) for at in range(0, len(old), PAGE_BYTES)]
    changed = [page for page in pages if content[page] != old[page]]
    content[changed[-1]] = old[changed[-1]]


@pytest.mark.parametrize("pages_at_once", [1, 7, 1_000])
def test_a_scan_reads_each_row_of_a_table_once(planted: Planted, monkeypatch: pytest.MonkeyPatch, pages_at_once: int):
    planted.begin("CREATE TABLE IF NOT EXISTS no_rows (id int)", "DELETE FROM t WHERE id % 3 = 0")
    monkeypatch.setattr("plinth.server.integrity.table_scan._PAGES_AT_ONCE", pages_at_once)
    with connect_unpinned(planted.server.connection) as control:
        files = {file.name: file for file in relation_files(control)}
        rows = scan(control, files["t"], {"tid": "ctid", "int8": "plinth_row.id::bigint"}, "n = 0")
        assert not len(scan(control, files["no_rows"], {"tid": "ctid"}))
    expected = planted.sql("SELECT ctid::text, id FROM t")
    assert [(f"({tid >> 16},{tid & 0xFFFF})", number) for tid, number in rows.tolist()] == expected


_TOAST = "(SELECT reltoastrelid FROM pg_class WHERE relname = 'b')"


def test_a_zeroed_heap_page_has_lost_its_rows(planted: Planted):
    planted.begin()
    planted.edit("'t'", zero(2))
    evidence = planted.found()["untouched rows changed"][0]
    assert (
        evidence.startswith("t, page 2: ") and "rows of before the load are gone, and the page is all zeros" in evidence
    )


def test_a_zeroed_last_page_that_the_map_calls_visible_has_lost_its_rows(planted: Planted):
    planted.begin("VACUUM t")
    planted.edit("'t'", lambda content: zero(len(content) // PAGE_BYTES - 1)(content))
    found = planted.found()
    assert "untouched rows changed" in found and "page set back" in found


def test_a_zeroed_page_of_toast_is_a_value_that_lacks_a_part(planted: Planted):
    planted.begin()
    planted.edit(_TOAST, zero(3))
    assert any("missing chunk" in one or "toast" in one for one in planted.found()["heap damaged"])


@pytest.mark.parametrize("relation", ["'t_pkey'", "'t_hash'", "'t_gist'"])
def test_a_zeroed_page_of_an_index_is_found(planted: Planted, relation: str):
    planted.begin()
    planted.edit(relation, zero(2))
    assert "page set back" in planted.found()


@pytest.mark.long
@pytest.mark.parametrize("relation", ["'t'", "'t_pkey'", "'t_hash'", "'t_gist'"])
def test_an_old_image_of_a_page_is_found(planted: Planted, relation: str):
    planted.begin()
    old: list[bytes] = []
    planted.edit(relation, lambda content: old.append(bytes(content)))
    planted.begin_again("UPDATE t SET n = n + 1, payload = payload || '!'")
    planted.edit(relation, lambda content: put_back(content, old[0]))
    assert any(": of LSN " in one for one in planted.found()["page set back"])


def test_a_row_that_changed_on_a_page_that_the_load_changed_as_well_is_found(planted: Planted):
    planted.begin()
    planted.sql("UPDATE t SET n = 1 WHERE id = 1")

    def change(content: bytearray) -> None:
        at = content.index(b"row 77")
        content[at : at + 6] = b"row 78"

    planted.edit("'t'", change)
    (evidence,) = planted.found()["untouched rows changed"]
    assert "1 rows have other content than before the load" in evidence


def test_an_old_image_of_a_page_that_lacks_rows_of_the_load_has_entries_without_a_row(planted: Planted):
    """Nothing of before the load is missing: it is the load's own rows that are."""
    planted.begin("DELETE FROM t WHERE id > 2990", "VACUUM t", "ANALYZE t")
    old: list[bytes] = []
    planted.edit("'t'", lambda content: old.append(bytes(content)))
    planted.sql("INSERT INTO t SELECT n, 0, 'late ' || n FROM generate_series(4001, 4005) n")
    planted.edit("'t'", lambda content: put_back(content, old[0]))
    evidence = planted.found()["index and heap disagree"]
    for index in ("t_pkey", "t_hash", "t_gist"):
        assert any(one.startswith(f"{index}: ") and "items that t does not have" in one for one in evidence)


@pytest.mark.parametrize("index", ["t_hash", "t_gist"])
def test_an_old_image_of_an_index_that_lacks_rows_of_the_load_is_found(planted: Planted, index: str):
    planted.begin()
    old: list[bytes] = []
    planted.edit(f"'{index}'", lambda content: old.append(bytes(content)))
    planted.sql("INSERT INTO t SELECT n, 0, 'late ' || n FROM generate_series(4001, 4005) n")
    planted.edit(f"'{index}'", lambda content: put_back(content, old[0]))
    evidence = planted.found()["index and heap disagree"]
    assert any(one.startswith(index) and "rows of t have no entry in it" in one for one in evidence)


def test_rows_of_tables_that_memory_has_no_room_for_are_not_compared(planted: Planted, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plinth.server.integrity.fingerprint.available_memory_bytes", lambda: 4 * 60 * 1000)
    planted.begin(
        "DROP TABLE IF EXISTS small", "CREATE TABLE small AS SELECT n FROM generate_series(1, 500) n", "ANALYZE"
    )
    planted.crash()
    assert planted.found() == {}
    reason = planted.not_run["untouched rows are as before the load: t"]
    assert reason.startswith("comparing its rows, about 3,000, takes 175.8 KiB of memory, and ")
    assert "untouched rows are as before the load: small" not in planted.not_run
    planted.edit("'small'", zero(0))
    assert planted.found()["untouched rows changed"][0].startswith("small, page 0: ")
    planted.sql("DROP TABLE small")


def test_a_table_without_its_last_pages_has_entries_without_a_row(planted: Planted):
    planted.begin()
    planted.edit("'t'", lambda content: content.__delitem__(slice(-2 * PAGE_BYTES, None)))
    assert "index and heap disagree" in planted.found()
    assert "VACUUM may have cut them off" in planted.not_run["untouched rows are as before the load: t"]


def test_indexes_with_many_equal_keys_have_an_entry_of_each_row(planted: Planted):
    """B-tree keeps them in lists, which are read as well."""
    planted.begin("CREATE INDEX t_n ON t (n)", "CREATE INDEX t_part ON t USING hash (n) WHERE id < 100")
    planted.sql("UPDATE t SET n = id % 7 WHERE id % 2 = 0", "DELETE FROM t WHERE id % 10 = 1", "VACUUM t")
    planted.crash()
    assert planted.found() == {}
    planted.edit("'t'", zero(1))
    assert any(one.startswith("t_n: ") and "(1," in one for one in planted.found()["index and heap disagree"])


def test_a_sequence_that_was_set_back_is_found(planted: Planted):
    planted.begin("CREATE SEQUENCE IF NOT EXISTS s", "SELECT setval('s', 1000)")
    planted.crash()
    assert planted.found() == {}
    planted.sql("SELECT setval('s', 900)")
    assert planted.found() == {"sequence set back": ["s: at 900; before the load it was at 1000"]}
    planted.sql("DROP SEQUENCE s")


def test_two_rows_of_one_key_are_found(planted: Planted):
    """An old page has again the row whose new version is on another page."""
    planted.begin()
    old: list[bytes] = []
    planted.edit("'t'", lambda content: old.append(bytes(content)))
    planted.sql("UPDATE t SET payload = repeat('y', 100) WHERE id < 200")
    page = slice(0, PAGE_BYTES)
    planted.edit("'t'", lambda content: content.__setitem__(page, old[0][page]))
    assert any(
        one.startswith("t_pkey: ") and ("more than one row" in one or "violated" in one)
        for one in planted.found()["index and heap disagree"]
    )


def test_a_gin_index_is_checked_from_18_on_and_named_before(planted: Planted):
    planted.begin("CREATE INDEX t_gin ON t USING gin (to_tsvector('simple', payload))")
    assert planted.found() == {}
    assert planted.not_run["index entries point to rows: t_gin"] == "its entries are compressed lists"
    assert ("gin_index_check" in planted.not_run) == (planted.server.layout.installation.major < 18)


def test_a_page_of_another_database_is_found(planted: Planted):
    other = "other"
    planted.begin(f"DROP DATABASE IF EXISTS {other}", f"CREATE DATABASE {other}")
    with connect_unpinned(replace(planted.server.connection, database=other)) as control:
        control.execute("CREATE TABLE o AS SELECT n AS id FROM generate_series(1, 1000) n")
        control.execute("ALTER TABLE o ADD PRIMARY KEY (id)")
        row = control.execute("SELECT pg_relation_filepath('o')").fetchone()
    assert row is not None and planted.found() == {}
    planted.edit(f"'{row[0]}'", zero(1))
    found = planted.found()
    planted.sql(f"DROP DATABASE {other}")
    assert any(one.startswith("public.o_pkey: ") for one in found["index and heap disagree"])


def test_a_zeroed_page_of_pg_xact_contradicts_the_hint_bits(server: LocalServer, start: StartServer):
    """On a separate server, since nothing repairs it."""
    own = Planted(start("18" if server.layout.installation.major == 18 else "debian"))
    own.begin("SELECT count(*) FROM t", "VACUUM FREEZE")
    own.server.shutdown()
    path = own.server.layout.data_directory / "pg_xact/0000"
    path.write_bytes(bytes(path.stat().st_size))
    own.server.start(_SETTINGS)
    with connect_unpinned(own.server.connection) as control:
        (damage,) = check_transaction_status(control).damage
    assert any(one.startswith("t: ") and "pg_xact says aborted" in one for one in damage.evidence)
    own.server.crash()


@pytest.mark.parametrize(
    "load",
    [
        (
            "UPDATE t SET n = n + 1 WHERE id % 3 = 0",
            "UPDATE t SET n = n + 1 WHERE id % 5 = 0",
            "SELECT count(*) FROM t",
        ),
        ("DELETE FROM t", "VACUUM t", "INSERT INTO t SELECT n, 1, 'late' FROM generate_series(1, 500) n"),
        (
            "DELETE FROM t WHERE id > 1000",
            "VACUUM t",
            "INSERT INTO t SELECT n, 1, 'late' FROM generate_series(1001, 1500) n",
        ),
        (
            "UPDATE t SET payload = 'a new one of ' || id",
            "VACUUM (FREEZE) t",
            "DELETE FROM b WHERE id < 15",
            "VACUUM b",
        ),
        ("CHECKPOINT", "UPDATE t SET n = n + 1", "VACUUM t", "CHECKPOINT", "UPDATE t SET n = n + 1"),
        ("TRUNCATE t", "VACUUM FULL b", "INSERT INTO t SELECT 1"),
        ("ALTER TABLE t ADD more int DEFAULT 7", "REINDEX TABLE t"),
    ],
)
def test_what_a_load_and_a_crash_leave_is_no_damage(planted: Planted, load: tuple[str, ...]):
    planted.begin()
    planted.sql(*load)
    planted.crash()
    assert planted.found() == {}
