"""Frames over a connection to another process or machine, in TLS where it crosses a network.

A frame is a head of numbers, of which the last ones are the lengths of the parts that follow. What the other side sends is not
trusted: a frame longer than its limit is refused before it is read, a message is validated before it is used, and no wait is without
a deadline. All waits end when the work is cancelled.

Both sides know each other's certificate beforehand, or its fingerprint: no authority, host name or clock decides who is trusted.
"""

import hashlib
import json
import os
import re
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from plinth.common.untrusted import check_json, validate_strictly
from plinth.model.errors import RunError
from plinth.system import cancel
from plinth.system.certificates import Identity

_PIECE_BYTES = 256 * 1024
_MOST = 2**64
"""Above every count and every time in ns: what is computed from smaller numbers stays a number."""
_UNUSUAL_NUMBER = re.compile(rb"[0-9]{19}|[Ee][+]?[0-9]{2}|NaN|Infinity")
"""In the text of a message that may hold an impossible number; some texts hold it, too."""
_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL: a certificate that is known needs no clock to be trusted."""
_NO_HANDSHAKE = "there is no TLS with the other side"
_Model = TypeVar("_Model", bound=BaseModel)
_Result = TypeVar("_Result")


class Disconnected(RunError):
    """The connection has ended."""


class PeerTimeout(RunError):
    """The other side did not send or take a whole frame in time."""


class ProtocolError(RunError):
    """The other side sent something invalid, or something that is not allowed at this point."""


class Framing(NamedTuple):
    """The head of a protocol's frames, whose last `parts` numbers are lengths. `send_timeout_s` limits how long sending one takes."""

    head: struct.Struct
    parts: int
    send_timeout_s: float


class Frame(NamedTuple):
    """One message: the other numbers of its head, and its parts."""

    numbers: tuple[int, ...]
    parts: tuple[bytes, ...]


class FramedConnection:
    """Sends and receives frames over a connected socket, which it owns. One thread may send while another receives.

    `messages`, `sent_bytes` and `received_bytes` count what passed.
    """

    def __init__(self, connection: socket.socket, framing: Framing) -> None:
        self.socket = connection
        self.socket.setblocking(False)
        self._framing = framing
        self._received = bytearray()
        # A session of OpenSSL may be used by one thread at a time, and no call waits for the other side.
        self._using = threading.Lock()
        self.messages = 0
        self.sent_bytes = 0
        self.received_bytes = 0

    def send_frame(self, numbers: Sequence[int], parts: Sequence[bytes]) -> None:
        """Send a frame. Raises Disconnected, PeerTimeout."""
        left = memoryview(b"".join((self._framing.head.pack(*numbers, *map(len, parts)), *parts)))
        self.messages += 1
        self.sent_bytes += len(left)
        deadline = time.monotonic() + self._framing.send_timeout_s
        while left:
            left = left[_when_ready(self.socket, partial(self._send_some, left), select.POLLOUT, deadline) :]

    def receive_frame(self, limits: Sequence[int], timeout_s: float) -> Frame:
        """Receive the next frame, whose parts have at most `limits` bytes. Raises Disconnected, PeerTimeout, ProtocolError."""
        deadline = time.monotonic() + timeout_s
        while (frame := self._whole_frame(limits)) is None:
            piece = _when_ready(self.socket, self._receive_some, select.POLLIN, deadline)
            if not piece:
                raise Disconnected("the connection has ended")
            self.received_bytes += len(piece)
            self._received += piece
        self.messages += 1
        return frame

    def _send_some(self, data: memoryview) -> int:
        with self._using:
            return self.socket.send(data)

    def _receive_some(self) -> bytes:
        with self._using:
            return self.socket.recv(_PIECE_BYTES)

    def check_head(self, numbers: tuple[int, ...]) -> None:
        """Raise ProtocolError if no frame begins with these numbers, before the frame is read. Any do, unless a protocol says more."""

    def unread(self, most_bytes: int) -> bytes:
        """Return the beginning of what was received and is no frame."""
        return bytes(self._received[:most_bytes])

    def close(self) -> None:
        """End the connection."""
        self.socket.close()

    def _whole_frame(self, limits: Sequence[int]) -> Frame | None:
        head, count = self._framing.head, self._framing.parts
        if len(self._received) < head.size:
            return None
        fields = head.unpack_from(self._received)
        numbers, lengths = fields[:-count], fields[-count:]
        self.check_head(numbers)
        if any(length > limit for length, limit in zip(lengths, limits, strict=True)):
            sizes = " and ".join(f"{length:,}" for length in lengths)
            allowed = " and ".join(f"{limit:,}" for limit in limits)
            raise ProtocolError(f"a message has {sizes} bytes; at most {allowed} are allowed here")
        if len(self._received) < head.size + sum(lengths):
            return None
        parts, at = [], head.size
        for length in lengths:
            parts.append(bytes(self._received[at : at + length]))
            at += length
        del self._received[:at]
        return Frame(numbers, tuple(parts))


