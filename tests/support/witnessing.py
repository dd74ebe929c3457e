"""A witness in a thread of the test, and peers of it that send what they like."""

import json
import socket
import struct
import threading
from pathlib import Path
from typing import Any

from plinth.model.errors import Interrupted
from plinth.model.witness import Hello, TestedServer
from plinth.system import cancel
from plinth.witness.credentials import connect_to_witness, witness_credentials
from plinth.witness.protocol import Kind, Link, Message
from plinth.witness.rounds import WitnessFolder
from plinth.witness.server import listening, serving

SERVER = TestedServer(
    system_identifier="7123456789012345678",
    database="plinth",
    database_oid=16384,
    schema_name="public",
    version="18.0",
    started_unix_us=1,
    began_unix_us=2,
    boot_id=None,
    settings={},
)


class WitnessHere:
    """Serves a folder on the loopback from its beginning to its end; `said` has the lines that it says."""

    def __init__(self, path: Path, silence_s: float = 20.0, max_round_bytes: int = 2**20) -> None:
        self.folder = WitnessFolder.made(path)
        self.credentials = witness_credentials(path, None, None)
        self.said: list[str] = []
        self._options = {"silence_s": silence_s, "max_round_bytes": max_round_bytes}
        self._listener = listening("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "WitnessHere":
        self._thread.start()
        assert self._is_ready.wait(20)
        return self

    def __exit__(self, *raised: object) -> None:
        self._token.cancel(Interrupted("the test is over"))
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            with cancel.scope() as self._token:
                with serving(
                    self.folder.path, self.credentials, self._listener, self.said.append, **self._options
                ) as witness:
                    self._witness = witness
                    self._is_ready.set()
                    witness.wait(lambda _: None)
        except Interrupted:
            return

    def is_free(self) -> bool:
        """Whether it would take another load."""
        return not self._witness._is_busy.locked()

    def plain(self) -> socket.socket:
        """A connection without TLS."""
        return socket.create_connection(("127.0.0.1", self.port), 20)

    def connect(self) -> Link:
        """A connection to which nothing was said yet."""
        return connect_to_witness("127.0.0.1", self.port, self.credentials.fingerprint, 20)

    def hello(self, **changes: Any) -> bytes:
        """The first message of a load of 4 clients and 2 threads."""
        whole = {"protocol": 1, "token": self.credentials.token, "plinth_version": "0", "clients": 4, "threads": 2}
        return Hello.model_validate(whole | {"server": SERVER} | changes).model_dump_json().encode()

    def load(self, **changes: Any) -> Link:
        """A connection whose round has begun."""
        connection = self.connect()
        answer = asked(connection, Kind.HELLO, self.hello(**changes))
        assert answer.kind is Kind.WELCOME, answer
        return connection

    def followed(self, **changes: Any) -> Link:
        """One that has sent its headers, too."""
        connection = self.load(**changes)
        for thread in range(2):
            assert asked(connection, Kind.HEADER, header(thread)).kind is Kind.ACK
        return connection


def asked(link: Link, kind: Kind, payload: bytes = b"") -> Message:
    """The answer to a message."""
    link.send(kind, payload)
    return answered(link)


def answered(link: Link) -> Message:
    return link.receive(2**16, 20)


def header(thread: int, of: int | None = None, threads: int = 2, magic: bytes = b"PLINTHLG") -> bytes:
    """The payload of HEADER: for `thread`, saying that it is of thread `of`."""
    own = thread if of is None else of
    body = struct.pack("<8sIIIIB3xIQQ16x", magic, 1, 64, 32, own, 0, threads, 5, 6)
    return struct.pack("<I", thread) + body


def record(index: int, client: int, number: int, commit_class: int = 0, answered_ns: int | None = None) -> bytes:
    """One record of RECORDS."""
    answered = (20 if commit_class else 0) if answered_ns is None else answered_ns
    return struct.pack("<QQQQIB3x", index, number, 10, answered, client, commit_class)


def records(thread: int, *rows: bytes) -> bytes:
    """The payload of RECORDS."""
    return struct.pack("<I", thread) + b"".join(rows)


def round_json(folder: Path, number: int = 1) -> dict[str, Any]:
    return json.loads((folder / f"{number:04}" / "round.json").read_text())
