"""Comparison of index entries with the table items that they point to, in the files of a stopped server.

amcheck looks for the rows of a table in its B-tree indexes, and not for the entries in the table; of a hash or GiST index it looks
at nothing. Two things always hold, no matter which transactions have committed, were rolled back or were killed:

- **An entry points to an item.** The item is in WAL before its entry, and VACUUM removes the entry before it frees the item. So an
  entry whose item is unused, or whose page has no such item, shows that the page of the table is not the one it was.
- **A visible row has an entry.** Of a row that a HOT update has made, its root has it; such rows are left out.

BRIN has no entries for rows; those of GIN are compressed, and SP-GiST's have a different form: these are not checked here.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.durability import IntegrityCheck
from plinth.server.integrity.findings import Finding, Integrity, damage_of, finding_of
from plinth.server.integrity.pages import PAGE_BYTES, RelationFile, pages_of, relation_files
from plinth.server.integrity.table_scan import is_among, scan, tid_list
from plinth.system.foreign_code import NOT_READ, calls_code_of_others

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

ENTRIES = "index entries point to rows"
"""The name of the check of entries."""
ROWS = "rows are in their hash and GiST indexes"
"""The name of the check of rows."""
_METHODS = ("btree", "hash", "gist")
_OTHERS = {
    "gin": "its entries are compressed lists",
    "brin": "it has no entries for rows",
    "spgist": "its entries have a different form",
}
_HEADER_BYTES = 24  # SizeOfPageHeaderData
_SPECIAL = PAGE_BYTES - 16  # of all three methods
_HEAP_ONLY = 0x8000  # of t_infomask2 (htup_details.h)
_INFOMASK2_AT = 18
_ALTERNATIVE_TID = 0x2000  # INDEX_ALT_TID_MASK of t_info (itup.h)
_POSTING = 0x2000  # BT_IS_POSTING, in the offset of an entry's TID (nbtree.h)
_COUNT = 0x0FFF
_TID_BYTES = 6
_USABLE = (
    "SELECT i.indexrelid::bigint, pg_get_indexdef(i.indexrelid, 1, true), pg_get_expr(i.indpred, i.indrelid), "
    f"{calls_code_of_others('i.indrelid')} FROM pg_index i WHERE i.indisvalid AND i.indisready"
)


class IndexRows(NamedTuple):
    """An index, its table, and the rows that have to be in it; None where amcheck looks for them."""

    file: RelationFile
    heap: RelationFile
    rows: "NDArray[np.int64] | None"


class Pointers(NamedTuple):
    """What `check_pointers` needs of the server while it runs."""

    indexes: tuple[IndexRows, ...]
    found: tuple[Finding, ...]
    others: tuple[IntegrityCheck, ...]


def read_pointers(control: "psycopg.Connection[Any]") -> Pointers:
    """Read which indexes there are, and the rows that hash and GiST indexes must have. Raises psycopg.Error where the server could not answer."""
    import psycopg

    usable = {oid: rest for oid, *rest in control.execute(_USABLE.encode()).fetchall()}
    files = {file.oid: file for file in relation_files(control)}
    indexes: list[IndexRows] = []
    found: list[Finding] = []
    others: list[IntegrityCheck] = []
    for file in files.values():
        if file.kind != "i" or file.oid not in usable or file.heap not in files:
            continue
        heap, rows = files[file.heap], None
        if file.method not in _METHODS:
            reason = _OTHERS.get(file.method, f"nothing is known of its access method, {file.method}")
            others.append(IntegrityCheck(name=f"{ENTRIES}: {file.name}", not_run=reason))
            continue
        if file.method != "btree":
            key, predicate, calls_code = usable[file.oid]
            if calls_code:
                others.append(IntegrityCheck(name=f"{ROWS}: {file.name}", not_run=NOT_READ))
            else:
                try:
                    rows = _rows_with_entries(control, file, heap, key, predicate)
                except psycopg.Error as error:
                    found.append(finding_of(control, error, heap.name))
        indexes.append(IndexRows(file, heap, rows))
    return Pointers(tuple(indexes), tuple(found), tuple(others))


def check_pointers(data_directory: Path, pointers: Pointers) -> Integrity:
    """Compare indexes and tables of a server that has been stopped since, in its files."""
    import numpy as np

    found = list(pointers.found)
    by_heap: dict[RelationFile, list[IndexRows]] = {}
    for one in pointers.indexes:
        by_heap.setdefault(one.heap, []).append(one)
    for heap, indexes in by_heap.items():
        try:
            used, heap_only = _items_of(data_directory, heap)
            for index, _, rows in indexes:
                entries = _entries_of(data_directory, index)
                dangling = np.unique(entries[~is_among(entries, used)])
                found += _named(index, dangling, f"of its entries point to items that {heap.name} does not have")
                if rows is not None:
                    missing = rows[~is_among(rows, np.concatenate((heap_only, entries)))]
                    found += _named(index, missing, f"rows of {heap.name} have no entry in it")
        except OSError as error:
            found.append(("heap damaged", f"{heap.name} and its indexes cannot be read: {error}"))
    made = (IntegrityCheck(name=ENTRIES), IntegrityCheck(name=ROWS))
    return Integrity(damage_of(found), (*made, *pointers.others))


def _rows_with_entries(
    control: "psycopg.Connection[Any]", index: RelationFile, heap: RelationFile, key: str, predicate: str | None
) -> "NDArray[np.int64]":
    conditions = [f"({predicate})"] if predicate else []
    if index.method == "hash":  # it has none for nulls
        conditions.append(f"({key}) IS NOT NULL")
    return scan(control, heap, {"tid": "ctid"}, " AND ".join(conditions) or "true")["tid"]


def _named(index: RelationFile, tids: "NDArray[np.int64]", what: str) -> Iterator[Finding]:
    if len(tids):
        yield "index and heap disagree", f"{index.name}: {len(tids):,} {what}: {tid_list(tids)}"


class _Items(NamedTuple):
    """The items of some pages that have storage or are redirected: their page in `pages`, their number from 1, and where they are."""

    pages: "NDArray[np.uint8]"
    page: "NDArray[np.int64]"
    number: "NDArray[np.int64]"
    offset: "NDArray[np.int64]"
    flags: "NDArray[np.int64]"

    def halves(self, at: int) -> "NDArray[np.int64]":
        """Return the two bytes at this place of each item; 0 where that is outside of its page."""
        import numpy as np

        place = self.offset + at
        inside = place <= PAGE_BYTES - 2
        words = np.ascontiguousarray(self.pages).view("<u2")
        return np.where(inside, words[self.page, np.where(inside, place, 0) // 2], 0).astype(np.int64)

    def of(self, chosen: "NDArray[np.bool_]") -> "_Items":
        """Return those that are chosen."""
        return _Items(self.pages, self.page[chosen], self.number[chosen], self.offset[chosen], self.flags[chosen])


def _items(pages: "NDArray[np.uint8]") -> _Items:
    import numpy as np

    words = np.ascontiguousarray(pages)
    counts = np.maximum(_halves_at(words, 12) - _HEADER_BYTES, 0) // 4  # pd_lower
    most = min(int(counts.max(initial=0)), (PAGE_BYTES - _HEADER_BYTES) // 4)
    pointers = words[:, _HEADER_BYTES : _HEADER_BYTES + 4 * most].copy().view("<u4").astype(np.int64)
    flags = pointers >> 15 & 3
    page, place = np.nonzero((np.arange(most) < counts[:, None]) & (flags != 0))
    return _Items(pages, page, place + 1, pointers[page, place] & 0x7FFF, flags[page, place])


def _halves_at(pages: "NDArray[np.uint8]", at: int) -> "NDArray[np.int64]":
    import numpy as np

    return pages[:, at : at + 2].copy().view("<u2")[:, 0].astype(np.int64)


def _items_of(data_directory: Path, heap: RelationFile) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Return all items of a table that are in use, and those that HOT updates have made."""
    import numpy as np

    used, heap_only = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    block = 0
    for pages in pages_of(data_directory, heap):
        items = _items(pages)
        tids = items.page + block << 16 | items.number
        used.append(tids)
        heap_only.append(tids[(items.flags == 1) & (items.halves(_INFOMASK2_AT) & _HEAP_ONLY != 0)])
        block += len(pages)
    return np.concatenate(used), np.concatenate(heap_only)


