"""What the executor and its process that talks to Ray say to each other: JSON documents, one a line. None of them holds a secret."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen

AgentCommand = Literal["agent", "host-agent"]
"""What is started on a machine: what drives a part of a load, or what makes storages and starts servers."""


class RayOrder(Frozen):
    """Agents that are to be placed."""

    address: str = Field(description="Of the Ray cluster, as in the experiment.")
    machines: int
    node: str | None = Field(default=None, description="The name or address of the one machine; None: any.")
    not_on: tuple[str, ...] = Field(default=(), description="Names or addresses of machines that have other work.")
    command: AgentCommand = "agent"
    agents: int = Field(
        description="As many as machines, or more that share them: then none gets CPUs of Ray's for itself."
    )
    timeout_s: float = Field(description="How long they may take to be there.")
    certificate: str = Field(description="Of the coordinator, who will connect to the agents.")


class Versions(Frozen):
    """What runs on one machine."""

    plinth: str
    python: str
    ray: str

    def __str__(self) -> str:
        return f"plinth {self.plinth}, Python {self.python}, Ray {self.ray}"


class Placed(Frozen):
    """An actor on a machine, which waits for the coordinator's connection to start the agent."""

    name: str
    address: str
    port: int
    certificate: str
    versions: Versions


class Problem(Frozen):
    """Why agents cannot be placed: on one machine if it has a name, otherwise at all."""

    kind: Literal["missing", "failed"] = "failed"
    message: str
    machine: str | None = None
    hint: str | None = None
    details: tuple[str, ...] = ()


class Answer(Frozen):
    """What came of an order."""

    placed: tuple[Placed, ...] = ()
    problems: tuple[Problem, ...] = ()
    versions: Versions | None = Field(default=None, description="Of this machine.")


class RayEnded(Frozen):
    """An agent has ended: what it printed, and how Ray saw it end."""

    name: str
    said: str
