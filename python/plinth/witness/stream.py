"""The load's side: a thread sends what the engine writes into its ledger to the witness continuously."""

import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from plinth.model.errors import PlinthError, Refused, RunError
from plinth.model.witness import Ended, Hello, LoadEnd, Welcome
from plinth.system import cancel
from plinth.system.framed_tls import ProtocolError, parsed
from plinth.witness.credentials import connect_to_witness
from plinth.witness.protocol import MAX_HELLO_BYTES, MAX_RECORDS, THREAD, Kind
from plinth.workload.commit_ledger import HEADER_BYTES, RECORD, RECORD_BYTES, header_of

ANSWER_TIMEOUT_S = 10.0
"""The time that the witness may take to make a message durable."""
_TICK_S = 0.005
_SIGN_OF_LIFE_S = 0.5
_HEADER_TIMEOUT_S = 30.0
_REACH = 256
"""The number of records that are read at once, at first."""
_INDEX = struct.Struct("<Q")
_RECORD = struct.Struct("<QQQIB3x")
_ACKNOWLEDGED = 1
assert _RECORD.size == RECORD_BYTES


class WitnessConnection:
    """A connection to the witness. Raises RunError when it ends, and Refused when the witness refuses."""

    def __init__(self, host: str, port: int, fingerprint: str, hello: Hello) -> None:
        self._where = f"the witness at {host}:{port}"
        self._link = connect_to_witness(host, port, fingerprint, ANSWER_TIMEOUT_S)
        try:
            self.round = parsed(Welcome, self._ask(Kind.HELLO, hello.model_dump_json().encode(), Kind.WELCOME))
        except BaseException:
            self.close()
            raise

    def send(self, kind: Kind, payload: bytes) -> None:
        """Send a message, and wait until the witness has made it durable."""
        self._ask(kind, payload, Kind.ACK)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def _ask(self, kind: Kind, payload: bytes, answer: Kind) -> bytes:
        try:
            self._link.send(kind, payload)
            message = self._link.receive(MAX_HELLO_BYTES, ANSWER_TIMEOUT_S)
        except RunError as error:
            error.where, error.hint = self._where, "see what the witness says there, and whether it is reached"
            raise
        if message.kind is Kind.REFUSED:
            raise Refused(f"the witness refuses: {message.payload.decode(errors='replace')}", where=self._where)
        if message.kind is not answer:
            raise ProtocolError(f"the witness answers {message.kind.name}, not {answer.name}", where=self._where)
        return message.payload


class LedgerTail:
    """Follows the file of a thread while the engine writes it: what is new in it, and what was completed.

    The engine stores a record, and later its answer, without a lock. A record is whole once another follows it, or its
    answer has come; its class is stored last.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._next = 0
        self._reach = _REACH
        self._pending: list[int] = []
        """Records without an answer: at most one of each client, and those of broken connections."""

    def header(self) -> bytes | None:
        """Return the file's header; None as long as the load has not begun it."""
        start = os.pread(self._file, HEADER_BYTES, 0)
        return start if start[:1] != b"\0" and len(start) == HEADER_BYTES else None

    def changes(self, *, is_ended: bool) -> Iterator[tuple[int, bytes]]:
        """Yield index and bytes of what has changed since the last call, at most MAX_RECORDS in all. `is_ended`: nobody writes."""
        left = MAX_RECORDS
        for place, index in reversed(list(enumerate(self._pending))):
            record = os.pread(self._file, RECORD_BYTES, HEADER_BYTES + index * RECORD_BYTES)
            if _is_answered(record) and left > 0:
                del self._pending[place]
                left -= 1
                yield index, record
        for record in self._whole(left, is_ended):
            if not _is_answered(record):
                self._pending.append(self._next)
                record = record[:16] + bytes(8) + record[24:28] + bytes(4)
            yield self._next, record
            self._next += 1

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _whole(self, most: int, is_ended: bool) -> list[bytes]:
        there = self._written(min(most, self._reach) + 1)
        # What comes faster than it is read in small pieces is read in larger ones.
        self._reach = min(self._reach * 4, MAX_RECORDS) if len(there) > self._reach else _REACH
        whole = len(there) if is_ended or (there and _is_answered(there[-1])) else len(there) - 1
        # Read again: what was seen to be whole is whole only now.
        return self._written(min(most, whole)) if whole > 0 else []

    def _written(self, most: int) -> list[bytes]:
        import numpy as np

        data = os.pread(self._file, most * RECORD_BYTES, HEADER_BYTES + self._next * RECORD_BYTES)
        unused = np.flatnonzero(np.frombuffer(data, np.dtype(RECORD))["number"] == 0)
        used = int(unused[0]) if len(unused) else len(data) // RECORD_BYTES
        return [data[at : at + RECORD_BYTES] for at in range(0, used * RECORD_BYTES, RECORD_BYTES)]