def _entries_of(data_directory: Path, index: RelationFile) -> "NDArray[np.int64]":
    """Return the items of the table that the entries of an index point to."""
    import numpy as np

    found = [np.empty(0, np.int64)]
    for pages in pages_of(data_directory, index):
        flags = _halves_at(pages, _SPECIAL + 12)
        initialised = _halves_at(pages, 16) == _SPECIAL  # pd_special
        if index.method == "btree":
            found += _btree_entries(
                pages, initialised & (flags & 0b11101 == 1)
            )  # a leaf, not deleted, half dead or the metapage
        else:
            leaf = (
                flags & 0b11 != 0 if index.method == "hash" else flags & 0b11 == 1
            )  # a bucket or its overflow; a leaf
            items = _items(pages[initialised & leaf])
            found.append(_tids(items))
    return np.concatenate(found)


def _tids(items: _Items) -> "NDArray[np.int64]":
    return (items.halves(0) << 16 | items.halves(2)) << 16 | items.halves(4)


def _btree_entries(pages: "NDArray[np.uint8]", chosen: "NDArray[np.bool_]") -> "Sequence[NDArray[np.int64]]":
    leaves = pages[chosen]
    items = _items(leaves)
    is_rightmost = (_halves_at(leaves, _SPECIAL + 4) | _halves_at(leaves, _SPECIAL + 6)) == 0  # btpo_next
    items = items.of((items.number > 1) | is_rightmost[items.page])  # without the high key
    is_posting = (items.halves(6) & _ALTERNATIVE_TID != 0) & (items.halves(4) & _POSTING != 0)
    return _tids(items.of(~is_posting)), _posting_tids(items.of(is_posting))


def _posting_tids(items: _Items) -> "NDArray[np.int64]":
    """Return the TIDs of posting lists: of entries with one key, whose TIDs are in a list behind it (BTreeTupleGetPosting)."""
    import numpy as np

    counts = items.halves(4) & _COUNT
    begin = items.offset + (items.halves(0) << 16 | items.halves(2))
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    listed = _Items(
        items.pages,
        np.repeat(items.page, counts),
        np.repeat(items.number, counts),
        np.repeat(begin, counts) + place * _TID_BYTES,
        np.repeat(items.flags, counts),
    )
    return _tids(listed)
