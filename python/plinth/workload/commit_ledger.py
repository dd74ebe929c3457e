"""The commit ledger that a load has written: its files, as arrays. docs/internals/ledger.md describes the format."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.commit_ledger import COMMIT_CLASSES, CommitClass
from plinth.model.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAGIC = b"PLINTHLG"
_FORMAT_VERSION = 1
_HEADER = [
    ("magic", "S8"),
    ("version", "<u4"),
    ("header_bytes", "<u4"),
    ("record_bytes", "<u4"),
    ("thread", "<u4"),
    ("has_ended", "u1"),
    ("reserved", "V3"),
    ("threads", "<u4"),
    ("started_ns", "<u8"),
    ("started_unix_ns", "<u8"),
    ("unused", "V16"),
]
RECORD = [
    ("number", "<u8"),
    ("sent_ns", "<u8"),
    ("answered_ns", "<u8"),
    ("client", "<u4"),
    ("class", "u1"),
    ("step", "u1"),
    ("reserved", "V2"),
]
"""A record, for numpy.dtype. `class` is an index of COMMIT_CLASSES, `answered_ns` 0 without an answer. `step` is 0, or what
finishes the prepared transaction of this client and number: COMMIT_PREPARED or ROLLBACK_PREPARED."""
COMMIT_PREPARED, ROLLBACK_PREPARED = 1, 2
HEADER_BYTES, RECORD_BYTES = 64, 32
_HINT = "the file is not what a load has written; take the folder that was its ledger.folder"


@dataclass(frozen=True)
class CommitLedger:
    """What all threads of a load, or several loads, have recorded. Times are CLOCK_MONOTONIC, in ns."""

    records: "NDArray[Any]"
    """Of the dtype RECORD, by client and number, each of which is there once."""
    has_ended: bool
    """Whether the load has written it to the end; one that was killed has left records without an answer."""
    started_ns: int
    """When the load began to send."""
    started_unix_ns: int
    begins_of_clients: int | None = None
    """None: it has everything that was sent. Otherwise it has of each of so many clients what was sent first, and what was sent
    last may be missing: a witness receives a commit only after it was sent."""
    finishes: "NDArray[Any] | None" = None
    """The records of COMMIT PREPARED and ROLLBACK PREPARED, whose client and number are those of the PREPARE TRANSACTION
    in `records`. None: there are none."""

    def of_class(self, commit_class: CommitClass) -> "NDArray[Any]":
        """Return the records of a class."""
        return self.decided[self.decided["class"] == COMMIT_CLASSES.index(commit_class)]

    @cached_property
    def decided(self) -> "NDArray[Any]":
        """Return the records, those of prepared transactions with the class that their second step gives them.

        Once COMMIT PREPARED was answered a transaction is acknowledged, and once ROLLBACK PREPARED was, aborted; while that is
        not answered it is indeterminate, as is the last one of a client whose last records may be missing. In all other cases it
        stays prepared, and must be there either way.
        """
        import numpy as np

        records = self.records.copy()
        for place, finish in self._finished:
            if COMMIT_CLASSES[int(records["class"][place])] not in ("prepared", "local_only"):
                continue
            answer = COMMIT_CLASSES[int(finish["class"])]
            if finish["step"] == ROLLBACK_PREPARED:
                decided: CommitClass = "aborted" if answer == "acknowledged" else "indeterminate"
            elif answer in ("acknowledged", "local_only"):
                decided = answer
            else:
                continue
            records["class"][place] = COMMIT_CLASSES.index(decided)
            records["answered_ns"][place] = finish["answered_ns"]
        if self.begins_of_clients is not None and len(records):  # a ROLLBACK PREPARED may be among what is missing
            last = np.append(records["client"][1:] != records["client"][:-1], True)
            last &= records["class"] == COMMIT_CLASSES.index("prepared")
            records["class"][last] = COMMIT_CLASSES.index("indeterminate")
        return records

    @cached_property
    def commit_was_sent(self) -> "NDArray[Any]":
        """Return which records are of a transaction whose COMMIT or COMMIT PREPARED was sent: only such may be visible."""
        import numpy as np

        sent = ~np.isin(self.records["class"], [COMMIT_CLASSES.index("prepared")])
        for place, finish in self._finished:
            sent[place] |= finish["step"] == COMMIT_PREPARED
        return sent

    @property
    def _finished(self) -> "list[tuple[int, Any]]":
        """Return places in `records`, each with a record of `finishes`, in the order in which these were sent."""
        if self.finishes is None or not len(self.finishes):
            return []
        places = {
            (int(client), int(number)): place
            for place, (client, number) in enumerate(zip(self.records["client"], self.records["number"], strict=True))
        }
        finishes = self.finishes[self.finishes["sent_ns"].argsort(kind="stable")]
        keys = [(int(finish["client"]), int(finish["number"])) for finish in finishes]
        return [(places[key], finish) for key, finish in zip(keys, finishes, strict=True) if key in places]

    def as_of(self, monotonic_ns: int) -> "CommitLedger":
        """Return the ledger as of an instant: transactions sent later are left out, those answered later are
        indeterminate."""
        finishes = None if self.finishes is None else self.finishes[self.finishes["sent_ns"] <= monotonic_ns]
        records = self.records[self.records["sent_ns"] <= monotonic_ns]
        return replace(self, records=records, finishes=finishes).answered_by(monotonic_ns)

    def answered_by(self, monotonic_ns: int) -> "CommitLedger":
        """Return the ledger with everything that was sent; what was answered after the instant is indeterminate."""
        finishes = None if self.finishes is None else _answered_by(self.finishes, monotonic_ns)
        return replace(self, records=_answered_by(self.records, monotonic_ns), finishes=finishes)


def _answered_by(records: "NDArray[Any]", monotonic_ns: int) -> "NDArray[Any]":
    records = records.copy()
    unanswered = records["answered_ns"] > monotonic_ns
    records["class"][unanswered] = COMMIT_CLASSES.index("indeterminate")
    records["answered_ns"][unanswered] = 0
    return records


def first_steps(records: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return the records of transactions by client and number, and those of what finishes prepared ones."""
    import numpy as np

    finishes = records["step"] != 0
    first = records[~finishes]
    return first[np.lexsort((first["number"], first["client"]))], records[finishes]