class LedgerStream:
    """Sends a ledger to the witness from a thread, and keepalives while there is none. `error` is why it had to
    stop."""

    def __init__(self, witness: WitnessConnection) -> None:
        self.error: PlinthError | None = None
        self.acknowledged = 0
        """Commits that the witness knows to have been acknowledged."""
        self._witness = witness
        self._tails: list[LedgerTail] = []
        self._has_tails = threading.Event()
        self._ending = threading.Event()
        self._end: LoadEnd = "load failed"
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.finish("load failed")
        for tail in self._tails:
            tail.close()

    def follow(self, folder: Path, threads: int) -> None:
        """Follow the files of the folder, which may be removed afterwards. Raises RunError when the engine has not begun to write there."""
        tails = [LedgerTail(folder / f"{thread}.ledger") for thread in range(threads)]
        deadline = time.monotonic() + _HEADER_TIMEOUT_S
        while any(tail.header() is None for tail in tails):
            if time.monotonic() > deadline:
                raise RunError("the load engine has not begun its ledger", where=str(folder))
            cancel.sleep(_TICK_S)
        for thread, tail in enumerate(tails):
            header_of(tail.header() or b"", f"{thread}.ledger")
        self._tails = tails
        self._has_tails.set()

    def finish(self, end: LoadEnd) -> None:
        """Send, once the engine has stopped writing, the rest, and how the load has ended. Done once; later calls only
        wait."""
        if not self._ending.is_set():
            self._end = end
            self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._send()
        except PlinthError as error:
            self.error = error
        finally:
            self._witness.close()

    def _send(self) -> None:
        has_headers = False
        last_sent = time.monotonic()
        while True:
            is_ending = self._ending.is_set()
            if self._has_tails.is_set() and not has_headers:
                self._send_headers()
                has_headers = True
            if has_headers and self._send_changes(is_ending):
                last_sent = time.monotonic()
                continue
            if is_ending:
                break
            if time.monotonic() - last_sent >= _SIGN_OF_LIFE_S:
                self._witness.send(Kind.RECORDS, THREAD.pack(0))
                last_sent = time.monotonic()
            self._ending.wait(_TICK_S)
        if has_headers:
            self._send_headers()  # which say by now that the load has ended
        self._witness.send(Kind.ENDED, Ended(end=self._end).model_dump_json().encode())

    def _send_headers(self) -> None:
        for thread, tail in enumerate(self._tails):
            self._witness.send(Kind.HEADER, THREAD.pack(thread) + (tail.header() or b""))

    def _send_changes(self, is_ending: bool) -> int:
        sent = 0
        for thread, tail in enumerate(self._tails):
            changes = list(tail.changes(is_ended=is_ending))
            if changes:
                rows = b"".join(_INDEX.pack(index) + record for index, record in changes)
                self._witness.send(Kind.RECORDS, THREAD.pack(thread) + rows)
                self.acknowledged += sum(record[28] == _ACKNOWLEDGED for _, record in changes)
                sent += len(changes)
        return sent


def _is_answered(record: bytes) -> bool:
    _, _, answered_ns, _, commit_class = _RECORD.unpack(record)
    return commit_class != 0 and answered_ns != 0
