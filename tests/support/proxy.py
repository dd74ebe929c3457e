"""A proxy between a client and a server that does harm: cuts, delays and corrupts what passes."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

_PIECE_BYTES = 65_536


@dataclass(frozen=True)
class Harm:
    """What is done to the bytes from the server (or to those from the client), counted over one connection.

    `after_bytes` pass unharmed. Then comes `kind`: "close" ends the connection, "reset" ends it with RST, "half-close"
    says that nothing more will come and keeps the other direction open, "silence" passes nothing more, "corrupt" changes
    the next byte, "drip" passes the rest byte by byte, `pause_s` apart.
    """

    kind: Literal["close", "reset", "half-close", "silence", "corrupt", "drip"]
    after_bytes: int = 0
    from_server: bool = True
    pause_s: float = 0.0


class Proxy:
    """Listens on its own port, and passes each connection on to the server, harmed."""

    def __init__(self, server_port: int, harm: Harm | None) -> None:
        self.harm = harm
        self.passed_bytes = {True: 0, False: 0}
        """From the server, and from the client, over all connections."""
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.getsockname()[1]

    def close(self) -> None:
        """End every connection, and itself."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in list(self._open):
            _shut(one)
        for thread in self._threads:
            thread.join()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open += [client, server]
            for source, target, from_server in ((server, client, True), (client, server, False)):
                harm = self.harm if self.harm is not None and self.harm.from_server == from_server else None
                thread = threading.Thread(target=self._pass_on, args=(source, target, from_server, harm))
                thread.start()
                self._threads.append(thread)

    def _pass_on(self, source: socket.socket, target: socket.socket, from_server: bool, harm: Harm | None) -> None:
        passed = 0
        try:
            while data := source.recv(_PIECE_BYTES):
                if harm is not None and passed + len(data) > harm.after_bytes:
                    sound = max(0, harm.after_bytes - passed)
                    target.sendall(data[:sound])
                    if not self._do_harm(harm, data[sound:], source, target):
                        return
                    if harm.kind == "corrupt":
                        harm = None
                    self.passed_bytes[from_server] += len(data)
                else:
                    # Before they are sent: who gets them may end, and look at this.
                    self.passed_bytes[from_server] += len(data)
                    target.sendall(data)
                passed += len(data)
            _shut(target, socket.SHUT_WR)
        except OSError:
            _shut(source)
            _shut(target)

    def _do_harm(self, harm: Harm, data: bytes, source: socket.socket, target: socket.socket) -> bool:
        """Whether anything is passed on after it."""
        if harm.kind == "corrupt":
            target.sendall(bytes([data[0] ^ 0x55]) + data[1:])
            return True
        if harm.kind == "drip":
            for byte in data:
                time.sleep(harm.pause_s)  # being slow is the harm
                target.sendall(bytes([byte]))
            return True
        if harm.kind == "silence":
            while source.recv(_PIECE_BYTES):
                pass
        elif harm.kind == "half-close":
            _shut(target, socket.SHUT_WR)
            while source.recv(_PIECE_BYTES):
                pass
        elif harm.kind == "reset":
            target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._open.remove(target)
            _shut(target, socket.SHUT_RD)  # a reader holds it open otherwise
            target.close()
            _shut(source)
        else:
            _shut(target)
            _shut(source)
        return False


def _shut(one: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    try:
        one.shutdown(how)
    except OSError:
        return  # the other side was faster


@contextmanager
def proxied(server_port: int, harm: Harm | None = None) -> Iterator[Proxy]:
    """A proxy, for as long as it is needed."""
    proxy = Proxy(server_port, harm)
    try:
        yield proxy
    finally:
        proxy.close()
