"""One end of the connection between a coordinator and an agent: frames over a socket."""

import select
import socket
import time
from typing import NamedTuple

from plinth.fleet.protocol import HEAD, MAX_BINARY_BYTES, MAX_JSON_BYTES, ProtocolError
from plinth.model.errors import RunError
from plinth.system import cancel

_SEND_TIMEOUT_S = 30.0
_PIECE_BYTES = 256 * 1024


class Lost(RunError):
    """The connection has ended."""


class Silent(RunError):
    """No whole frame came in time."""


class Frame(NamedTuple):
    """One message: a JSON document and bytes."""

    document: bytes
    binary: bytes


class Link:
    """Frames over a connected socket, which it owns. `messages`, `sent_bytes` and `received_bytes` count what passed."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._received = bytearray()
        self.messages = 0
        self.sent_bytes = 0
        self.received_bytes = 0

    def send(self, document: bytes, binary: bytes = b"") -> None:
        """Send a frame. Raises Lost, Silent when the other side takes nothing any more."""
        left = memoryview(HEAD.pack(len(document), len(binary)) + document + binary)
        self.messages += 1
        self.sent_bytes += len(left)
        deadline = time.monotonic() + _SEND_TIMEOUT_S
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
            except OSError as error:
                raise Lost(f"the connection has ended: {error.strerror}") from error

    def receive(self, timeout_s: float) -> Frame:
        """Receive the next frame. Raises Lost, Silent, ProtocolError."""
        deadline = time.monotonic() + timeout_s
        while (frame := self._whole_frame()) is None:
            try:
                piece = self._socket.recv(_PIECE_BYTES)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError as error:
                raise Lost(f"the connection has ended: {error.strerror}") from error
            if not piece:
                raise Lost("the connection has ended")
            self.received_bytes += len(piece)
            self._received += piece
        self.messages += 1
        return frame

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _whole_frame(self) -> Frame | None:
        if len(self._received) < HEAD.size:
            return None
        length, binary_length = HEAD.unpack_from(self._received)
        if length > MAX_JSON_BYTES or binary_length > MAX_BINARY_BYTES:
            raise ProtocolError(f"a message has {length:,} and {binary_length:,} bytes, more than any may have")
        end = HEAD.size + length + binary_length
        if len(self._received) < end:
            return None
        document = bytes(self._received[HEAD.size : HEAD.size + length])
        binary = bytes(self._received[HEAD.size + length : end])
        del self._received[:end]
        return Frame(document, binary)

    def _wait(self, event: int, deadline: float) -> None:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or (not cancel.poll({self._socket.fileno(): event}, left_s) and time.monotonic() >= deadline):
            raise Silent("nothing came in time")
