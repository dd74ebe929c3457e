"""What of a fingerprint is not there any more after a recovery: pages that have gone back, and rows that changed though
no transaction touched them. Why that is damage: `fingerprint.py`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.durability import DamageKind, IntegrityCheck
from plinth.server.copied import tid_list
from plinth.server.fingerprint import Fingerprint, TableRows, columns_of, rows_of, stable_text
from plinth.server.integrity import Finding, Integrity, damage_of, finding_of
from plinth.server.pages import RelationFile, is_all_visible, lsn_number, lsn_text, page_lsns, relation_files
from plinth.server.sequences import read_sequences, set_back

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
        IntegrityCheck(name=f"{UNTOUCHED_ROWS}: {name}", not_run=reason) for name, reason in before.too_large.items()
    )
    stable_text(control)
    columns = columns_of(control)
    for table in before.tables:
        now = files.get(table.file.oid)
        reason = _not_comparable(table, now, columns)
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
    """Pages whose LSN has gone back. Of a heap a page of zeros is one only where the map calls it visible."""
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
    """Pages of a change that is not in WAL: it was lost, though it has to be durable before the page."""
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
    import numpy as np
    import psycopg

    try:
        now = rows_of(control, table.now, next_xid)
    except psycopg.Error as error:
        found.append(finding_of(control, error, table.now.name))
        return None
    old = table.before.rows
    same = np.intersect1d(old["tid"], now["tid"], assume_unique=True, return_indices=True)
    changed = old[same[1]] != now[same[2]]
    name = table.now.name
    appeared = np.setdiff1d(now["tid"], old["tid"], assume_unique=True)
    found += _named(name, same[0][changed], "have other content than before the load")
    found += _named(name, appeared, "are of transactions before the load, and were not there then")
    gone = np.setdiff1d(old["tid"], now["tid"], assume_unique=True)
    last = int(now["tid"][-1]) >> 16 if len(now) else _NO_BLOCK
    return _judge_gone(table, gone, last, found)


def _judge_gone(table: _Table, gone: "NDArray[np.int64]", last: int, found: list[Finding]) -> str | None:
    """Whether the load may have removed these rows; `last` is the last page that still has a row of before."""
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
