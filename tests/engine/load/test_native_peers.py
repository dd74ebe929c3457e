"""Servers that break the protocol or the connection: typed errors, and the other clients continue."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from native_server import Finished, Load

READY = b"Z\0\0\0\x05I"
WELCOME = b"R\0\0\0\x08\0\0\0\0" + b"S\0\0\0\x15server_version\x001\0" + READY
ROW = b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0" + READY


def receive_message(peer: socket.socket, header: int) -> bytes:
    """One message: the startup message has no tag, so its header is 4 bytes; of all others 5."""
    start = peer.recv(header, socket.MSG_WAITALL)
    if len(start) < header:
        return b""
    (length,) = struct.unpack("!I", start[-4:])
    return start + peer.recv(length - 4, socket.MSG_WAITALL)


def receive_until_sync(peer: socket.socket) -> bool:
    while message := receive_message(peer, 5):
        if message[:1] == b"S":
            return True
        if message[:1] == b"X":
            return False
    return False


@contextmanager
def fake_server(answers: Callable[[int], Iterator[bytes | None]]) -> Iterator[int]:
    """Answers each connection's queries with `answers(number of the connection)`; None closes it, and so does the end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def converse(peer: socket.socket, number: int) -> None:
        with peer:
            receive_message(peer, 4)
            peer.sendall(WELCOME)
            try:
                for answer in answers(number):
                    if not receive_until_sync(peer) or answer is None:
                        return
                    peer.sendall(answer)
            except ConnectionError:
                return  # the client has had enough of us

    def accept() -> None:
        for number in range(1000):
            try:
                peer, _ = listener.accept()
            except OSError:
                return  # closed: the test is over
            threading.Thread(target=converse, args=(peer, number), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def here(port: int) -> dict[str, object]:
    return {"host": "127.0.0.1", "port": port, "user": "u", "database": "d"}


def forever(answer: bytes) -> Iterator[bytes | None]:
    while True:
        yield answer


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (None, "connection_lost", "closed the connection unexpectedly"),
        (ROW[:20], "connection_lost", "closed the connection unexpectedly"),
        (b"\xff" * 100, "protocol", "unknown message type 0xff"),
        (b"Z\0\0\0\x00", "protocol", "impossible length"),
        (b"HTTP/1.1 400 Bad Request\r\n", "protocol", "impossible length"),
        (READY + READY, "protocol", "no statement was sent"),
        (b"K\0\0\0\x0c" + b"\0" * 8 + READY, "protocol", "unexpected message 'K'"),
        (b"E\0\0\0\x12VFATAL\0Mbye\0\0\0", "connection_lost", "bye"),
    ],
)
def test_one_bad_peer_among_good_ones(
    load: Load, finished: Finished, answer: bytes | None, kind: str, words: str
) -> None:
    def answers(number: int) -> Iterator[bytes | None]:
        if number == 1:
            yield ROW
            yield answer
            if answer == READY + READY:
                yield from forever(ROW)
            return
        yield from forever(ROW)

    with fake_server(answers) as port:
        run = load(here(port), "select 1;\n\\sleep 1 ms\n", clients=3, duration_s=0.5)
        result = finished(run)
    (error,) = result.errors
    assert (error.kind, error.count) == (kind, 1)
    assert words in error.message
    assert result.totals.failed == 1
    assert result.totals.done > 20, "the others continue"


def test_frames_in_single_bytes(load: Load, finished: Finished) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        peer, _ = listener.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with peer:
            receive_message(peer, 4)
            for byte in WELCOME:
                peer.sendall(bytes([byte]))
            while receive_until_sync(peer):
                for byte in ROW:
                    peer.sendall(bytes([byte]))

    thread = threading.Thread(target=serve)
    thread.start()
    result = finished(load(here(listener.getsockname()[1]), "select 1;", transactions_per_client=20))
    thread.join()
    listener.close()
    assert (result.measured.done, result.errors) == (20, ())
