"""The folder of a witness: its rounds, each with the ledger of a load and the result of the comparison after the
restart.

NNNN/round.json       WitnessRound
NNNN/THREAD.ledger    the load's ledger (docs/internals/ledger.md), as far as the witness received it
NNNN/verified.json    VerifiedRound, once it was compared
"""

import os
import re
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from plinth.bundle import BundleFolder
from plinth.model.commit_ledger import COMMIT_CLASSES
from plinth.model.errors import MissingCapability, Refused, RunError, UsageError
from plinth.model.witness import POSSIBLE_CUTS, Hello, RoundEnd, VerifiedRound, WitnessRound
from plinth.system.failures import from_os_error
from plinth.system.framed_tls import ProtocolError, first_mistake
from plinth.system.lock import DirectoryLock, is_locked
from plinth.system.paths import sync_folder
from plinth.witness.protocol import INDEXED_BYTES, THREAD
from plinth.workload.commit_ledger import (
    HEADER_BYTES,
    RECORD,
    RECORD_BYTES,
    CommitLedger,
    header_of,
    read_commit_ledger,
)

if TYPE_CHECKING:
    import numpy as np

_ROUND = re.compile(r"[0-9]{4,}")
_MAX_JSON_BYTES = 16 * 2**20
_Model = TypeVar("_Model", WitnessRound, VerifiedRound)


