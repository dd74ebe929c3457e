"""The messages between the coordinator of a run and the agent of a host.

Frames are those of a fleet: two lengths, a JSON document, bytes. The coordinator sends requests with numbers; the agent answers each, and
progress before that while a call is under way. What belongs to which:

    hello    Hello           who and what the agent is; the lease begins
    clock    ClockReading    when the request came and when the reply left, by the agent's monotonic clock
    call     result          a method of an object; its result as JSON
    cancel   nothing         a call ends where it waits, or is not begun
    -        command         unasked, with the number 0: a command that the agent has run
    end      kept            all that was made is undone, and the agent ends

The agent is not trusted: an answer that is none of its request's (`mistake`) ends the connection, and its result is checked by answers.py.

A call belongs to a lane, a thread of the agent that does one call after the other and lasts as long as the agent: servers end with the
thread that has started them. Without a request for the lease the agent undoes all that it has made, and ends.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from plinth.common.untrusted import parts
from plinth.fleet.figures import MAX_INSTANT_NS
from plinth.fleet.protocol import ClockReading
from plinth.model.base import Frozen
from plinth.model.host import check_listen_address
from plinth.model.progress import Progress
from plinth.run.hosts.calls import CallError, KeptSteps, Lane
from plinth.run.hosts.limits import MAX_VALUES
from plinth.system.framed_tls import ProtocolError, parsed
from plinth.system.runner import CommandRecord

PROTOCOL_VERSION = 2
Kind = Literal["hello", "clock", "call", "cancel", "end"]


class Request(Frozen):
    """What the coordinator asks for."""

    number: int = Field(ge=0)
    kind: Kind
    lane: Lane = "work"
    lease_s: float = Field(default=60.0, description="Of hello.")
    cancels: int = Field(default=0, description="Of cancel: the number of the call.")
    on: tuple[str, ...] = Field(
        default=(),
        description='Of call: ("host",), ("run",), ("storage", NAME), ("server", CLUSTER, NODE), '
        '("rejoined", CLUSTER, NODE), ("copy", CLUSTER, NODE), ("snapshot", CLUSTER, NUMBER), ("files", CLUSTER, NODE), '
        '("patroni", CLUSTER), ("disk", STORAGE, INDEX), ("sampler",).',
    )
    method: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict, repr=False)


_Word = Annotated[str, Field(max_length=255)]


class Hello(Frozen):
    """Who and what an agent is."""

    protocol: int = PROTOCOL_VERSION
    plinth: _Word
    python: _Word
    host: _Word
    boot_id: _Word = Field(description="Of the kernel: two hosts with the same are one machine.")
    address: _Word | None = Field(
        default=None, description="The address by which the coordinator has reached it, by SSH_CONNECTION."
    )
    coordinator_address: _Word | None = Field(default=None, description="That of the coordinator, as it is seen there.")

    @field_validator("address", "coordinator_address")
    @classmethod
    def _is_one_address(cls, address: str | None) -> str | None:
        if address is not None:
            check_listen_address(address)
        return address


class Answer(Frozen):
    """What an agent sends: progress of the call with this number, or its end."""

    number: int = Field(ge=0, le=2**53)
    progress: Progress | None = Field(default=None, description="Then it is not the end.")
    command: CommandRecord | None = Field(
        default=None, description="A command that the agent has run; it is the answer to no request."
    )
    error: CallError | None = None
    hello: Hello | None = None
    clock: ClockReading | None = None
    kept: KeptSteps = Field(default=(), description="Of end: what could not be undone.")
    result: Any = None

    def mistake(self, kind: Kind | None) -> str | None:
        """Return why this is no answer to a request of a kind, or none without a request; None if it is one."""
        has = sorted(
            name for name in self.model_fields_set - {"number"} if name == "result" or getattr(self, name) is not None
        )
        if has not in _MAY_HAVE[kind]:
            asked = "no request" if kind is None else f"a request of kind {kind}"
            allowed = " or ".join(" and ".join(one) or "nothing" for one in _MAY_HAVE[kind])
            return f"an answer to {asked} has {' and '.join(has) or 'nothing'}; it may have {allowed}"
        if self.clock is not None and not 0 <= self.clock.received_ns <= self.clock.sent_ns <= MAX_INSTANT_NS:
            return "a reading of its clock that no clock has"
        if self.progress is not None and (wrong := _impossible(self.progress)):
            return f"progress of a work: {wrong}"
        told = (self.progress, self.command)
        long = next((place for place, _, one in parts(told) if isinstance(one, str) and len(one) > _MOST_TOLD), None)
        return None if long is None else f"a text of more than {_MOST_TOLD:,} characters in progress or a command"


def _impossible(progress: Progress) -> str | None:
    """Return what no progress is."""
    numbers = {
        "done": progress.done,
        "total": progress.total,
        "rate": progress.rate,
        "bytes_per_s": progress.bytes_per_s,
    }
    for name, number in (*numbers.items(), ("the time that is left", progress.left_s)):
        if number is not None and not 0 <= number <= _MOST:
            return f"{name} is {number:g}; allowed is 0 to {_MOST:g}"
    return None


def read_answer(document: bytes) -> Answer:
    """Parse a message of an agent. Raises ProtocolError."""
    values = sum(map(document.count, (b"[", b"{", b",")))  # those within texts are counted, too
    if values > MAX_VALUES:
        raise ProtocolError(f"a message has {values:,} values; at most {MAX_VALUES:,} are allowed")
    return parsed(Answer, document)


_MOST = 2.0**63
_MOST_TOLD = 256 * 1024
_MAY_HAVE: Mapping[Kind | None, tuple[list[str], ...]] = {
    None: (["command"],),
    "hello": (["hello"],),
    "clock": (["clock"],),
    "cancel": ([],),
    "end": ([], ["kept"]),
    "call": ([], ["result"], ["progress"], ["error"]),
}
"""What an answer has in addition to its number. None: it is unasked. A result that is None has no field."""
