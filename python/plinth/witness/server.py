"""The witness: it listens, receives the commits of one load at a time, and makes them durable before it acknowledges
them.

Peers are not trusted: until the token arrives, each gets a few seconds and a few kilobytes, and only a few may
connect.
"""

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, get_args

from plinth.model.errors import PlinthError, Refused, UsageError
from plinth.model.witness import PROTOCOL_VERSION, Ended, Hello, LoadEnd, RoundEnd, Welcome
from plinth.system import cancel
from plinth.system.framed_tls import Disconnected, PeerTimeout, ProtocolError, parsed, secured
from plinth.system.lock import DirectoryLock
from plinth.witness.credentials import Credentials, same_token
from plinth.witness.protocol import HELLO_TIMEOUT_S, MAX_FRAME_BYTES, MAX_HELLO_BYTES, Kind, Link
from plinth.witness.rounds import RoundWriter, WitnessFolder

SILENCE_S = 10.0
MAX_ROUND_BYTES = 16 * 2**30
_MAX_CONNECTIONS = 16
_PROGRESS_S = 1.0
_END_TIMEOUT_S = 5.0


class RoundProgress(NamedTuple):
    """The progress of the round of the connected load."""

    round: int
    peer: str
    acknowledged: int


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises UsageError when it cannot be opened."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error}",
            where="--listen",
            hint="name an address of this machine and a free port, as in --listen 0.0.0.0:8434",
        ) from error


@contextmanager
def serving(
    path: Path,
    credentials: Credentials,
    listener: socket.socket,
    say: Callable[[str], None],
    *,
    silence_s: float = SILENCE_S,
    max_round_bytes: int = MAX_ROUND_BYTES,
) -> "Iterator[Witness]":
    """Yield a witness that writes to the folder `path`, which no other may serve. `say` gets messages about its
    connections, from any thread."""
    with DirectoryLock(path):
        witness = Witness(WitnessFolder(path), credentials, listener, say, silence_s, max_round_bytes)
        try:
            yield witness
        finally:
            witness.close()


