"""A fingerprint of a database before a load, and what of it is gone after a power cut though no transaction touched it.

The checkers of PostgreSQL see what is inconsistent. A page that is all zeros is consistent: an empty page. So are a page as it was
yesterday and a row that is not there. What the load did legitimately must not be taken for damage, and nobody knows which rows
it updated, deleted or pruned. But every change of a page is in WAL, and raises the LSN of the page. So:

- **Pages.** The LSN of a page never goes back. A page whose LSN is lower than it was is an old one, of tables and of indexes.
- **Rows.** A page whose LSN is not after the fingerprint has exactly the rows of the fingerprint. On one that was changed since,
  any row may have been deleted, pruned or overwritten by a newer one; but one that is still there, by an `xmin` from before the
  load, is as it was, and none of before the load appears that was not there.
- **The end of a table.** VACUUM cuts off pages without rows, and a table that is extended again gets pages of zeros there. So a
  page of zeros, or none at all, behind the last row of before says nothing; unless the visibility map calls it visible, which it
  does not for a new one. Index entries that point there show it (page_pointers.py); a table without any is named as not compared.
- **Not compared** are tables that were rewritten (TRUNCATE, VACUUM FULL) or altered: all of their rows are others.

Rows are read by a sequential scan of each table of the user, as `ctid`, `xmin` and a hash of the row's text, TOAST included. `xmin`
stays when a row is frozen, and hint bits are in none of the three.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.durability import DamageKind, IntegrityCheck
from plinth.model.units import format_size
from plinth.server.integrity.findings import Finding, Integrity, damage_of, finding_of
from plinth.server.integrity.pages import RelationFile, is_all_visible, lsn_number, lsn_text, page_lsns, relation_files
from plinth.server.integrity.sequences import SequenceState, read_sequences, set_back
from plinth.server.integrity.table_scan import Column, is_among, scan, tid_list
from plinth.system.cgroup import available_memory_bytes
from plinth.system.foreign_code import NOT_READ, calls_code_of_others

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

UNTOUCHED_ROWS = "untouched rows are as before the load"
"""The name of the check of rows."""
SEQUENCES = "no sequence is set back"
"""The name of the check of sequences."""
PAGES = "no page is older than before the load"
"""The name of the check of LSNs."""
_INSERTED = "SELECT pg_current_wal_insert_lsn()::text"
_MOST_PAGES = 10
_NO_BLOCK = -1
_BYTES_TO_COMPARE_A_ROW = 60  # it is there twice, of before and of now, and once more while it is read
_PART_OF_MEMORY = 4
_ROWS = (
    "SELECT oid::bigint, CASE WHEN reltuples > 0 THEN reltuples ELSE pg_relation_size(oid) / 36 END::bigint "
    "FROM pg_class WHERE relkind IN ('r', 'm')"
)
"""Where nothing has counted them, as many rows as fit: each takes 36 bytes at least (sizeof(ItemIdData), HeapTupleHeaderData, and 8 of data)."""
_UNREAD = f"SELECT oid::bigint FROM pg_class WHERE relkind IN ('r', 'm') AND {calls_code_of_others('pg_class.oid')}"
_FIRST_NORMAL_OID = 16384
_HALF_OF_XIDS = 2**31
_FIRST_NORMAL_XID = 3
_OF_ROW: dict[Column, str] = {
    "tid": "ctid",
    "xid": "xmin",
    "int8": "hashtextextended(ROW(plinth_row.*)::text, 0)",
}
_STABLE_TEXT = "SET DateStyle = ISO; SET IntervalStyle = postgres; SET bytea_output = hex; SET extra_float_digits = 1; SET TimeZone = UTC"
_START = "SELECT pg_current_wal_insert_lsn()::text, pg_snapshot_xmin(pg_current_snapshot())::text::bigint & 4294967295"
_COLUMNS = (
    "SELECT attrelid::bigint, string_agg(concat_ws(' ', attnum, attname, atttypid, atttypmod, attisdropped, atthasmissing), ', ' "
    "ORDER BY attnum) FROM pg_attribute WHERE attnum > 0 GROUP BY attrelid"
)


class TableRows(NamedTuple):
    """The rows of a table, of which each has `tid` (block << 16 | item), `xid`, its xmin, and `int8`, its hash; in the order of `tid`."""

    file: RelationFile
    columns: str
    rows: "NDArray[np.void]"


class Fingerprint(NamedTuple):
    """What a database had before a load began. Takes 20 bytes a row and 8 bytes a page.

    Rows are compared of as many tables, the smallest first, as memory has room for.
    """

    start_lsn: int
    """What was changed since has a later LSN."""
    next_xid: int
    """The first transaction that may have ended since, without its epoch."""
    tables: tuple[TableRows, ...]
    lsns: "dict[str, NDArray[np.uint64]]"
    """Of each page, by the file of its relation."""
    sequences: dict[int, SequenceState]
    not_read: dict[str, str]
    """The tables whose rows were not read, by name, with the reason."""


def take_fingerprint(control: "psycopg.Connection[Any]", data_directory: Path) -> Fingerprint:
    """Read every table of the user, make all durable by a checkpoint, and read the LSN of every page.

    `control` is in autocommit mode, of a superuser. Raises psycopg.Error and OSError.
    """
    _stable_text(control)
    start_lsn, next_xid = _start(control)
    files = relation_files(control)
    columns = _columns_of(control)
    sizes = dict(control.execute(_ROWS).fetchall())
    tables: list[TableRows] = []
    not_read: dict[str, str] = {}
    left_bytes = available_memory_bytes() // _PART_OF_MEMORY
    unread = _unread(control)
    for file in sorted(filter(_has_rows_of_user, files), key=lambda file: sizes.get(file.oid, 0)):
        if file.oid in unread:
            not_read[file.name] = NOT_READ
            continue
        needed_bytes = sizes.get(file.oid, 0) * _BYTES_TO_COMPARE_A_ROW
        if needed_bytes > left_bytes:
            not_read[file.name] = (
                f"comparing its rows, about {sizes[file.oid]:,}, takes {format_size(needed_bytes)} of memory, "
                f"and {format_size(left_bytes)} are left of a quarter of what is available"
            )
            continue
        tables.append(TableRows(file, columns.get(file.oid, ""), _rows_of(control, file, next_xid)))
        left_bytes -= needed_bytes
    control.execute("CHECKPOINT")  # pages that are in shared buffers only go into the files
    lsns: dict[str, NDArray[np.uint64]] = {}
    for file in files:
        if (data_directory / file.path).exists():  # otherwise it was dropped meanwhile
            lsns[file.path] = page_lsns(data_directory, file)
    return Fingerprint(start_lsn, next_xid, tuple(tables), lsns, read_sequences(control), not_read)


def _stable_text(control: "psycopg.Connection[Any]") -> None:
    """Have this session write values as text in one way under any settings of the server."""
    control.execute(_STABLE_TEXT)


def _start(control: "psycopg.Connection[Any]") -> tuple[int, int]:
    row = control.execute(_START).fetchone()
    assert row is not None, "functions give a row"
    return lsn_number(str(row[0])), int(row[1])


def _columns_of(control: "psycopg.Connection[Any]") -> dict[int, str]:
    """Return a text for the columns of each relation, by its oid: the same one while nothing has altered them."""
    return dict(control.execute(_COLUMNS).fetchall())


def _unread(control: "psycopg.Connection[Any]") -> set[int]:
    """Return the tables, by oid, of which no query is planned."""
    return {int(oid) for (oid,) in control.execute(_UNREAD.encode()).fetchall()}


def _has_rows_of_user(file: RelationFile) -> bool:
    return file.kind in "rm" and file.method == "heap" and file.oid >= _FIRST_NORMAL_OID


def _rows_of(control: "psycopg.Connection[Any]", file: RelationFile, next_xid: int) -> "NDArray[np.void]":
    """Return the visible rows of transactions before `next_xid`. Raises psycopg.Error."""
    import numpy as np

    rows = scan(control, file, _OF_ROW)
    rows = rows[~_is_since(rows["xid"], next_xid)]
    return rows[np.argsort(rows["tid"])]


def _is_since(xmin: "NDArray[np.uint32]", next_xid: int) -> "NDArray[np.bool_]":
    """Return whether these transactions are not before `next_xid`, in the circle of 32 bits."""
    import numpy as np

    return (xmin >= _FIRST_NORMAL_XID) & ((xmin - np.uint32(next_xid)) < _HALF_OF_XIDS)


class _Table(NamedTuple):
    """A table, before and now."""

    before: TableRows
    now: RelationFile
    lsns: "NDArray[np.uint64]"
    start_lsn: int
    data_directory: Path


def compare_fingerprint(
    control: "psycopg.Connection[Any]", data_directory: Path, before: Fingerprint | None
) -> Integrity:
    """Compare a server that has just recovered with a fingerprint; None where there is none, which is a check that was not made.

    Recovery ends with a checkpoint, so that the files have what the pages have. Raises psycopg.Error where the server could not
    answer.
    """
    if before is None:
        lacks = "no fingerprint was taken before the load"
        return Integrity(
            (), tuple(IntegrityCheck(name=name, not_run=lacks) for name in (PAGES, UNTOUCHED_ROWS, SEQUENCES))
        )
    found: list[Finding] = []
    checks = [IntegrityCheck(name=name) for name in (PAGES, UNTOUCHED_ROWS, SEQUENCES)]
    files = {file.oid: file for file in relation_files(control)}
    lsns = _lsns_now(data_directory, files.values(), found)
    found += _older_pages(data_directory, files.values(), before, lsns)
    found += _pages_ahead(control, files.values(), lsns)
    checks += (
        IntegrityCheck(name=f"{UNTOUCHED_ROWS}: {name}", not_run=reason) for name, reason in before.not_read.items()
    )
    _stable_text(control)
    columns, unread = _columns_of(control), _unread(control)
    for table in before.tables:
        now = files.get(table.file.oid)
        reason = NOT_READ if table.file.oid in unread else _not_comparable(table, now, columns)
        if reason is None and now is not None and now.path in lsns:
            one = _Table(table, now, lsns[now.path], before.start_lsn, data_directory)
            reason = _compare_table(control, one, before.next_xid, found)
        if reason is not None:
            checks.append(IntegrityCheck(name=f"{UNTOUCHED_ROWS}: {table.file.name}", not_run=reason))
    found += _sequences_set_back(control, before)
    return Integrity(damage_of(found), tuple(checks))


def _sequences_set_back(control: "psycopg.Connection[Any]", before: Fingerprint) -> list[Finding]:
    import psycopg

    try:
        now = read_sequences(control)
    except psycopg.Error as error:
        return [finding_of(control, error, "a sequence")]
    return [("sequence set back", one) for one in set_back(before.sequences, now)]


def _lsns_now(
    data_directory: Path, files: Iterable[RelationFile], found: list[Finding]
) -> "dict[str, NDArray[np.uint64]]":
    lsns: dict[str, NDArray[np.uint64]] = {}
    for file in files:
        try:
            lsns[file.path] = page_lsns(data_directory, file)
        except OSError as error:
            found.append((_kind_of(file), f"{file.name}: its file cannot be read: {error}"))
    return lsns


def _kind_of(file: RelationFile) -> DamageKind:
    return "index and heap disagree" if file.kind == "i" else "heap damaged"


def _older_pages(
    data_directory: Path, files: Iterable[RelationFile], before: Fingerprint, now: "dict[str, NDArray[np.uint64]]"
) -> Iterator[Finding]:
    """Find pages whose LSN has gone back. A page of zeros of a heap counts only where the visibility map calls it visible."""
    import numpy as np

    for file in files:
        if file.path not in before.lsns or file.path not in now:
            continue
        old, new = before.lsns[file.path], now[file.path]
        both = min(len(old), len(new))
        for block in np.flatnonzero(new[:both] < old[:both])[:_MOST_PAGES].tolist():
            if new[block] == 0 and file.is_heap and not is_all_visible(data_directory, file, block):
                continue
            what = "all zeros" if new[block] == 0 else f"of LSN {lsn_text(int(new[block]))}"
            yield (
                "page set back",
                f"{file.name}, page {block}: {what}; before the load it had {lsn_text(int(old[block]))}",
            )


def _pages_ahead(
    control: "psycopg.Connection[Any]", files: Iterable[RelationFile], lsns: "dict[str, NDArray[np.uint64]]"
) -> Iterator[Finding]:
    """Find pages with a change that is not in WAL: it was lost, though it has to be durable before the page."""
    import numpy as np

    row = control.execute(_INSERTED).fetchone()
    assert row is not None, "a function gives a row"
    end = str(row[0])
    for file in files:
        if file.path in lsns:
            for block in np.flatnonzero(lsns[file.path] > lsn_number(end))[:_MOST_PAGES].tolist():
                lsn = lsn_text(int(lsns[file.path][block]))
                yield _kind_of(file), f"{file.name}, page {block}: its LSN {lsn} is after the end of WAL, {end}"


def _not_comparable(table: TableRows, now: RelationFile | None, columns: dict[int, str]) -> str | None:
    if now is None:
        return "it was dropped since"
    if now.path != table.file.path:
        return "it was rewritten since, as by TRUNCATE or VACUUM FULL"
    if columns.get(now.oid) != table.columns:
        return "it was altered since"
    return None


def _compare_table(
    control: "psycopg.Connection[Any]", table: _Table, next_xid: int, found: list[Finding]
) -> str | None:
    """Add what differs to `found`; returns why not all rows could be compared."""
    import psycopg

    try:
        now = _rows_of(control, table.now, next_xid)
    except psycopg.Error as error:
        found.append(finding_of(control, error, table.now.name))
        return None
    old = table.before.rows
    is_there, was_there = is_among(old["tid"], now["tid"]), is_among(now["tid"], old["tid"])
    left = old[is_there]
    changed = left["tid"][left != now[was_there]]  # both are in the order of their places
    name = table.now.name
    found += _named(name, changed, "have other content than before the load")
    found += _named(name, now["tid"][~was_there], "are of transactions before the load, and were not there then")
    gone = old["tid"][~is_there]
    last = int(now["tid"][-1]) >> 16 if len(now) else _NO_BLOCK
    return _judge_gone(table, gone, last, found)


def _judge_gone(table: _Table, gone: "NDArray[np.int64]", last: int, found: list[Finding]) -> str | None:
    """Judge whether the load may have removed these rows; `last` is the last page that still has a row of before."""
    import numpy as np

    blocks, rows = np.unique(gone >> 16, return_counts=True)
    unjudged: list[int] = []
    for block, count in zip(blocks.tolist(), rows.tolist(), strict=True):
        lsn = int(table.lsns[block]) if block < len(table.lsns) else None
        if lsn is not None and lsn > table.start_lsn:
            continue
        if not lsn and block > last and not (lsn == 0 and is_all_visible(table.data_directory, table.now, block)):
            unjudged.append(block)
            continue
        page = "is not there" if lsn is None else "is all zeros" if lsn == 0 else f"has LSN {lsn_text(lsn)}"
        found.append(
            (
                "untouched rows changed",
                f"{table.now.name}, page {block}: {count:,} rows of before the load are gone, and the page {page}: no "
                f"transaction has changed it since {lsn_text(table.start_lsn)}",
            )
        )
    if not unjudged:
        return None
    return (
        f"from page {unjudged[0]} on all rows of before are gone, and the pages with them: VACUUM may have cut them off"
    )


def _named(name: str, tids: "NDArray[np.int64]", what: str) -> Iterator[Finding]:
    if len(tids):
        yield "untouched rows changed", f"{name}: {len(tids):,} rows {what}: {tid_list(tids)}"
