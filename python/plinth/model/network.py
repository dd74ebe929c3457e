"""The emulated network between network namespaces: what its links are like, and what its daemon reports.

Field names of links are those of crates/network, which checks the values; docs/internals/network.md says what they do.
"""

import re
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from plinth.model.base import Frozen
from plinth.model.units import (
    BitsPerSecond,
    LatencyNs,
    SizeBytes,
    format_bit_rate,
    format_duration,
    format_size,
    parse_share,
)

JitterDistribution = Literal["normal", "uniform"]


def parse_loss(value: object) -> float:
    """Return a probability of a percentage such as "0.1%", or of a number from 0 to 1. Raises ValueError."""
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

    def words(self) -> str:
        """Return what is changed, for people."""
        parts = []
        if self.delay_ns is not None:
            parts.append(f"delay {format_duration(self.delay_ns / 1e9)}")
        if self.jitter_ns is not None:
            parts.append(f"jitter {format_duration(self.jitter_ns / 1e9)}")
        if self.jitter_distribution is not None:
            parts.append(f"jitter {self.jitter_distribution}")
        if self.loss is not None:
            parts.append(f"loss {100 * self.loss:.4g} %")
        if self.rate_bits_per_s is not None:
            parts.append(f"rate {format_bit_rate(self.rate_bits_per_s) if self.rate_bits_per_s else 'without limit'}")
        if self.queue_bytes is not None:
            parts.append(f"queue {format_size(self.queue_bytes)}")
        if self.partitioned is not None:
            parts.append("partitioned" if self.partitioned else "not partitioned")
        return ", ".join(parts)


class LinkSettings(Frozen):
    """What a direction of a link is like. The defaults are those of a link that nothing was asked of."""

    delay_ns: int = 0
    jitter_ns: int = 0
    jitter_distribution: JitterDistribution = "normal"
    loss: float = 0.0
    rate_bits_per_s: int = Field(default=0, description="0: no limit.")
    queue_bytes: int = 2**20
    partitioned: bool = False

    def changed(self, changes: LinkChanges) -> "LinkSettings":
        """Return these settings with some changed."""
        asked = {name: getattr(changes, name) for name in type(self).model_fields}
        return self.model_copy(update={name: value for name, value in asked.items() if value is not None})

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
    """Return both directions of the link between two nodes."""
    return Direction(one, other), Direction(other, one)


def all_directions(nodes: Iterable[str]) -> tuple[Direction, ...]:
    """Return every direction between nodes."""
    names = tuple(nodes)
    return tuple(Direction(one, other) for one in names for other in names if one != other)


_LINK = r"^([a-z][a-z0-9_]{0,39})-(to-)?([a-z][a-z0-9_]{0,39})$"
_MOST_DELAY_NS = 60_000_000_000
_LEAST_RATE_BITS_PER_S = 1000
_LEAST_QUEUE_BYTES = 65_535


def directions_of(link: str) -> tuple[Direction, ...]:
    """Return the directions that the name of a link means: both of "a-b", one of "a-to-b". Raises ValueError."""
    match = re.fullmatch(_LINK, link)
    if match is None or match[1] == match[3]:
        raise ValueError(f'got {link!r}; expected two nodes: "primary-a" for both directions, "primary-to-a" for one')
    return (Direction(match[1], match[3]),) if match[2] else both_directions(match[1], match[3])


class LinkAsked(LinkChanges):
    """What an experiment asks of links; values that no link can have are refused."""

    @model_validator(mode="after")
    def _a_link_can_be_so(self) -> Self:
        for key, time_ns in (("delay", self.delay_ns), ("jitter", self.jitter_ns)):
            if time_ns is not None and time_ns > _MOST_DELAY_NS:
                raise ValueError(f"{key}: got {format_duration(time_ns / 1e9)}; allowed is at most 60 s")
        if self.rate_bits_per_s is not None and 0 < self.rate_bits_per_s < _LEAST_RATE_BITS_PER_S:
            raise ValueError(f"rate: got {self.rate_bits_per_s} bit/s; allowed is 1 kbit/s or more, or 0 for no limit")
        if self.queue_bytes is not None and self.queue_bytes < _LEAST_QUEUE_BYTES:
            raise ValueError(
                f"queue: got {self.queue_bytes} bytes; allowed are {_LEAST_QUEUE_BYTES} or more, the longest packet"
            )
        return self


LinkName = Annotated[str, Field(pattern=_LINK)]
"""Two nodes: "primary-a" for both directions of the link between them, "primary-to-a" for one."""


class NetworkSpec(LinkAsked):
    """The emulated network between the servers of a cluster: what all links are like, and what some are."""

    link: dict[LinkName, LinkAsked] = Field(
        default_factory=dict,
        description="Links that differ, by their nodes: NODE-NODE is both directions, NODE-to-NODE one, which counts before the other.",
        examples=[{"primary-b": {"delay": "20ms"}}],
    )

    def settings(self, nodes: Iterable[str]) -> dict[Direction, LinkSettings]:
        """Return what each direction between these nodes is like."""
        of_all = LinkSettings().changed(self)
        found = dict.fromkeys(all_directions(nodes), of_all)
        named = sorted(self.link, key=lambda name: len(directions_of(name)), reverse=True)
        for name in named:
            for direction in directions_of(name):
                if direction in found:
                    found[direction] = found[direction].changed(self.link[name])
        return found


def link_sentences(settings: Mapping[Direction, LinkSettings]) -> list[str]:
    """Return directions of links with what they are like, for people; directions that are alike are described together."""
    alike: dict[str, list[Direction]] = {}
    for direction, one in settings.items():
        alike.setdefault(one.words, []).append(direction)
    if len(alike) == 1:
        return [f"all links {words}" for words in alike]
    return [f"{_of_directions(directions)} {words}" for words, directions in alike.items()]


def _of_directions(directions: list[Direction]) -> str:
    names = []
    for sender, receiver in directions:
        if (receiver, sender) not in directions:
            names.append(f"{sender} to {receiver}")
        elif sender < receiver:
            names.append(f"between {sender} and {receiver}")
    return ", ".join(names)


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
        """Return one direction of a link."""
        return next(link for link in self.links if (link.sender, link.receiver) == direction)


class MeasuredLink(Frozen):
    """A link that replication uses, in one trial: what was asked of both directions, and what was found."""

    upstream: str
    standby: str
    to_standby: LinkSettings = Field(description="From the upstream to the standby, as read back.")
    to_upstream: LinkSettings
    round_trips_ns: tuple[int | None, ...] = Field(
        description="Measured between the two before the load; None: a packet that was lost."
    )
    sent_to_standby: LinkCounters = Field(description="Packets in that direction from there to the end of the load.")
    sent_to_upstream: LinkCounters

    @property
    def round_trip_ns(self) -> float | None:
        """The median; None where all were lost."""
        came = [took for took in self.round_trips_ns if took is not None]
        return median(came) if came else None

    @property
    def asked_round_trip_ns(self) -> int:
        """What both delays add up to."""
        return self.to_standby.delay_ns + self.to_upstream.delay_ns


class TrialNetwork(Frozen):
    """The emulated network in one trial."""

    links: tuple[MeasuredLink, ...]
    lateness: Lateness = Field(description="Of all packets since the network was made.")


class NetworkConfig(Frozen):
    """What `plinth network serve` serves."""

    label: str
    control: str
    seed: int = Field(default=1, ge=0, lt=2**63)
    nodes: tuple[NodePlace, ...]
