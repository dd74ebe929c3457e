"""The tables that transactions with a ledger write to, and the comparison of their rows with the ledger.

Each transaction inserts a row into plinth_ledger_commits and writes its number into its client's row of
plinth_ledger_clients. A client's transactions follow one another and their numbers ascend, so that after any crash the
client's row has the greatest number among its rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.commit_ledger import (
    COMMIT_CLASSES,
    FINDING_KINDS,
    CommitTimeline,
    FindingKind,
    LedgerCheck,
    LedgerFinding,
)
from plinth.model.errors import RunError
from plinth.model.trial import Check
from plinth.model.write_facts import COMMIT_LEVELS, SettingSeen
from plinth.workload.commit_ledger import CommitLedger
from plinth.workload.prepared import commit_prepared, unfinished

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

_PAYLOAD = "repeat(md5(client::text || '.' || number::text), 3)"
_CREATE = (
    "CREATE TABLE IF NOT EXISTS plinth_ledger_commits (client int, number bigint, "
    f"payload text GENERATED ALWAYS AS ({_PAYLOAD}) STORED, PRIMARY KEY (client, number))",
    "CREATE TABLE IF NOT EXISTS plinth_ledger_clients (client int PRIMARY KEY, last_number bigint NOT NULL)",
    "ALTER TABLE plinth_ledger_clients ADD COLUMN IF NOT EXISTS commit_levels int NOT NULL DEFAULT 0",  # by scripts
)
# The heap itself is read: what its index has is a question of its own.
_READ = (
    "SET LOCAL enable_indexscan = off",
    "SET LOCAL enable_indexonlyscan = off",
    "SET LOCAL enable_bitmapscan = off",
    "SET LOCAL statement_timeout = '1h'",  # in place of the server's, which may be too short for it
)
_ROWS = f"COPY (SELECT client, number, payload IS NOT DISTINCT FROM {_PAYLOAD} FROM plinth_ledger_commits) TO STDOUT (FORMAT binary)"
_TIMELINE_BINS = 60
_COPY_HEADER_BYTES, _COPY_TRAILER_BYTES = 19, 2
_COPIED = [
    ("fields", ">i2"),
    ("client_bytes", ">i4"),
    ("client", ">i4"),
    ("number_bytes", ">i4"),
    ("number", ">i8"),
    ("intact_bytes", ">i4"),
    ("intact", "?"),
]
_TABLES = ("plinth_ledger_commits", "plinth_ledger_clients")
_CLASS = {name: number for number, name in enumerate(COMMIT_CLASSES)}


def prepare_ledger_tables(control: "psycopg.Connection", clients: int) -> None:
    """Make the tables where they are not there, and empty them; each client has its row.

    Prepared transactions that a load before has left in them are committed first: emptying would wait for their locks.
    """
    commit_prepared(control, unfinished(control, _TABLES))
    for statement in _CREATE:
        control.execute(statement.encode())
    control.execute("TRUNCATE plinth_ledger_commits, plinth_ledger_clients")
    control.execute(
        "INSERT INTO plinth_ledger_clients SELECT client, 0 FROM generate_series(0, %s) AS client", (clients - 1,)
    )


def commit_levels_seen(control: "psycopg.Connection") -> list[SettingSeen]:
    """Return the values of synchronous_commit that transactions of scripts had when they committed. Raises psycopg.Error."""
    row = control.execute("SELECT coalesce(bit_or(commit_levels), 0) FROM plinth_ledger_clients").fetchone()
    assert row is not None, "an aggregate gives a row"
    return [
        SettingSeen(name="synchronous_commit", value=level, where="in transactions of the scripts, just before COMMIT")
        for bit, level in enumerate(COMMIT_LEVELS)
        if int(row[0]) >> bit & 1
    ]


def compare_ledger(
    ledger: CommitLedger,
    control: "psycopg.Connection | None",
    *,
    is_standby: bool = False,
    most_findings: int = 10,
    cut_ns: int | None = None,
) -> LedgerCheck:
    """Look for every transaction of the ledger in the database of `control`, and for everything else that is there.

    `control` is None where the tables themselves are lost, and all that was acknowledged with them. `is_standby`: commits that
    only the primary has acknowledged may be missing. Of each kind of finding, `most_findings` are listed, and all are counted.
    `cut_ns` is when the power went, by CLOCK_MONOTONIC.
    Sessions of the load must have ended. Prepared transactions that have written to the tables are committed once the tables
    were read, and then they are read again: a row that only this makes visible was prepared, and not committed.
    Raises psycopg.Error for tables that cannot be read.
    """
    database = _no_tables() if control is None else _read_tables(control)
    visible = database
    if control is not None and (prepared := unfinished(control, _TABLES)):
        commit_prepared(control, prepared)
        database = _read_tables(control)
    comparison = _Comparison(ledger, database, visible, is_standby)
    found: dict[FindingKind, list[LedgerFinding]] = {kind: [] for kind in FINDING_KINDS}
    counts = dict.fromkeys(FINDING_KINDS, 0)
    for one in comparison.contradictions():
        counts[one.kind] += 1
        if counts[one.kind] <= most_findings:
            found[one.kind].append(comparison.finding(one))
    return LedgerCheck(
        acknowledged=len(ledger.of_class("acknowledged")) + len(ledger.of_class("prepared")),
        local_only=len(ledger.of_class("local_only")),
        aborted=len(ledger.of_class("aborted")),
        indeterminate=len(ledger.of_class("indeterminate")),
        indeterminate_there=comparison.indeterminate_there(),
        unheard_there=comparison.unheard_there,
        rows=len(database.rows),
        counts={kind: count for kind, count in counts.items() if count},
        oldest_lost_ns=comparison.oldest_lost_ns(),
        timeline=None if cut_ns is None else comparison.timeline(cut_ns),
        findings=tuple(finding for kind in FINDING_KINDS for finding in found[kind]),
        has_ended=ledger.has_ended,
    )


def ledger_checks(check: LedgerCheck) -> list[Check]:
    """Return what must hold after a trial: nothing that was acknowledged is missing, and nothing else contradicts the ledger."""
    others = {kind: count for kind, count in check.counts.items() if kind != "lost commit"}
    evidence = [finding.sentence for finding in check.findings]
    lost = [one for one in evidence if one.startswith("lost commit")]
    rest = [one for one in evidence if not one.startswith("lost commit")]
    return [
        Check(
            name="acknowledged commits of the ledger that are missing",
            expected=f"0 of {check.acknowledged:,}",
            got="; ".join([f"{check.lost:,} of {check.acknowledged:,}", *lost[:3]]),
            ok=check.lost == 0,
        ),
        Check(
            name="other contradictions of ledger and tables",
            expected="none",
            got="; ".join([*(f"{kind}: {count:,}" for kind, count in others.items()), *rest[:3]]) or "none",
            ok=not others,
        ),
    ]


@dataclass(frozen=True)
class _Tables:
    """The rows of the tables, in no order."""

    rows: "NDArray[Any]"
    """Of the dtype _COPIED."""
    last_numbers: list[tuple[int, int]]
    """Client and last number; a client may be there more than once, if its row is broken."""


def _no_tables() -> _Tables:
    import numpy as np

    return _Tables(np.zeros(0, np.dtype(_COPIED)), [])


def _read_tables(control: "psycopg.Connection") -> _Tables:
    """Return both tables as of one snapshot."""
    import numpy as np

    with control.transaction():
        control.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for statement in _READ:
            control.execute(statement.encode())
        with control.cursor() as cursor, cursor.copy(_ROWS.encode()) as copy:
            data = b"".join(bytes(block) for block in copy)
        last = control.execute("SELECT client, last_number FROM plinth_ledger_clients").fetchall()
    body = data[_COPY_HEADER_BYTES:-_COPY_TRAILER_BYTES]
    copied = np.dtype(_COPIED)
    if len(body) % copied.itemsize:
        raise RunError(
            "a row of plinth_ledger_commits has no client or no number, which its key rules out",
            where="plinth_ledger_commits",
            hint="the table is damaged: look at it with amcheck, and at the pages with pageinspect",
        )
    return _Tables(np.frombuffer(body, copied), [(int(client), int(number)) for client, number in last])


class _Contradiction(NamedTuple):
    kind: FindingKind
    client: int
    number: int
    detail: str


class _Comparison:
    """A ledger and the tables, both with one key for client and number."""

    def __init__(self, ledger: CommitLedger, database: _Tables, visible: _Tables, is_standby: bool) -> None:
        """Match rows to the ledger: `visible` are those after recovery, `database` those once prepared transactions were committed."""
        import numpy as np

        self._records = ledger.decided
        self._commit_was_sent = ledger.commit_was_sent | (ledger.begins_of_clients is not None)
        self._database = database
        self._is_standby = is_standby
        numbers = self._records["number"].astype(np.int64)
        self._first = int(numbers.min()) if len(numbers) else 1
        self._span = int(numbers.max()) - self._first + 1 if len(numbers) else 1
        clients = int(self._records["client"].max()) + 1 if len(numbers) else 1
        if clients * self._span >= 2**63:
            raise RunError(
                f"{clients:,} clients with numbers {self._first:,} to {self._first + self._span - 1:,} are too many to compare",
                hint="compare the ledgers of fewer loads at once",
            )
        self._sent = self._keys(self._records["client"], numbers)
        rows = database.rows
        within = self._is_within(rows, clients)
        self._strange = rows[~within]
        """Rows of clients and numbers that no record of the ledger has."""
        self._rows = rows[within]
        self._there, self._times = np.unique(self._keys(self._rows["client"], self._rows["number"]), return_counts=True)
        self._is_there = np.isin(self._sent, self._there)
        if visible is database:
            self._is_visible = self._is_there
        else:
            seen = visible.rows[self._is_within(visible.rows, clients)]
            self._is_visible = np.isin(self._sent, self._keys(seen["client"], seen["number"]))
        acknowledged = self._records["class"] == _CLASS["acknowledged"]
        self._is_kept = np.where(acknowledged, self._is_visible, self._is_there)
        """Whether each is as its answer promised: acknowledged ones must be visible, prepared ones there."""
        self._last_heard = self._last_of_clients(ledger.begins_of_clients)
        self.unheard_there = 0
        """Rows of transactions that were sent after the last of their client that the ledger has."""

    def _is_within(self, rows: "NDArray[Any]", clients: int) -> "NDArray[Any]":
        """Return which rows have a client and a number among those of the ledger."""
        return (
            (rows["client"] >= 0)
            & (rows["client"] < clients)
            & (rows["number"] >= self._first)
            & (rows["number"] < self._first + self._span)
        )

    def indeterminate_there(self) -> int:
        """Return how many of the unanswered transactions have committed."""
        return int((self._is_there & (self._records["class"] == _CLASS["indeterminate"])).sum())

    def oldest_lost_ns(self) -> int | None:
        """Return when the first of the lost commits had been acknowledged."""
        lost = self._acknowledged_ns(is_kept=False)
        return int(lost.min()) if len(lost) else None

    def timeline(self, cut_ns: int) -> CommitTimeline | None:
        """Return when surviving and lost commits were acknowledged, from before the first lost one to the power cut."""
        import numpy as np

        kept, lost = self._acknowledged_ns(is_kept=True), self._acknowledged_ns(is_kept=False)
        if not len(lost):
            return None
        first = min(int(lost.min()), int(kept.min()) if len(kept) else cut_ns)
        window_ns = max(_TIMELINE_BINS, min(2 * (cut_ns - int(lost.min())), cut_ns - first))
        edges = np.linspace(cut_ns - window_ns, cut_ns, _TIMELINE_BINS + 1)
        return CommitTimeline(
            bin_s=window_ns / _TIMELINE_BINS / 1e9,
            kept=tuple(np.histogram(kept, edges)[0].tolist()),
            lost=tuple(np.histogram(lost, edges)[0].tolist()),
        )

    def _acknowledged_ns(self, *, is_kept: bool) -> "NDArray[Any]":
        import numpy as np

        promised = np.isin(self._records["class"], [_CLASS["acknowledged"], _CLASS["prepared"]])
        wanted = promised & (self._is_kept == is_kept)
        return self._records["answered_ns"][wanted].astype("int64")

    def contradictions(self) -> Iterator[_Contradiction]:
        """Yield everything that contradicts the ledger."""
        yield from self._of_class("acknowledged", False, "lost commit", "its row is missing")
        yield from self._of_prepared()
        if not self._is_standby:
            yield from self._of_class(
                "local_only", False, "local-only commit lost", "its row is missing on the primary"
            )
        yield from self._of_class("aborted", True, "resurrected abort", "its row is there")
        yield from self._unsent()
        yield from self._repeated()
        yield from self._torn()
        yield from self._partial()

    def finding(self, of: _Contradiction) -> LedgerFinding:
        """Return the answer that the client got, and when, for a finding."""
        record = self._record(of.client, of.number)
        if record is None:
            return LedgerFinding(**of._asdict(), commit_class=None)
        return LedgerFinding(
            **of._asdict(),
            commit_class=COMMIT_CLASSES[int(record["class"])],
            sent_ns=int(record["sent_ns"]),
            answered_ns=int(record["answered_ns"]) or None,
        )

    def _of_class(self, name: str, is_there: bool, kind: FindingKind, detail: str) -> Iterator[_Contradiction]:
        wrong = (self._records["class"] == _CLASS[name]) & (self._is_there == is_there)
        for record in self._records[wrong]:
            yield _Contradiction(kind, int(record["client"]), int(record["number"]), detail)

    def _of_prepared(self) -> Iterator[_Contradiction]:
        """Yield the prepared transactions that are missing, in the wrong state, or further than they were sent."""
        yield from self._of_class("prepared", False, "lost commit", "neither is it prepared, nor is its row there")
        only_prepared = self._is_there & ~self._is_visible & (self._records["class"] == _CLASS["acknowledged"])
        for record in self._records[only_prepared]:
            detail = "it was prepared only, as if its COMMIT PREPARED had not been answered"
            yield _Contradiction("lost commit", int(record["client"]), int(record["number"]), detail)
        too_far = self._is_visible & ~self._commit_was_sent & (self._records["class"] != _CLASS["aborted"])
        for record in self._records[too_far]:
            detail = "its row is there, and only its PREPARE TRANSACTION was sent"
            yield _Contradiction("never sent", int(record["client"]), int(record["number"]), detail)

    def _unsent(self) -> Iterator[_Contradiction]:
        import numpy as np

        unknown = self._there[~np.isin(self._there, self._sent)]
        places = [*map(self._place, unknown), *((int(row["client"]), int(row["number"])) for row in self._strange)]
        for client, number in places:
            if number > self._last_heard.get(client, number):
                self.unheard_there += 1
            else:
                yield _Contradiction("never sent", client, number, "its row is there")

    def _last_of_clients(self, clients: int | None) -> dict[int, int]:
        """Return the last number of each client that the ledger has, where later ones may be missing in it."""
        last = dict.fromkeys(range(clients or 0), 0)
        if clients is not None:
            ends = self._records[_ends(self._records["client"])]
            last |= zip(ends["client"].tolist(), ends["number"].tolist(), strict=True)
        return last

    def _repeated(self) -> Iterator[_Contradiction]:
        for key, times in zip(self._there[self._times > 1], self._times[self._times > 1], strict=True):
            yield _Contradiction("duplicate", *self._place(key), f"its row is there {int(times)} times")
        seen: set[int] = set()
        for client, number in self._database.last_numbers:
            if client in seen:
                yield _Contradiction("duplicate", client, number, "its client has several rows of last numbers")
            seen.add(client)

    def _torn(self) -> Iterator[_Contradiction]:
        for row in self._database.rows[~self._database.rows["intact"]]:
            detail = "the payload of its row is not the checksum of client and number"
            yield _Contradiction("torn payload", int(row["client"]), int(row["number"]), detail)

    def _partial(self) -> Iterator[_Contradiction]:
        """Yield a contradiction for each client whose last number is not the greatest among its rows."""
        import numpy as np

        rows, last = self._database.rows, dict(self._database.last_numbers)
        order = np.lexsort((rows["number"], rows["client"]))
        clients = rows["client"][order]
        ends = _ends(clients)
        greatest = dict(zip(clients[ends].tolist(), rows["number"][order][ends].tolist(), strict=True))
        for client in sorted(last.keys() | greatest.keys()):
            row, written = greatest.get(client, 0), last.get(client)
            if written is None:
                yield _Contradiction("partial transaction", client, row, "its row is there, its client's row is not")
            elif row > written:
                detail = f"its row is there, its client's last number is {written}"
                yield _Contradiction("partial transaction", client, row, detail)
            elif row < written and written >= self._first:
                detail = f"it is its client's last number, the greatest among the client's rows is {row}"
                yield _Contradiction("partial transaction", client, written, detail)

    def _record(self, client: int, number: int) -> "np.void | None":
        import numpy as np

        if client < 0 or not self._first <= number < self._first + self._span:
            return None
        at = int(np.searchsorted(self._sent, client * self._span + number - self._first))
        if at < len(self._records) and (self._records["client"][at], self._records["number"][at]) == (client, number):
            return self._records[at]
        return None

    def _keys(self, clients: "NDArray[Any]", numbers: "NDArray[Any]") -> "NDArray[np.int64]":
        import numpy as np

        return clients.astype(np.int64) * self._span + numbers.astype(np.int64) - self._first

    def _place(self, key: int) -> tuple[int, int]:
        client, offset = divmod(int(key), self._span)
        return client, self._first + offset


def _ends(sorted_values: "NDArray[Any]") -> "NDArray[np.int64]":
    """Return where the last of each run of equal values is."""
    import numpy as np

    if not len(sorted_values):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.append(sorted_values[1:] != sorted_values[:-1], True))