def read_commit_ledger(*folders: Path) -> CommitLedger:
    """Return the ledger of a load, by its folder; of several folders, of loads whose numbers follow one another.

    Raises RunError for files that are missing, or that no load has written like this.
    """
    import numpy as np

    files = [_read_file(path) for folder in folders for path in _files_of(folder)]
    records, finishes = first_steps(np.concatenate([records for _, records in files]))
    same = (records["client"][1:] == records["client"][:-1]) & (records["number"][1:] == records["number"][:-1])
    if same.any():
        twice = records[1:][same][0]
        raise RunError(
            f"client {twice['client']} has two transactions with the number {twice['number']}",
            where=", ".join(map(str, folders)),
            hint="loads on the same tables continue the numbers of those before them, by ledger.first_number",
        )
    headers = [header for header, _ in files]
    return CommitLedger(
        records=records,
        has_ended=all(header["has_ended"] == 1 for header in headers),
        started_ns=min(int(header["started_ns"]) for header in headers),
        started_unix_ns=min(int(header["started_unix_ns"]) for header in headers),
        finishes=finishes,
    )


def _files_of(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.ledger"))
    if not files:
        raise RunError(
            "there is no ledger", where=str(folder), hint="a load with ledger.folder writes THREAD.ledger there"
        )
    threads = int(_header(files[0])["threads"])
    names = {f"{thread}.ledger" for thread in range(threads)} if threads <= len(files) else set[str]()
    if names != {path.name for path in files}:
        raise RunError(
            f"the ledger has {len(files)} files; the load had {threads} threads, each with a file of its own",
            where=str(folder),
            hint=_HINT,
        )
    return files


def _header(path: Path) -> "np.void":
    try:
        with path.open("rb") as file:
            start = file.read(HEADER_BYTES)
    except OSError as error:
        raise RunError(f"cannot read the ledger: {error.strerror}", where=str(path)) from error
    return header_of(start, str(path))


def header_of(start: bytes, where: str) -> "np.void":
    """Return the header at the beginning of a file. RunError, with `where`, for what is none."""
    import numpy as np

    header = np.dtype(_HEADER)
    if len(start) < HEADER_BYTES or start[: len(_MAGIC)] != _MAGIC:
        raise RunError("this is no ledger: it does not begin with PLINTHLG", where=where, hint=_HINT)
    read = np.frombuffer(start[:HEADER_BYTES], header)[0]
    if read["version"] != _FORMAT_VERSION:
        raise RunError(
            f"the ledger has format version {read['version']}; {_FORMAT_VERSION} can be read",
            where=where,
            hint="read it with the version of Plinth that wrote it",
        )
    sizes = (int(read["header_bytes"]), int(read["record_bytes"]))
    if sizes != (HEADER_BYTES, RECORD_BYTES):
        raise RunError(f"the ledger's header and records have {sizes} bytes, not (64, 32)", where=where, hint=_HINT)
    return read


def by_another_clock(content: bytes, more_ns: int, where: str) -> bytes:
    """Return a file's content with `more_ns` added to all its times, as of a clock that is that much ahead.

    Raises RunError, with `where`, for content that is not of a ledger.
    """
    import numpy as np

    header_of(content, where)
    if (len(content) - HEADER_BYTES) % RECORD_BYTES:
        raise RunError("the ledger ends within a record", where=where, hint=_HINT)
    changed = bytearray(content)
    header = np.frombuffer(changed, np.dtype(_HEADER), count=1)
    records = np.frombuffer(changed, np.dtype(RECORD), offset=HEADER_BYTES)
    for times in (header["started_ns"], records["sent_ns"], records["answered_ns"]):
        there = times != 0
        times[there] = (times[there].astype(np.int64) + more_ns).astype(np.uint64)
    return bytes(changed)


def _read_file(path: Path) -> "tuple[np.void, NDArray[Any]]":
    """Return the header and the records that were written, without the room behind them."""
    import numpy as np

    header, record = _header(path), np.dtype(RECORD)
    if (path.stat().st_size - HEADER_BYTES) % record.itemsize:
        raise RunError("the ledger ends within a record", where=str(path), hint=_HINT)
    records = np.fromfile(path, record, offset=HEADER_BYTES)
    written = records["number"] != 0
    used = int(np.argmin(written)) if not written.all() else len(records)
    if written[used:].any():
        raise RunError(f"the ledger has a hole at record {used}", where=str(path), hint=_HINT)
    records = records[:used]
    unknown = records["class"] >= len(COMMIT_CLASSES)
    if unknown.any():
        raise RunError(
            f"record {int(np.argmax(unknown))} has the class {records['class'][unknown][0]}; there are 0 to {len(COMMIT_CLASSES) - 1}",
            where=str(path),
            hint=_HINT,
        )
    return header, records
