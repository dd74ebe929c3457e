"""Requests to the agents of a fleet, sent to all before the first reply is awaited, and the offsets of their clocks by NTP's four
times (RFC 5905, section 8).
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from plinth.fleet.executors.executor import NotStarted, Started
from plinth.fleet.figures import check_figures
from plinth.fleet.protocol import (
    ANSWER_TIMEOUT_S,
    START_TIMEOUT_S,
    ClockReading,
    Hello,
    Reply,
    Request,
)
from plinth.model.errors import RunError
from plinth.system.framed_tls import ProtocolError, parsed

EXCHANGES = 100
_Reply = TypeVar("_Reply", bound=Reply)


class Exchange(NamedTuple):
    """One request and its reply: sent and received by our clock, in between received and sent by theirs. In ns."""

    sent_ns: int
    their_received_ns: int
    their_sent_ns: int
    received_ns: int

    @property
    def round_trip_ns(self) -> int:
        """The time on the way, both ways."""
        return (self.received_ns - self.sent_ns) - (self.their_sent_ns - self.their_received_ns)

    @property
    def offset_ns(self) -> int:
        """Their clock minus ours, if both ways took equally long."""
        there = self.their_received_ns - self.sent_ns
        back = self.their_sent_ns - self.received_ns
        return (there + back) // 2


class ClockOffset(NamedTuple):
    """Their clock minus ours, known to within `error_ns`."""

    offset_ns: int
    error_ns: int

    def least_move_ns(self, later: "ClockOffset") -> int:
        """Return how far the clocks have moved against each other at least until they were measured again."""
        return max(0, abs(later.offset_ns - self.offset_ns) - self.error_ns - later.error_ns)


def clock_offset(exchanges: Iterable[Exchange]) -> ClockOffset:
    """Return the offset by the exchange with the shortest round trip; it is wrong by half of that at most, however unequal the ways."""
    best = min(exchanges, key=lambda one: one.round_trip_ns)
    return ClockOffset(best.offset_ns, (max(best.round_trip_ns, 0) + 1) // 2)


def ask_each(
    agents: Sequence[Started],
    requests: Sequence[Request],
    model: type[_Reply],
    timeout_s: float = ANSWER_TIMEOUT_S,
    *,
    binary: bytes = b"",
) -> list[tuple[_Reply, bytes]]:
    """Return the replies, each with the bytes behind it; `binary` is sent behind each request.

    Raises RunError when an agent is lost, or refuses.
    """
    for agent, request in zip(agents, requests, strict=True):
        try:
            agent.link.send(request.model_dump_json().encode(), binary)
        except RunError as error:
            raise agent.lost(error) from error
    return [_reply(agent, model, timeout_s) for agent in agents]


def ask_all(
    agents: Sequence[Started],
    request: Request,
    model: type[_Reply],
    timeout_s: float = ANSWER_TIMEOUT_S,
    *,
    binary: bytes = b"",
) -> list[_Reply]:
    """Return the replies to the same request, behind which `binary` is sent."""
    return [reply for reply, _ in ask_each(agents, [request] * len(agents), model, timeout_s, binary=binary)]


def greet(agents: Sequence[Started]) -> list[Hello]:
    """Ask who and what the agents are, once their programs are loaded. Raises NotStarted, which says where to look, of those that end."""
    request = Request(kind="hello").model_dump_json().encode()
    ended: dict[str, RunError] = {}
    replies = []
    for agent in agents:
        with _ending(agent, ended):
            agent.link.send(request)
    for agent in agents:
        if agent.name not in ended:
            with _ending(agent, ended):
                hello = parsed(Hello, agent.link.receive(START_TIMEOUT_S).document)
                check_figures(hello)
                replies.append(hello)
    if ended:
        raise NotStarted(ended)
    return replies


@contextmanager
def named(agent: Started) -> Iterator[None]:
    """Name the agent in errors about what it has sent."""
    try:
        yield
    except ProtocolError as error:
        reason = f"the agent on machine {agent.name} has sent what no agent sends: {error.message}"
        raise ProtocolError(reason, where=f"machine {agent.name}") from None


@contextmanager
def _ending(agent: Started, ended: dict[str, RunError]) -> Iterator[None]:
    try:
        yield
    except RunError as error:
        lost = agent.unreached()
        if lost is None:
            lost = agent.lost(error)
            lost.hint = None if agent.to_try is None else f"see what `{agent.to_try}` says"
        ended[agent.name] = lost


def measure_clocks(agents: Sequence[Started], exchanges_each: int = EXCHANGES) -> list[ClockOffset]:
    """Return the offset of each agent's monotonic clock. Agents are asked one after the other, so that none waits for another's reply."""
    exchanges: list[list[Exchange]] = [[] for _ in agents]
    request = Request(kind="clock").model_dump_json().encode()
    for _ in range(exchanges_each):
        for agent, measured in zip(agents, exchanges, strict=True):
            try:
                sent_ns = time.monotonic_ns()
                agent.link.send(request)
                frame = agent.link.receive(ANSWER_TIMEOUT_S)
                received_ns = time.monotonic_ns()
            except RunError as error:
                raise agent.lost(error) from error
            with named(agent):
                reading = parsed(ClockReading, frame.document)
                if reading.refused is not None:
                    raise RunError(reading.refused, where=f"machine {agent.name}")
                check_figures(reading)
                if reading.sent_ns < reading.received_ns:
                    raise ProtocolError("its reply left before the request came")
            measured.append(Exchange(sent_ns, reading.received_ns, reading.sent_ns, received_ns))
    return list(map(clock_offset, exchanges))


def _reply(agent: Started, model: type[_Reply], timeout_s: float) -> tuple[_Reply, bytes]:
    try:
        frame = agent.link.receive(timeout_s)
    except RunError as error:
        raise agent.lost(error) from error
    with named(agent):
        reply = parsed(model, frame.document)
    if reply.refused is not None:
        raise RunError(reply.refused, where=f"machine {agent.name}")
    with named(agent):
        check_figures(reply)
    return reply, frame.binary
