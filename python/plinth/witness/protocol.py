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
import time
from enum import IntEnum
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from plinth.model.errors import RunError
from plinth.workload.commit_ledger import HEADER_BYTES, RECORD_BYTES

MAX_HELLO_BYTES = 16 * 1024
MAX_RECORDS = 16 * 1024
INDEXED_BYTES = 8 + RECORD_BYTES
MAX_FRAME_BYTES = 4 + MAX_RECORDS * INDEXED_BYTES
HELLO_TIMEOUT_S = 10.0
"""The time from the connection's beginning to the end of HELLO."""
SEND_TIMEOUT_S = 10.0
_HEAD = struct.Struct("<BI")
THREAD = struct.Struct("<I")
assert MAX_FRAME_BYTES > 4 + HEADER_BYTES
_Model = TypeVar("_Model", bound=BaseModel)


class Kind(IntEnum):
    """The kind of a frame."""

    HELLO = 1
    WELCOME = 2
    HEADER = 3
    RECORDS = 4
    ACK = 5
    ENDED = 6
    REFUSED = 7


class Frame(NamedTuple):
    """One message."""

    kind: Kind
    payload: bytes


class Disconnected(RunError):
    """The connection has ended."""


class PeerTimeout(RunError):
    """No whole frame arrived within the timeout."""


class ProtocolError(RunError):
    """The peer sent an invalid message, or one that is not allowed at this point."""


def send_frame(connection: socket.socket, kind: Kind, payload: bytes = b"") -> None:
    """Send a message. Raises Disconnected, PeerTimeout."""
    try:
        connection.settimeout(SEND_TIMEOUT_S)
        connection.sendall(_HEAD.pack(kind, len(payload)) + payload)
    except TimeoutError as error:
        raise PeerTimeout("the other side takes nothing any more") from error
    except (OSError, ValueError) as error:  # ValueError: the other direction has closed the TLS session
        raise Disconnected(f"the connection has ended: {error}") from error


def receive_frame(connection: socket.socket, *, max_bytes: int, timeout_s: float) -> Frame:
    """Receive the next message, of at most `max_bytes`, within `timeout_s`.

    Raises Disconnected, PeerTimeout, ProtocolError.
    """
    deadline = time.monotonic() + timeout_s
    kind, length = _HEAD.unpack(_receive(connection, _HEAD.size, deadline))
    if kind not in Kind.__members__.values():
        raise ProtocolError(f"there is no message of the kind {kind}")
    if length > max_bytes:
        raise ProtocolError(f"a message has {length:,} bytes; {max_bytes:,} are allowed here")
    return Frame(Kind(kind), _receive(connection, length, deadline))


def parsed(model: type[_Model], payload: bytes) -> _Model:
    """Parse the JSON of a message. Raises ProtocolError, whose text does not cite the message."""
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        raise ProtocolError(f"a message is not what it has to be: {first_mistake(error)}") from None


def first_mistake(error: ValidationError) -> str:
    """The first validation error: its place and reason, without the value."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, found["loc"]))
    return f"{place}: {found['msg']}" if place else found["msg"]


def _receive(connection: socket.socket, count: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < count:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise PeerTimeout("nothing came in time")
        connection.settimeout(left_s)
        try:
            part = connection.recv(min(count - len(received), 64 * 1024))
        except TimeoutError as error:
            raise PeerTimeout("nothing came in time") from error
        except (OSError, ValueError) as error:
            raise Disconnected(f"the connection has ended: {error}") from error
        if not part:
            raise Disconnected("the connection has ended")
        received += part
    return bytes(received)
