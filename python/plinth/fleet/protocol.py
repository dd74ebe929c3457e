"""The messages between the coordinator of a fleet and its agents.

A frame is two unsigned little-endian numbers of 4 bytes, the lengths of a JSON document and of what follows it, then these two.
The coordinator sends requests, and gets a reply to each, in order; nothing is sent unasked. What belongs to which:

    hello     Hello                    who and what the agent is
    clock     ClockReading             when the request came and when the reply left, by the agent's monotonic clock
    reach     Reached                  whether the server answers from there, and how fast
    recording Done                     the bytes behind the request, the next of a replay file, are kept
    prepare   Done                     connecting has begun
    poll      Polled, and histograms   how far it is; the bytes are those of `LoadRun.take_histograms`
    go        Done                     the load begins at an instant of the agent's monotonic clock
    measure   Measuring                when the warm-up ends
    stop      Done
    collect   Collected                the result
    ledger    LedgerPiece, and bytes   a piece of a file of the commit ledger, once the load has ended
    copy      Done                     connecting the streams that send rows has begun
    copied    Copied                   how far they are, and at their end the result; `stop` ends them, too

A request that cannot be done is answered by Refused. The agent ends when the connection does, or when no request has come for
LEASE_S.
"""

import socket
import struct
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.connection import Connection
from plinth.model.load import BulkProgress, BulkResult, LoadProgress, LoadResult
from plinth.model.load_config import LoadConfig
from plinth.model.workload import Driver
from plinth.system.framed_tls import FramedConnection, Framing

PROTOCOL_VERSION = 2
LEASE_S = 10.0
"""How long an agent continues without a request."""
ANSWER_TIMEOUT_S = 5.0
"""How long a reply may take; an agent that is stopped or cut off is lost after that."""
START_TIMEOUT_S = 60.0
"""How long the first reply may take: the agent's program is loaded meanwhile, from a disk that may be slow."""
AGENT_END_TIMEOUT_S = 3.0
"""How long an agent may take to end with its connection: it needs 2 s for a load that does not end."""
MAX_JSON_BYTES = 64 * 1024 * 1024
MAX_BINARY_BYTES = 64 * 1024 * 1024
_FRAMING = Framing(struct.Struct("<II"), parts=2, send_timeout_s=30.0)


MAX_REASON = 16_384
"""Characters of a reason for which something was not done."""
_Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON)]
_Word = Annotated[str, Field(max_length=1000)]


class Request(Frozen):
    """What the coordinator asks for. Passwords are in here only: never in arguments, environments or logs."""

    kind: Literal[
        "hello",
        "clock",
        "reach",
        "recording",
        "prepare",
        "poll",
        "go",
        "measure",
        "stop",
        "collect",
        "ledger",
        "copy",
        "copied",
    ]
    connection: Connection | None = Field(default=None, repr=False, description="Of reach.")
    load: LoadConfig | None = Field(default=None, repr=False, description="Of prepare: the agent's part.")
    driver: Driver = Field(default="plinth", description="Of prepare: who its clients are.")
    bulk: str = Field(default="", repr=False, description="Of copy: the bulk loader's configuration, as JSON.")
    number: int = Field(default=0, description="Of ledger: which of the agent's files.")
    offset: int = Field(default=0, description="Of ledger: from where.")
    at_ns: int = Field(default=0, description="Of go: T0, by the agent's clock; of measure: since T0, not before.")


class Reply(Frozen):
    """What an agent answers."""

    refused: _Reason | None = Field(default=None, description="Why it cannot be done; nothing else counts then.")


class Done(Reply):
    """It is done."""


class Hello(Reply):
    """Who and what an agent is."""

    protocol: int = PROTOCOL_VERSION
    plinth: _Word = ""
    python: _Word = ""
    host: _Word = ""
    cores: int = 1
    pid: int = 0
    wall_clock_ns: int = 0


class ClockReading(Reply):
    """Two of NTP's four times, by the agent's monotonic clock."""

    received_ns: int = 0
    sent_ns: int = 0


class Reached(Reply):
    """How the server was reached."""

    server_version: _Word | None = None
    round_trip_ns: int | None = Field(default=None, description="Median of SELECT 1.")
    error: _Reason | None = None


class Usage(Frozen):
    """What an agent's machine did in the measured phase so far: shares of time, None where they could not be read."""

    engine_busy: float | None = Field(default=None, ge=0, le=1)
    host_busy: float | None = Field(default=None, ge=0, le=1)


class Polled(Reply):
    """How far an agent is."""

    state: Literal["idle", "connecting", "connected", "running", "ended", "failed"] = "idle"
    failure: _Reason | None = Field(default=None, description="Why it failed.")
    driver: _Word | None = Field(
        default=None,
        description="Packages and versions of a driver other than the load engine, once its clients are connected.",
    )
    progress: LoadProgress | None = None


class Measuring(Reply):
    """How long the warm-up lasts."""

    warmup_ns: int = 0


class Collected(Reply):
    """The result of an agent's part."""

    result: LoadResult | None = None
    usage: Usage = Usage()


class LedgerPiece(Reply):
    """What the bytes behind it are of."""

    thread: int = Field(default=-1, description="Whose file it is, among the threads of the whole load.")
    files: int = Field(default=0, ge=0, description="How many files the agent has.")
    is_last: bool = Field(default=True, description="The file ends with these bytes.")


class Copied(Reply):
    """How far an agent is with the rows that it sends."""

    state: Literal["idle", "connecting", "running", "ended", "failed"] = "idle"
    failure: _Reason | None = Field(default=None, description="Why it could not begin.")
    progress: BulkProgress | None = None
    result: BulkResult | None = Field(default=None, description="Once it has ended.")


class Message(NamedTuple):
    """One message: a JSON document and bytes."""

    document: bytes
    binary: bytes


class Link(FramedConnection):
    """One end of the connection between a coordinator and an agent."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, _FRAMING)

    def send(self, document: bytes, binary: bytes = b"") -> None:
        """Send a message. Raises Disconnected, PeerTimeout."""
        self.send_frame((), (document, binary))

    def receive(
        self, timeout_s: float, most_json_bytes: int = MAX_JSON_BYTES, most_binary_bytes: int = MAX_BINARY_BYTES
    ) -> Message:
        """Receive the next message. Raises Disconnected, PeerTimeout, ProtocolError."""
        return Message(*self.receive_frame((most_json_bytes, most_binary_bytes), timeout_s).parts)
