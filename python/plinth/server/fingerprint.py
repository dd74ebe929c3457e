"""A fingerprint of a database before a load: after a power cut it shows what is gone though no transaction touched it.

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

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.units import format_size
from plinth.server.copied import read_columns
from plinth.server.pages import RelationFile, lsn_number, page_lsns, relation_files
from plinth.server.sequences import SequenceState, read_sequences
from plinth.system.cgroup import available_memory_bytes

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

_BYTES_TO_COMPARE_A_ROW = 60  # it is there twice, of before and of now, and once more while it is read
_PART_OF_MEMORY = 4
_ROWS = (
    "SELECT oid::bigint, CASE WHEN reltuples > 0 THEN reltuples ELSE pg_relation_size(oid) / 36 END::bigint "
    "FROM pg_class WHERE relkind IN ('r', 'm')"
)
"""Where nothing has counted them, as many rows as fit: each takes 36 bytes at least (sizeof(ItemIdData), HeapTupleHeaderData, and 8 of data)."""
_FIRST_NORMAL_OID = 16384
_HALF_OF_XIDS = 2**31
_FIRST_NORMAL_XID = 3
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
    too_large: dict[str, str]
    """The tables whose rows were not read, by name, with the reason."""


def take_fingerprint(control: "psycopg.Connection[Any]", data_directory: Path) -> Fingerprint:
    """Read every table of the user, make all durable by a checkpoint, and read the LSN of every page.

    `control` is in autocommit mode, of a superuser. Raises psycopg.Error and OSError.
    """
    stable_text(control)
    start_lsn, next_xid = _start(control)
    files = relation_files(control)
    columns = columns_of(control)
    sizes = dict(control.execute(_ROWS).fetchall())
    tables: list[TableRows] = []
    too_large: dict[str, str] = {}
    left_bytes = available_memory_bytes() // _PART_OF_MEMORY
    for file in sorted(filter(_has_rows_of_user, files), key=lambda file: sizes.get(file.oid, 0)):
        needed_bytes = sizes.get(file.oid, 0) * _BYTES_TO_COMPARE_A_ROW
        if needed_bytes > left_bytes:
            too_large[file.name] = (
                f"comparing its rows, about {sizes[file.oid]:,}, takes {format_size(needed_bytes)} of memory, "
                f"and {format_size(left_bytes)} are left of a quarter of what is available"
            )
            continue
        tables.append(TableRows(file, columns.get(file.oid, ""), rows_of(control, file, next_xid)))
        left_bytes -= needed_bytes
    control.execute("CHECKPOINT")  # pages that are in shared buffers only go into the files
    lsns: dict[str, NDArray[np.uint64]] = {}
    for file in files:
        if (data_directory / file.path).exists():  # otherwise it was dropped meanwhile
            lsns[file.path] = page_lsns(data_directory, file)
    return Fingerprint(start_lsn, next_xid, tuple(tables), lsns, read_sequences(control), too_large)


def stable_text(control: "psycopg.Connection[Any]") -> None:
    """Have this session write values as text in one way under any settings of the server."""
    control.execute(_STABLE_TEXT)


def _start(control: "psycopg.Connection[Any]") -> tuple[int, int]:
    row = control.execute(_START).fetchone()
    assert row is not None, "functions give a row"
    return lsn_number(str(row[0])), int(row[1])


def columns_of(control: "psycopg.Connection[Any]") -> dict[int, str]:
    """What the columns of each relation are, by its oid: the same text while nothing has altered them."""
    return dict(control.execute(_COLUMNS).fetchall())


def _has_rows_of_user(file: RelationFile) -> bool:
    return file.kind in "rm" and file.method == "heap" and file.oid >= _FIRST_NORMAL_OID


def rows_of(control: "psycopg.Connection[Any]", file: RelationFile, next_xid: int) -> "NDArray[np.void]":
    """The visible rows of transactions before `next_xid`. Raises psycopg.Error."""
    import numpy as np

    query = f"SELECT ctid, xmin, hashtextextended(ROW(plinth_row.*)::text, 0) FROM ONLY {file.name} AS plinth_row"
    rows = read_columns(control, query, ("tid", "xid", "int8"))
    rows = rows[~_is_since(rows["xid"], next_xid)]
    return rows[np.argsort(rows["tid"])]


def _is_since(xmin: "NDArray[np.uint32]", next_xid: int) -> "NDArray[np.bool_]":
    """Whether these transactions are not before `next_xid`, in the circle of 32 bits."""
    import numpy as np

    return (xmin >= _FIRST_NORMAL_XID) & ((xmin - np.uint32(next_xid)) < _HALF_OF_XIDS)
