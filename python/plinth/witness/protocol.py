"""The messages between a load and its witness: frames of a kind, a length and that many bytes, within TLS.

    kind     u8
    length   u32, little-endian
    payload  as many bytes

The load sends HELLO (JSON of `Hello`) and gets WELCOME (JSON of `Welcome`). Then come, each answered by an empty ACK once what it
brought is durable: HEADER (thread u32, the 64 bytes of a ledger's header), RECORDS (thread u32, then of each record its index u64
and its 32 bytes; none is a keepalive) and ENDED (JSON of `Ended`). The witness may answer anything with REFUSED, the
reason in UTF-8, and closes the connection.
"""

import socket
import struct
from enum import IntEnum
from typing import NamedTuple

from plinth.system.framed_tls import FramedConnection, Framing, ProtocolError
from plinth.workload.commit_ledger import HEADER_BYTES, RECORD_BYTES

MAX_HELLO_BYTES = 16 * 1024
MAX_RECORDS = 16 * 1024
INDEXED_BYTES = 8 + RECORD_BYTES
MAX_FRAME_BYTES = 4 + MAX_RECORDS * INDEXED_BYTES
HELLO_TIMEOUT_S = 10.0
"""The time from the connection's beginning to the end of HELLO."""
THREAD = struct.Struct("<I")
_FRAMING = Framing(struct.Struct("<BI"), parts=1, send_timeout_s=10.0)
assert MAX_FRAME_BYTES > 4 + HEADER_BYTES


class Kind(IntEnum):
    """The kind of a message."""

    HELLO = 1
    WELCOME = 2
    HEADER = 3
    RECORDS = 4
    ACK = 5
    ENDED = 6
    REFUSED = 7


class Message(NamedTuple):
    """One message."""

    kind: Kind
    payload: bytes


class Link(FramedConnection):
    """One end of the connection between a load and its witness."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, _FRAMING)

    def send(self, kind: Kind, payload: bytes = b"") -> None:
        """Send a message. Raises Disconnected, PeerTimeout."""
        self.send_frame((kind,), (payload,))

    def receive(self, max_bytes: int, timeout_s: float) -> Message:
        """Receive the next message, of at most `max_bytes`. Raises Disconnected, PeerTimeout, ProtocolError."""
        frame = self.receive_frame((max_bytes,), timeout_s)
        return Message(Kind(frame.numbers[0]), frame.parts[0])

    def check_head(self, numbers: tuple[int, ...]) -> None:
        """Raise ProtocolError if there is no such kind of message."""
        if numbers[0] not in Kind.__members__.values():
            raise ProtocolError(f"there is no message of the kind {numbers[0]}")
