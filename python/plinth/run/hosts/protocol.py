"""The messages between the coordinator of a run and the agent of a host.

Frames are those of a fleet: two lengths, a JSON document, bytes. The coordinator sends requests with numbers; the agent answers each, and
progress before that while a call is under way. What belongs to which:

    hello    Hello           who and what the agent is; the lease begins
    clock    ClockReading    when the request came and when the reply left, by the agent's monotonic clock
    call     result          a method of an object; its result as JSON
    cancel   nothing         a call ends where it waits, or is not begun
    -        command         unasked: a command that the agent has run
    end      nothing         all that was made is undone, and the agent ends

A call belongs to a lane, a thread of the agent that does one call after the other and lasts as long as the agent: servers end with the
thread that has started them. Without a request for the lease the agent undoes all that it has made, and ends.
"""

from typing import Any, Literal

from pydantic import Field

from plinth.fleet.protocol import ClockReading
from plinth.model.base import Frozen
from plinth.model.progress import Progress
from plinth.run.hosts.calls import CallError, Kept
from plinth.system.runner import CommandRecord

PROTOCOL_VERSION = 1
Lane = Literal["work", "watch", "observe"]
"""work: what is done one after the other; watch: looks meanwhile whether storages and servers still work; observe: reads the host while
a load runs."""
LANES: tuple[Lane, ...] = ("work", "watch", "observe")


class Request(Frozen):
    """What the coordinator asks for."""

    number: int = Field(ge=0)
    kind: Literal["hello", "clock", "call", "cancel", "end"]
    lane: Lane = "work"
    lease_s: float = Field(default=60.0, description="Of hello.")
    cancels: int = Field(default=0, description="Of cancel: the number of the call.")
    on: tuple[str, ...] = Field(
        default=(),
        description='Of call: ("host",), ("run",), ("storage", NAME), ("server", CLUSTER, NODE), '
        '("rejoined", CLUSTER, NODE), ("copy", CLUSTER, NODE), ("snapshot", CLUSTER, NUMBER), ("files", CLUSTER, NODE), '
        '("patroni", CLUSTER), ("sampler",).',
    )
    method: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict, repr=False)


class Hello(Frozen):
    """Who and what an agent is."""

    protocol: int = PROTOCOL_VERSION
    plinth: str
    python: str
    host: str
    boot_id: str = Field(description="Of the kernel: two hosts with the same are one machine.")
    address: str | None = Field(
        default=None, description="The address by which the coordinator has reached it, by SSH_CONNECTION."
    )
    coordinator_address: str | None = Field(default=None, description="That of the coordinator, as it is seen there.")


class Answer(Frozen):
    """What an agent sends: progress of the call with this number, or its end."""

    number: int
    progress: Progress | None = Field(default=None, description="Then it is not the end.")
    command: CommandRecord | None = Field(
        default=None, description="A command that the agent has run; it is the answer to no request."
    )
    error: CallError | None = None
    hello: Hello | None = None
    clock: ClockReading | None = None
    kept: tuple[Kept, ...] = Field(default=(), description="Of end: what could not be undone.")
    result: Any = None
