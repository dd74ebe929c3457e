"""The servers that a trial runs on: one for each node of its cluster."""

from typing import TYPE_CHECKING, NamedTuple

from plinth.model.facts import ServerFacts
from plinth.model.plan import PRIMARY
from plinth.system.log_file import LogFile

if TYPE_CHECKING:
    from plinth.run.host import ServerHost
    from plinth.server.external.external_server import ExternalServer
    from plinth.server.server import Server


class Node(NamedTuple):
    """A running server of a topology, with its settings taken and read back."""

    name: str
    server: "Server | ExternalServer"
    facts: ServerFacts
    host: "ServerHost"
    """The machine that Plinth has started it on; of an external server this one, which it may not be on."""
    postmaster_pid: int | None
    """On its host. None: it is an external server."""
    log: LogFile | None
    """None: it is an external server."""

    @property
    def is_managed(self) -> bool:
        """Whether Plinth has started it."""
        return self.postmaster_pid is not None

    @property
    def is_local(self) -> bool:
        """Whether it is known to run on this machine."""
        return self.is_managed and self.host.name is None


class Topology(NamedTuple):
    """The nodes that run for a variant; the load goes to the primary."""

    nodes: tuple[Node, ...]

    @property
    def primary(self) -> Node:
        """The node that takes writes."""
        return next(node for node in self.nodes if node.name == PRIMARY)
