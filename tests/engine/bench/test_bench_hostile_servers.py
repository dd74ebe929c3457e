"""What answers on the port may be no PostgreSQL, or one that means harm: `plinth bench` ends with a sentence."""

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

HARM = b"\x1b]0;title\x07\x1b[31m\xe2\x80\xae"
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
Answer = Callable[[bytes], bytes]


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


READY = message(b"Z", b"I")
ERROR = message(b"E", b"SERROR\0VERROR\0C42P01\0M" + HARM + b"\0\0") + READY
ROW = (
    message(b"T", struct.pack("!h", 1) + b"x\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0))
    + message(b"D", struct.pack("!hi", 1, len(HARM)) + HARM)
    + message(b"C", b"SELECT 1\0")
    + READY
)


def greeting(version: bytes) -> bytes:
    status = {b"server_version": version, b"server_encoding": b"UTF8", b"client_encoding": b"UTF8"}
    parameters = b"".join(message(b"S", name + b"\0" + value + b"\0") for name, value in status.items())
    return message(b"R", struct.pack("!i", 0)) + parameters + message(b"K", struct.pack("!ii", 1, 1)) + READY


@contextmanager
def answering(greets: bytes, answer: bytes) -> Iterator[int]:
    """The port of a server that greets each client, and gives the same answer to any request."""

    def serve(client: socket.socket) -> None:
        with closing(client), suppress(OSError, struct.error):  # the client has left
            while True:
                length, code = struct.unpack("!ii", client.recv(8, socket.MSG_WAITALL))
                if code not in (SSL_REQUEST, GSS_REQUEST):
                    break
                client.sendall(b"N")
            client.recv(length - 8, socket.MSG_WAITALL)
            client.sendall(greets)
            while answer and client.recv(10_000):
                client.sendall(answer)

    def accept() -> None:
        with suppress(OSError):  # of the listener, which the test closes
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("greets", "answer", "says", "builtin"),
    [
        (greeting(HARM), ERROR, r"\x1b]0;title\x07\x1b[31m\u202e", "select-only"),
        (greeting(b"18.1"), ROW, "did not answer a query of the catalog as PostgreSQL does", "select-only"),
        (greeting(b"18.1"), ROW, "there is no table", "tpcc"),
        (b"E" + struct.pack("!i", 2**31 - 1) + HARM, b"", "failed", "select-only"),
        (message(b"R", struct.pack("!i", 0))[:-5], b"", "failed", "select-only"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", "expected authentication request from server", "select-only"),
        (b"", b"", "server closed the connection unexpectedly", "select-only"),
    ],
    ids=["controls", "rows of another form", "tpcc", "endless message", "cut short", "http", "closed"],
)
def test_what_is_no_postgresql_ends_with_a_sentence(greets: bytes, answer: bytes, says: str, builtin: str) -> None:
    with answering(greets, answer) as port:
        place = f"host=127.0.0.1 port={port} user=u dbname=d password=hushed"
        words = [sys.executable, "-m", "plinth", "bench", "-b", builtin, "-t", "1", "-n", place]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert says in done.stderr
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed and "hushed" not in printed
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
