"""Rows of a query as a NumPy array, read by binary COPY: millions a second, and a few bytes each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

Column = Literal["tid", "xid", "int8"]
"""A type of the server."""
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER_BYTES = len(_SIGNATURE) + 8
_TRAILER_BYTES = 2
_MOST_SHOWN = 8
_BINARY: dict[Column, list[tuple[str, str]]] = {
    "tid": [("bytes", ">i4"), ("block", ">u4"), ("item", ">u2")],
    "xid": [("bytes", ">i4"), ("value", ">u4")],
    "int8": [("bytes", ">i4"), ("value", ">i8")],
}
_NUMBER = {"tid": "i8", "xid": "u4", "int8": "i8"}


def read_columns(control: "psycopg.Connection[Any]", query: str, columns: Sequence[Column]) -> "NDArray[np.void]":
    """Return the rows of a query whose columns are of these types, each its own and none null, as fields of that name.

    A tid becomes block << 16 | item. Raises psycopg.Error.
    """
    import numpy as np

    with control.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode()) as copy:
        content = b"".join(copy)
    layout = np.dtype([("fields", ">i2"), *((column, np.dtype(_BINARY[column])) for column in columns)])
    copied = np.frombuffer(content[_HEADER_BYTES:-_TRAILER_BYTES], layout)
    rows = np.empty(len(copied), np.dtype([(column, _NUMBER[column]) for column in columns]))
    for column in columns:
        values = copied[column]
        rows[column] = values["block"].astype(np.int64) << 16 | values["item"] if column == "tid" else values["value"]
    return rows


def tid_list(tids: "NDArray[np.int64]") -> str:
    """Write the first of these rows as the server writes a ctid: "(0,1), (0,2), ..."."""
    shown = [f"({tid >> 16},{tid & 0xFFFF})" for tid in tids[:_MOST_SHOWN].tolist()]
    return ", ".join(shown) + (", ..." if len(tids) > _MOST_SHOWN else "")
