"""The files of relations, read page by page next to the server: the LSN of each page, and the visibility map.

A page in a file is never newer than the WAL that is durable, and whole for what is read of it here: eight bytes of its first
sector.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.system.regular_file import open_regular_file

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

PAGE_BYTES = 8192
_CHUNK_PAGES = 512
_MAP_HEADER_BYTES = 24  # SizeOfPageHeaderData (bufpage.h)
_BLOCKS_PER_MAP_BYTE = 4
_MAP_BYTES = PAGE_BYTES - _MAP_HEADER_BYTES
_FILES = (
    "SELECT c.oid::bigint, c.oid::regclass::text, c.relkind::text, coalesce(a.amname, ''), pg_relation_filepath(c.oid), "
    "coalesce(i.indrelid, 0)::bigint FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam "
    "LEFT JOIN pg_index i ON i.indexrelid = c.oid "
    "WHERE c.relkind IN ('r', 't', 'm', 'i', 'S') AND c.relpersistence = 'p' ORDER BY c.oid"
)


class RelationFile(NamedTuple):
    """A permanent relation that has pages, and where they are."""

    oid: int
    name: str
    kind: str
    """relkind of pg_class: r, t, m, i or S."""
    method: str
    """Its access method, such as heap or hash; empty for a sequence of old versions."""
    path: str
    """The first file of its main fork, below the data directory. A relation that is rewritten gets another."""
    heap: int
    """Of an index: the oid of its table; otherwise 0."""

    @property
    def is_heap(self) -> bool:
        """Return whether VACUUM can cut pages off its end."""
        return self.kind in "rtm"


def relation_files(control: "psycopg.Connection[Any]") -> list[RelationFile]:
    """Read the permanent relations of the database, catalogues and shared ones included. Raises psycopg.Error."""
    return [RelationFile(*row) for row in control.execute(_FILES).fetchall()]


def pages_of(data_directory: Path, relation: RelationFile) -> "Iterator[NDArray[np.uint8]]":
    """Yield the pages of the main fork, some at a time, as arrays of PAGE_BYTES columns. Raises OSError."""
    import numpy as np

    first = data_directory / relation.path
    segment, path = 0, first
    while segment == 0 or path.exists():
        with open_regular_file(path) as file:
            while content := file.read(_CHUNK_PAGES * PAGE_BYTES):
                whole = len(content) // PAGE_BYTES * PAGE_BYTES  # the file is being extended
                yield np.frombuffer(content[:whole], np.uint8).reshape(-1, PAGE_BYTES)
        segment += 1
        path = first.with_name(f"{first.name}.{segment}")


def page_lsns(data_directory: Path, relation: RelationFile) -> "NDArray[np.uint64]":
    """Read the LSN of each page as it is in the file; 0 for one that is all zeros, or was never logged. Raises OSError."""
    import numpy as np

    lsns = [np.empty(0, np.uint64)]
    for pages in pages_of(data_directory, relation):
        halves = np.ascontiguousarray(pages[:, :8]).view("<u4").astype(np.uint64)  # xlogid, xrecoff
        lsns.append(halves[:, 0] << np.uint64(32) | halves[:, 1])
    return np.concatenate(lsns)


def is_all_visible(data_directory: Path, relation: RelationFile, block: int) -> bool:
    """Return whether the visibility map, as it is in its file, calls every row of the page visible. Raises OSError."""
    path = data_directory / f"{relation.path}_vm"
    if not path.exists():
        return False
    page, byte = divmod(block // _BLOCKS_PER_MAP_BYTE, _MAP_BYTES)
    with open_regular_file(path) as file:
        found = os.pread(file.fileno(), 1, page * PAGE_BYTES + _MAP_HEADER_BYTES + byte)
    return bool(found and found[0] >> (block % _BLOCKS_PER_MAP_BYTE * 2) & 1)


def lsn_number(text: str) -> int:
    """Return the number of a pg_lsn: "1/A0" -> 0x1000000A0."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(number: int) -> str:
    """Write an LSN as the server does: 0x1000000A0 -> "1/A0"."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"
