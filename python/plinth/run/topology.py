"""The servers that a trial runs on: one for each node of its cluster."""

from typing import NamedTuple, Protocol

from plinth.model.connection import Connection
from plinth.model.facts import ServerFacts
from plinth.model.plan import PRIMARY
from plinth.system.log_file import LogFile


class Server(Protocol):
    """A server that trials run on, managed or external."""

    @property
    def connection(self) -> Connection:
        """Where the load goes."""
        ...

    def alive(self) -> bool:
        """Whether it is still there."""
        ...


class Node(NamedTuple):
    """A running server of a topology, with its settings taken and read back."""

    name: str
    server: Server
    facts: ServerFacts
    postmaster_pid: int | None
    """None: it is an external server, whose processes may be on another machine."""
    log: LogFile | None
    """None: it is an external server."""


class Topology(NamedTuple):
    """The nodes that run for a variant; the load goes to the primary."""

    nodes: tuple[Node, ...]

    @property
    def primary(self) -> Node:
        """The node that takes writes."""
        return next(node for node in self.nodes if node.name == PRIMARY)
