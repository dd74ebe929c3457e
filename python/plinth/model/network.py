"""The emulated network between network namespaces: what its links are like, and what its daemon reports.

Field names of links are those of crates/network, which checks the values; docs/internals/network.md says what they do.
"""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema

from plinth.model.base import Frozen
from plinth.model.units import BitsPerSecond, LatencyNs, SizeBytes, format_bit_rate, format_duration, parse_share

JitterDistribution = Literal["normal", "uniform"]


def parse_loss(value: object) -> float:
    """A probability of a percentage such as "0.1%", or of a number from 0 to 1. Raises ValueError."""
    is_zero = value == "0%" or (not isinstance(value, bool) and value == 0)
    return 0.0 if is_zero else parse_share(value)


Loss = Annotated[
    float,
    BeforeValidator(parse_loss),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0, "maximum": 1}]}),
]


class LinkChanges(Frozen):
    """What is changed of a direction of a link; all else stays as it is."""

    delay_ns: LatencyNs | None = Field(
        default=None,
        alias="delay",
        description="Time from the last bit sent to the last bit received, one way: a round trip takes twice as long.",
        examples=["1ms"],
    )
    jitter_ns: LatencyNs | None = Field(
        default=None,
        alias="jitter",
        description="How much the delay varies from packet to packet; packets keep their order.",
        examples=["200us"],
    )
    jitter_distribution: JitterDistribution | None = Field(
        default=None,
        description="normal: jitter is the standard deviation; uniform: from jitter less than delay to jitter more.",
    )
    loss: Loss | None = Field(
        default=None, description="Probability that a packet is lost, each independently.", examples=["0.1%"]
    )
    rate_bits_per_s: BitsPerSecond | None = Field(
        default=None, alias="rate", description="Bits of IP packets per second; 0 is no limit.", examples=["1Gbit/s"]
    )
    queue_bytes: SizeBytes | None = Field(
        default=None,
        alias="queue",
        description="Bytes that may wait to be sent at that rate; packets beyond it are dropped.",
        examples=["1MiB"],
    )
    partitioned: bool | None = Field(default=None, description="Whether nothing passes.")


class LinkSettings(Frozen):
    """What a direction of a link is like."""

    delay_ns: int
    jitter_ns: int
    jitter_distribution: JitterDistribution
    loss: float
    rate_bits_per_s: int = Field(description="0: no limit.")
    queue_bytes: int
    partitioned: bool

    @property
    def words(self) -> str:
        """What it is like, for people."""
        parts = [f"delay {format_duration(self.delay_ns / 1e9)}"]
        if self.jitter_ns:
            parts.append(f"jitter {format_duration(self.jitter_ns / 1e9)} ({self.jitter_distribution})")
        if self.loss:
            parts.append(f"loss {100 * self.loss:.4g} %")
        if self.rate_bits_per_s:
            parts.append(f"rate {format_bit_rate(self.rate_bits_per_s)}")
        if self.partitioned:
            parts.append("partitioned")
        return ", ".join(parts)


class Direction(NamedTuple):
    """A direction of a link, by the names of its nodes."""

    sender: str
    receiver: str


def both_directions(one: str, other: str) -> tuple[Direction, Direction]:
    """Both directions of the link between two nodes."""
    return Direction(one, other), Direction(other, one)


def all_directions(nodes: Iterable[str]) -> tuple[Direction, ...]:
    """Every direction between nodes."""
    names = tuple(nodes)
    return tuple(Direction(one, other) for one in names for other in names if one != other)


class NodePlace(Frozen):
    """Where a node is: its network namespace with a persistent TUN device that has its address."""

    name: str
    namespace: str = Field(description="Path of the namespace's file, such as /run/netns/NAME.")
    device: str
    address: str = Field(description="IPv4.")


class LinkCounters(Frozen):
    """Packets of one direction of a link since the daemon's start, by what became of them."""

    sent: int
    delivered: int
    delivered_bytes: int
    lost: int
    overflowed: int
    partitioned: int


class LinkStatus(Frozen):
    """One direction of a link as it is."""

    sender: str = Field(alias="from")
    receiver: str = Field(alias="to")
    settings: LinkSettings
    counters: LinkCounters


class Lateness(Frozen):
    """How late packets were handed to their receivers, after the time that they were due."""

    packets: int
    p50_ns: int
    p99_ns: int
    max_ns: int


class NetworkStatus(Frozen):
    """The state of an emulated network."""

    pid: int
    label: str
    control: str
    seed: int
    nodes: tuple[NodePlace, ...]
    links: tuple[LinkStatus, ...]
    lateness: Lateness
    unroutable: int = Field(description="Packets that were for no other node, or not of IPv4.")
    refused: int = Field(description="Packets that a namespace did not take.")
    runs_at_once: bool = Field(description="Whether the delay line runs before usual processes (SCHED_FIFO).")

    def link(self, direction: Direction) -> LinkStatus:
        """One direction of a link."""
        return next(link for link in self.links if (link.sender, link.receiver) == direction)


class NetworkConfig(Frozen):
    """What `plinth network serve` serves."""

    label: str
    control: str
    seed: int = Field(default=1, ge=0, lt=2**63)
    nodes: tuple[NodePlace, ...]
