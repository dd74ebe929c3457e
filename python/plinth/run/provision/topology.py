"""The servers that a trial runs on: one for each node of its cluster."""

from typing import TYPE_CHECKING, NamedTuple

from plinth.model.facts import ServerFacts
from plinth.model.plan import PRIMARY
from plinth.system.log_file import LogFile

if TYPE_CHECKING:
    from plinth.server.external.external_server import ExternalServer
    from plinth.server.server import Server


class Node(NamedTuple):
    """A running server of a topology, with its settings taken and read back."""

    name: str
    server: "Server | ExternalServer"
    facts: ServerFacts
    postmaster_pid: int | None
    """None: it is an external server, whose processes may be on another machine."""
    log: LogFile | None
    """None: it is an external server."""

    @property
    def is_local(self) -> bool:
        """Whether it is known to run on this machine: Plinth has started it."""
        return self.postmaster_pid is not None


class Topology(NamedTuple):
    """The nodes that run for a variant; the load goes to the primary."""

    nodes: tuple[Node, ...]

    @property
    def primary(self) -> Node:
        """The node that takes writes."""
        return next(node for node in self.nodes if node.name == PRIMARY)
