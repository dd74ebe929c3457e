"""Rows of a table as a NumPy array: millions a second, and a few bytes each. A TID, the place of a row, is block << 16 | item there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from plinth.server.integrity.pages import PAGE_BYTES, RelationFile

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

Column = Literal["tid", "xid", "int8"]
"""A type of the server."""
_BINARY: dict[Column, Any] = {"tid": [("block", ">u4"), ("item", ">u2")], "xid": ">u4", "int8": ">i8"}
_NUMBER = {"tid": "i8", "xid": "u4", "int8": "i8"}
_PAGES_AT_ONCE = 512 * 2**20 // PAGE_BYTES
"""Of which the rows are one value of the server, which holds 1 GB: at most 291 rows a page, of at most 18 bytes."""
_BY_ITS_PAGES = (
    "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL max_parallel_workers_per_gather = 0"
)
"""An index may be damaged, and shared memory too small for parallel workers."""
_MOST_SHOWN = 8
_ITEM = 0xFFFF


def scan(
    control: "psycopg.Connection[Any]", table: RelationFile, columns: Mapping[Column, str], where: str = "true"
) -> "NDArray[np.void]":
    """Return these expressions of the rows of a table, each of its own type and never null, as fields of the type's name.

    In the expressions the row is `plinth_row`. The server joins the rows of many pages to one value: to
    read each row alone takes three times as long. Raises psycopg.Error.
    """
    import numpy as np

    packed = " || ".join(f"{column}send({expression})" for column, expression in columns.items())
    query = f"SELECT string_agg({packed}, '') FROM ONLY {table.name} AS plinth_row WHERE ({where})"
    content: list[bytes] = []
    with control.transaction():
        control.execute(_BY_ITS_PAGES)
        size = control.execute("SELECT pg_relation_size(%s::oid)", (table.oid,)).fetchone()
        pages = 0 if size is None or size[0] is None else size[0] // PAGE_BYTES
        for first in range(0, max(pages, 1), _PAGES_AT_ONCE):
            upper = f" AND ctid < '({first + _PAGES_AT_ONCE},0)'" if first + _PAGES_AT_ONCE < pages else ""
            found = control.execute(f"{query} AND ctid >= '({first},0)'{upper}".encode(), binary=True).fetchone()
            content += [] if found is None or found[0] is None else [found[0]]
    copied = np.frombuffer(b"".join(content), np.dtype([(column, np.dtype(_BINARY[column])) for column in columns]))
    rows = np.empty(len(copied), np.dtype([(column, _NUMBER[column]) for column in columns]))
    for column in columns:
        values = copied[column]
        rows[column] = values["block"].astype(np.int64) << 16 | values["item"] if column == "tid" else values
    return rows


def tid_list(tids: "NDArray[np.int64]") -> str:
    """Write the first of these rows as the server writes a ctid: "(0,1), (0,2), ..."."""
    shown = [f"({tid >> 16},{tid & _ITEM})" for tid in tids[:_MOST_SHOWN].tolist()]
    return ", ".join(shown) + (", ..." if len(tids) > _MOST_SHOWN else "")


def is_among(tids: "NDArray[np.int64]", others: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Return whether each of `tids` is one of `others`, in any order and with repetitions.

    A page has far fewer items than its numbers allow. Numbered without the gaps, the others fit into a table to look them up in, which
    takes a hundredth of the time of a set (numpy.isin decides; it sorts where a damaged block number would make the table too large).
    """
    import numpy as np

    width = max(int((some & _ITEM).max(initial=0)) for some in (tids, others)) + 1

    def without_gaps(some: "NDArray[np.int64]") -> "NDArray[np.int64]":
        return (some >> 16) * width + (some & _ITEM)

    return np.isin(without_gaps(tids), without_gaps(others))