def parsed(model: type[_Model], document: bytes) -> _Model:
    """Parse the JSON of a message, strictly. Raises ProtocolError, whose text does not cite the message, which may hold secrets."""
    try:
        text = document.decode()
        check_json(text)
        message = validate_strictly(model, text)
        if _UNUSUAL_NUMBER.search(document):
            _check_numbers(message.model_dump())
        return message
    except RecursionError:
        raise ProtocolError("a message is not what it has to be: it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ProtocolError("a message is not what it has to be: it is no text in UTF-8") from None
    except ValidationError as error:
        raise ProtocolError(f"a message is not what it has to be: {first_mistake(error)}") from None
    except json.JSONDecodeError as error:  # whose text cites nothing
        raise ProtocolError(f"a message is not what it has to be: it is no JSON: {error}") from None
    except ValueError as error:
        raise ProtocolError(f"a message is not what it has to be: {error}") from None


def first_mistake(error: ValidationError) -> str:
    """Return the place and the reason of the first validation error, without the value."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, found["loc"]))
    return f"{place}: {found['msg']}" if place else found["msg"]


def tls_context(
    side: Literal["client", "server"], own: Identity | None = None, peer: str | None = None
) -> ssl.SSLContext:
    """Make the context of connections by TLS 1.3 which show the certificate of `own` and require that of `peer`, in PEM.

    Without `peer` any certificate, or none, is taken: the caller compares the fingerprint, or asks for a token.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if side == "client" else ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE if peer is None else ssl.CERT_REQUIRED
    context.verify_flags |= _NO_CHECK_TIME
    if peer is not None:
        context.load_verify_locations(cadata=peer)
    if own is not None:
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)  # ssl reads keys from files only
        try:
            os.write(descriptor, f"{own.certificate}\n{own.key}".encode())
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
    return context


def connect_tls(host: str, port: int, context: ssl.SSLContext, timeout_s: float) -> ssl.SSLSocket:
    """Connect within `timeout_s`, as long again for the handshake. Raises OSError without a connection, RunError without TLS."""
    return secured(socket.create_connection((host, port), timeout_s), context, timeout_s)


def secured(
    plain: socket.socket, context: ssl.SSLContext, timeout_s: float, *, as_server: bool = False
) -> ssl.SSLSocket:
    """Begin TLS on a connection, which is closed if that fails. Raises Disconnected, PeerTimeout."""
    with plain:  # wrap_socket has taken its descriptor unless it fails
        plain.setblocking(False)
        try:
            connection = context.wrap_socket(plain, server_side=as_server, do_handshake_on_connect=False)
        except (OSError, ValueError) as error:
            raise Disconnected(f"{_NO_HANDSHAKE}: {error}") from error
    try:
        deadline = time.monotonic() + timeout_s
        _when_ready(connection, connection.do_handshake, select.POLLIN, deadline, _NO_HANDSHAKE)
    except BaseException:
        connection.close()
        raise
    return connection


def peer_fingerprint(connection: ssl.SSLSocket) -> str:
    """Return the SHA-256 of the certificate in DER that the other side has shown, as `openssl x509 -fingerprint` prints it."""
    return fingerprint_of(connection.getpeercert(binary_form=True) or b"")


def fingerprint_of(der: bytes) -> str:
    """Return the SHA-256 of a certificate."""
    return "sha256:" + hashlib.sha256(der).hexdigest()


def _when_ready(
    connection: socket.socket,
    act: Callable[[], _Result],
    event: int,
    deadline: float,
    failure: str = "the connection has ended",
) -> _Result:
    """Return what `act` returns once the socket is ready for it. Raises Disconnected, PeerTimeout."""
    while True:
        try:
            return act()
        except ssl.SSLWantReadError:
            wanted = select.POLLIN
        except ssl.SSLWantWriteError:
            wanted = select.POLLOUT
        except BlockingIOError:
            wanted = event
        except (OSError, ValueError) as error:  # ValueError: another thread has closed the TLS session
            raise Disconnected(f"{failure}: {getattr(error, 'strerror', None) or error}") from error
        left_s = deadline - time.monotonic()
        if left_s <= 0 or (not cancel.poll({connection.fileno(): wanted}, left_s) and time.monotonic() >= deadline):
            raise PeerTimeout(
                "nothing came in time" if event == select.POLLIN else "the other side takes nothing any more"
            )


def _check_numbers(value: object, place: str = "") -> None:
    """Raise ProtocolError, with its place, for a number that is infinite, none at all, or too large to compute with."""
    if isinstance(value, int | float) and not -_MOST < value < _MOST:  # of nan, too
        raise ProtocolError(f"a message is not what it has to be: {place}: a number that no load has")
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, one in parts:
        _check_numbers(one, f"{place}.{name}" if place else str(name))