@dataclass(eq=False)
class Witness:
    """Receives the commits of loads. `wait` never returns normally; it raises what ends the work."""

    _folder: WitnessFolder
    _credentials: Credentials
    _listener: socket.socket
    _say: Callable[[str], None]
    _silence_s: float
    _max_round_bytes: int
    _changing: threading.Lock = field(default_factory=threading.Lock, init=False)
    _connections: dict[threading.Thread, socket.socket] = field(default_factory=dict, init=False)
    _current_round: RoundWriter | None = field(default=None, init=False)
    _is_busy: threading.Lock = field(default_factory=threading.Lock, init=False)
    _is_ending: bool = field(default=False, init=False)

    def wait(self, on_progress: Callable[[RoundProgress], None]) -> None:
        """Serve until the work is cancelled; `on_progress` is called every second while a load is connected."""
        shown = 0.0
        while True:
            if cancel.poll({self._listener.fileno(): select.POLLIN}, _PROGRESS_S):
                self._accept()
            writer = self._current_round
            if writer is not None and time.monotonic() - shown >= _PROGRESS_S:
                shown = time.monotonic()
                on_progress(RoundProgress(writer.round.number, writer.round.peer, writer.acknowledged))

    def close(self) -> None:
        """Close all connections; the received commits are on disk."""
        self._is_ending = True
        self._listener.close()
        with self._changing:
            left = dict(self._connections)
        for connection in left.values():
            _shut_down(connection)
        for thread in left:
            thread.join(_END_TIMEOUT_S)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError:  # the peer disconnected before it was accepted
            return
        with self._changing:
            if len(self._connections) >= _MAX_CONNECTIONS:
                connection.close()
                return
            thread = threading.Thread(
                target=self._serve_connection, args=(connection, _peer(address)), name="conversation", daemon=True
            )
            self._connections[thread] = connection
        thread.start()

    def _serve_connection(self, plain: socket.socket, peer: str) -> None:
        try:
            with secured(plain, self._credentials.context, HELLO_TIMEOUT_S, as_server=True) as connection:
                with self._changing:
                    self._connections[threading.current_thread()] = connection
                self._serve_load(Link(connection), peer)
        except PlinthError as error:
            where = f" ({error.where})" if error.where else ""
            hint = f"; {error.hint}" if error.hint else ""
            self._say(f"{peer}: {error.message}{where}{hint}")
        finally:
            with self._changing:
                del self._connections[threading.current_thread()]

    def _serve_load(self, link: Link, peer: str) -> None:
        """Serve one load. Raises the PlinthError that ends it, which is also sent to an authenticated peer."""
        first = link.receive(MAX_HELLO_BYTES, HELLO_TIMEOUT_S)
        hello = parsed(Hello, first.payload) if first.kind is Kind.HELLO else None
        if hello is None or not same_token(hello.token, self._credentials.token):
            with self._reporting_refusal(link):
                raise Refused("the token is not that of this witness")
        with self._reporting_refusal(link):
            if hello.protocol != PROTOCOL_VERSION:
                raise Refused(
                    f"the load speaks version {hello.protocol} of the protocol, the witness {PROTOCOL_VERSION}"
                )
            if not self._is_busy.acquire(blocking=False):
                raise Refused("the witness records another load now, and takes one at a time")
            try:
                self._receive_round(link, self._folder.begin(hello, peer, self._max_round_bytes))
            finally:
                self._current_round = None
                self._is_busy.release()

    def _receive_round(self, link: Link, writer: RoundWriter) -> None:
        begun = writer.round
        self._say(f"round {begun.number}: a load of {begun.clients} clients from {begun.peer}")
        self._current_round = writer
        end: RoundEnd = "disconnected"
        try:
            welcome = Welcome(number=begun.number, round_id=begun.round_id)
            link.send(Kind.WELCOME, welcome.model_dump_json().encode())
            end = self._record(link, writer)
        except PeerTimeout:
            end = "silent"
        except Disconnected:
            end = "witness ended" if self._is_ending else "disconnected"
        except PlinthError:
            end = "witness ended"
            raise
        finally:
            try:
                writer.end(end)
            finally:  # also when the disk is too full for that
                self._say(
                    f"round {begun.number}: {_MEANING.get(end, end)}; {writer.acknowledged:,} acknowledged commits are known"
                )
        if end in get_args(LoadEnd):
            link.send(Kind.ACK)

    def _record(self, link: Link, writer: RoundWriter) -> RoundEnd:
        """Receive records until the load sends its end, which is acknowledged once it is on disk."""
        while True:
            frame = link.receive(MAX_FRAME_BYTES, self._silence_s)
            match frame.kind:
                case Kind.HEADER:
                    writer.header(frame.payload)
                case Kind.RECORDS:
                    writer.records(frame.payload)
                case Kind.ENDED:
                    return parsed(Ended, frame.payload).end
                case _:
                    raise ProtocolError(f"a message of the kind {frame.kind.name} is not for a witness")
            link.send(Kind.ACK)

    @contextmanager
    def _reporting_refusal(self, link: Link) -> Iterator[None]:
        """Send the reason of a PlinthError to the peer before the connection is closed."""
        try:
            yield
        except PlinthError as error:
            hint = f"; {error.hint}" if error.hint else ""
            try:
                link.send(Kind.REFUSED, f"{error.message}{hint}".encode(errors="replace"))
            except PlinthError:
                raise error from None  # the peer is gone; the error is raised all the same
            raise


_MEANING: dict[RoundEnd, str] = {
    "complete": "the load is complete",
    "interrupted": "the load was ended by its user",
    "load failed": "the load has failed",
    "server lost": "the load has lost the server",
    "disconnected": "the connection to the load has ended",
    "silent": "nothing comes from the load any more",
    "witness ended": "the witness has ended it",
}


def _shut_down(connection: socket.socket) -> None:
    """End a connection that another thread waits for."""
    try:
        # Not SSLSocket's own, which takes the TLS session away from under the other thread.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        return  # it has ended already


def _peer(address: object) -> str:
    host, port, *_ = address if isinstance(address, tuple) else (address, "")
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