class WitnessFolder:
    """The folder of a witness. Raises PlinthError for what cannot be read or written."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError when there is no such folder."""
        if not path.is_dir():
            raise UsageError(
                "there is no such folder", where=str(path), hint="`plinth durability witness DIR` makes it"
            )
        self.path = path
        self._files = BundleFolder(path, "the witness's folder")

    @classmethod
    def made(cls, path: Path) -> "WitnessFolder":
        """Return the folder, made when it is missing, closed to other users."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise from_os_error(error, "make the witness's folder", path) from error
        return cls(path)

    def is_running(self, one: WitnessRound) -> bool:
        """Return whether a witness is receiving the load of a round now."""
        folder = self._files.folder(_name(one.number))
        try:
            return one.ended_unix_ns is None and is_locked(folder.descriptor)
        finally:
            folder.close()

    def rounds(self) -> list[WitnessRound]:
        """Return all rounds, in their order."""
        names = [entry.name for entry in self._files.entries() if entry.is_folder and _ROUND.fullmatch(entry.name)]
        found = (self._read(name, "round.json", WitnessRound) for name in sorted(names, key=int))
        return [one for one in found if one is not None]

    def verified(self, number: int) -> VerifiedRound | None:
        """Return the result of a round; None when it was not compared yet."""
        return self._read(_name(number), "verified.json", VerifiedRound)

    def write_verified(self, found: VerifiedRound) -> None:
        """Write the result of a round."""
        self._files.write_durably(f"{_name(found.number)}/verified.json", found.model_dump_json(indent=1))

    def ledger(self, of: WitnessRound) -> CommitLedger | None:
        """Return the ledger of a round; None when the witness received no transaction."""
        name = _name(of.number)
        # All are checked, so that only regular files are read below.
        sizes = [self._bytes(entry.name) for entry in self._files.entries(name) if entry.name.endswith(".ledger")]
        if all(size <= HEADER_BYTES for size in sizes):
            return None
        ledger = read_commit_ledger(self.path / name)
        if len(ledger.records) and ledger.records["client"].max() >= of.clients:
            raise RunError(
                f"the ledger has a client {ledger.records['client'].max()}, and round.json says that there were {of.clients}",
                where=str(self.path / name),
                hint="one of these files is not what the witness wrote",
            )
        return replace(ledger, begins_of_clients=of.clients)

    def begin(self, hello: Hello, peer: str, max_bytes: int) -> "RoundWriter":
        """Begin a new round. Refused while the last one, in which the power may have been cut, was not compared with
        the database: a new load empties its tables."""
        rounds = self.rounds()
        if rounds and self.is_unverified(rounds[-1]):
            raise Refused(
                f"round {rounds[-1].number} was not verified yet, and a new load would empty its tables",
                where=str(self.path),
                hint="on the witness: plinth durability verify DIR; or delete the round's folder there, to forget it",
            )
        taken = [int(entry.name) for entry in self._files.entries() if _ROUND.fullmatch(entry.name)]
        begun = WitnessRound(
            number=max(taken, default=0) + 1,
            round_id=secrets.token_hex(16),
            peer=peer,
            plinth_version=hello.plinth_version,
            clients=hello.clients,
            threads=hello.threads,
            server=hello.server,
            started_unix_ns=time.time_ns(),
        )
        name = _name(begun.number)
        self._files.make_folder(name)
        try:
            self._files.write_durably(f"{name}/round.json", begun.model_dump_json(indent=1))
            _sync_names(self.path)
            return RoundWriter(self.path / name, self._files, begun, max_bytes)
        except BaseException:
            self._files.remove_tree(name)  # a round that has not begun, and takes room on a disk that may be full
            raise

    def is_unverified(self, last: WitnessRound) -> bool:
        """Return whether the power may have been cut in a round that was not compared yet."""
        return last.end in POSSIBLE_CUTS and self.verified(last.number) is None and self.ledger(last) is not None

    def _bytes(self, name: str) -> int:
        """Return the size of a file. Raises RunError for what is no regular file."""
        with self._files.opened(name) as descriptor:
            return os.fstat(descriptor).st_size

    def _read(self, folder: str, file: str, model: type[_Model]) -> _Model | None:
        name = f"{folder}/{file}"
        if self._files.entry(name) is None:
            return None
        try:
            found = model.model_validate_json(self._files.read_bytes(name, _MAX_JSON_BYTES))
        except ValidationError as error:
            raise RunError(
                f"this is not what a witness writes: {first_mistake(error)}",
                where=str(self.path / name),
                hint="read it with the version of Plinth that wrote it",
            ) from error
        if found.number != int(folder):
            raise RunError(
                f"this says that it is of round {found.number}, but it is in the folder of round {int(folder)}",
                where=str(self.path / name),
                hint="a round's folder keeps its name: number and files belong together",
            )
        return found


class RoundWriter:
    """Writes the ledger of a round, durably, from messages of a peer that may send anything."""

    def __init__(self, folder: Path, files: BundleFolder, begun: WitnessRound, max_bytes: int) -> None:
        self.round = begun
        self.acknowledged = 0
        """The number of commits received."""
        self._folder = folder
        self._files = files
        self._left_bytes = max_bytes
        self._lock = DirectoryLock(folder).acquire()
        self._threads: dict[int, int] = {}
        self._used: dict[int, int] = {}

    def header(self, payload: bytes) -> None:
        """Write the header of a thread's file. Raises ProtocolError, and RunError for a disk that cannot take it."""
        thread = self._thread(payload)
        body = payload[THREAD.size :]
        if len(body) != HEADER_BYTES:
            raise ProtocolError(f"the header of a ledger has {len(body)} bytes, not {HEADER_BYTES}")
        header = header_of(body, f"the header of thread {thread}")
        if (int(header["thread"]), int(header["threads"])) != (thread, self.round.threads):
            raise ProtocolError(f"the header of thread {thread} is that of another")
        if thread not in self._threads:
            self._make_file(thread)
            self._used[thread] = 0
        self._write(thread, 0, body)
        self._sync(thread)

    def records(self, payload: bytes) -> None:
        """Write records of a thread, new or completed ones; an empty message is a keepalive. Raises as `header`."""
        import numpy as np

        thread = self._thread(payload)
        body = payload[THREAD.size :]
        if not body:
            return
        if len(body) % INDEXED_BYTES:
            raise ProtocolError("a message ends within a record")
        if len(self._threads) < self.round.threads:
            raise ProtocolError("records came before the headers of all threads")
        rows = np.frombuffer(body, np.dtype([("index", "<u8"), *RECORD]))
        self._check(rows, self._used[thread])
        new = int((rows["index"] >= self._used[thread]).sum())
        if new * RECORD_BYTES > self._left_bytes:
            raise MissingCapability(
                "the ledger of the round is larger than the witness allows",
                where="--max-size",
                hint="pull the plug earlier, or start the witness with a larger --max-size",
            )
        breaks = np.flatnonzero(np.diff(rows["index"].astype(np.int64)) != 1) + 1
        parts = np.frombuffer(body, np.uint8).reshape(-1, INDEXED_BYTES)
        for part, indexes in zip(np.split(parts, breaks), np.split(rows["index"], breaks), strict=True):
            self._write(thread, HEADER_BYTES + int(indexes[0]) * RECORD_BYTES, part[:, 8:].tobytes())
        self._sync(thread)
        self._left_bytes -= new * RECORD_BYTES
        self._used[thread] += new
        self.acknowledged += int((rows["class"] == COMMIT_CLASSES.index("acknowledged")).sum())

    def end(self, how: RoundEnd) -> None:
        """Write the end of the round."""
        for descriptor in self._threads.values():
            os.close(descriptor)
        self._threads.clear()
        self.round = self.round.model_copy(update={"ended_unix_ns": time.time_ns(), "end": how})
        try:
            self._files.write_durably(f"{_name(self.round.number)}/round.json", self.round.model_dump_json(indent=1))
        finally:
            self._lock.release()

    def _thread(self, payload: bytes) -> int:
        if len(payload) < THREAD.size:
            raise ProtocolError("a message ends before the number of its thread")
        (thread,) = THREAD.unpack_from(payload)
        if thread >= self.round.threads:
            raise ProtocolError(f"there is no thread {thread}; the load has {self.round.threads}")
        return thread

    def _check(self, rows: "np.ndarray", used: int) -> None:
        new = rows["index"][rows["index"] >= used]
        if (new != used + _arange(len(new))).any():
            raise ProtocolError(f"records from {used} on do not follow one another")
        if (rows["number"] == 0).any() or (rows["number"] >= 2**63).any():
            raise ProtocolError("the number of a transaction is not from 1 to 2^63 - 1")
        if (rows["class"] >= len(COMMIT_CLASSES)).any():
            raise ProtocolError(
                f"the class of a record is {rows['class'].max()}; there are 0 to {len(COMMIT_CLASSES) - 1}"
            )
        if (rows["client"] >= self.round.clients).any():
            raise ProtocolError(f"there is no client {rows['client'].max()}; the load has {self.round.clients}")

    def _make_file(self, thread: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        path = self._folder / f"{thread}.ledger"
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise from_os_error(error, "make the ledger", path) from error
        self._threads[thread] = descriptor
        _sync_names(self._folder)

    def _write(self, thread: int, offset: int, data: bytes) -> None:
        try:
            while data:  # a disk that is nearly full takes a part
                written = os.pwrite(self._threads[thread], data, offset)
                offset, data = offset + written, data[written:]
        except OSError as error:
            raise from_os_error(error, "write the ledger", self._folder / f"{thread}.ledger") from error

    def _sync(self, thread: int) -> None:
        try:
            os.fdatasync(self._threads[thread])
        except OSError as error:
            raise from_os_error(error, "flush the ledger", self._folder / f"{thread}.ledger") from error


def _sync_names(folder: Path) -> None:
    try:
        sync_folder(folder)
    except OSError as error:
        raise from_os_error(error, "flush the names in the folder", folder) from error


def _arange(count: int) -> "np.ndarray":
    import numpy as np

    return np.arange(count, dtype=np.uint64)


def _name(number: int) -> str:
    return f"{number:04}"
