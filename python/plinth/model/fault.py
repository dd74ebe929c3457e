"""Faults of servers and the failover to a standby, as actions of an experiment."""

from abc import ABC
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from plinth.model.action_base import LastingAction, TimedAction
from plinth.model.base import Name
from plinth.model.choices import CutMode
from plinth.model.standby import PRIMARY
from plinth.model.units import DurationS, format_duration

_NODE = 'The node: "primary", or a standby.'


class ServerAction(TimedAction, ABC):
    """An action that stops, starts, separates or promotes servers of the cluster."""

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes that the experiment names for it."""
        return ()


class OfNode(ServerAction, ABC):
    """An action on one node."""

    node: Name = Field(default=PRIMARY, description=_NODE, examples=["primary"])

    def nodes(self) -> tuple[str, ...]:
        """Return the node."""
        return (self.node,)


class PauseAction(OfNode, LastingAction):
    """All processes of a node's server are stopped (SIGSTOP): it hangs, as on a machine that stalls. It keeps its connections and its
    locks, and goes on where it was. Stopping or starting it ends the pause, too."""

    do: Literal["pause"]

    def what(self) -> str:
        """Return a description of the action."""
        return f"pause {self.node}{self.duration_words()}"

    def ending(self) -> str:
        """Return a description of how its effect ends."""
        return f"continue {self.node}"


class ContinueAction(OfNode):
    """A paused server goes on (SIGCONT); nothing of one that was ended meanwhile."""

    do: Literal["continue"]

    def what(self) -> str:
        """Return a description of the action."""
        return f"continue {self.node}"


class OfPlace(OfNode, ABC):
    """An action on one of the places where a node is stored."""

    holds: Literal["data", "wal"] = Field(
        default="data",
        description="The storage that holds the data directory or the WAL, which may be the same.",
        examples=["wal"],
    )

    @property
    def place(self) -> str:
        """The place, for people."""
        return f"{self.node}'s {'data' if self.holds == 'data' else 'WAL'} storage"


class FillAction(OfPlace, LastingAction):
    """All space of a storage that is free then is taken, by one file; what the server frees later is free again. It has to be a file
    system of its own."""

    do: Literal["fill"]

    def what(self) -> str:
        """Return a description of the action."""
        return f"fill {self.place}{self.duration_words()}"

    def ending(self) -> str:
        """Return a description of how its effect ends."""
        return f"free {self.place}"


class FreeAction(OfPlace):
    """The space that was taken is free again. A server that has ended meanwhile stays so until it is started."""

    do: Literal["free"]

    def what(self) -> str:
        """Return a description of the action."""
        return f"free {self.place}"


class KillAction(OfNode):
    """SIGKILL to the postmaster of a node and to all of its children: a crash of the server, or of its machine."""

    do: Literal["kill"]
    machine: bool = Field(
        default=False,
        description="As when its machine fails: its Patroni is killed with it, so that nothing there can start it again. Without "
        "Patroni there is no difference.",
    )

    def what(self) -> str:
        """Return a description of the action."""
        return f"kill {self.node}{' and its machine' if self.machine else ''}"


class StopAction(OfNode):
    """A node's server is shut down."""

    do: Literal["stop"]
    mode: Literal["fast", "immediate"] = Field(
        default="fast",
        description="As of pg_ctl stop. fast: connections are ended, a checkpoint is written; immediate: no checkpoint.",
    )

    def what(self) -> str:
        """Return a description of the action."""
        return f"stop {self.node} ({self.mode})"


class StartAction(OfNode):
    """A node's server is started again, after its power is restored if that was cut."""

    do: Literal["start"]

    def what(self) -> str:
        """Return a description of the action."""
        return f"start {self.node}"


class PowerAction(ServerAction):
    """The power of nodes is cut, of all in the same moment: their emulated disks lose what is not durable, their servers end."""

    do: Literal["power"]
    node: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        default=(PRIMARY,),
        description="The nodes, each with emulated disks of its own.",
        examples=[["primary", "a"]],
    )
    mode: CutMode = Field(default="drop", description="What the disks' caches lose, as in durability.modes.")

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes."""
        return self.node

    def what(self) -> str:
        """Return a description of the action."""
        return f"cut the power of {', '.join(self.node)} ({self.mode})"


class PromoteAction(OfNode):
    """A standby is promoted, whether or not its primary runs."""

    do: Literal["promote"]

    def what(self) -> str:
        """Return a description of the action."""
        return f"promote {self.node}"


class FailoverAction(ServerAction):
    """A failover: from this time on the primary is probed. When it does not answer it is ended for good (fenced), a standby is
    promoted, the other standbys follow that, and the old primary comes back as a standby."""

    do: Literal["failover"]
    to: Name | None = Field(
        default=None,
        description="The standby to promote. Default: of those that answer, the one that has received the most WAL.",
        examples=["a"],
    )
    probe_interval_s: DurationS = Field(
        default=0.2, gt=0, alias="probe_interval", description="Time between probes of the primary.", examples=["1s"]
    )
    probes: int = Field(default=3, ge=1, le=1000, description="Probes in a row that must fail.")
    rejoin: Literal["rewind", "backup", "none"] = Field(
        default="rewind",
        description="How the old primary comes back. rewind: by pg_rewind, and where that fails by a new base backup; backup: "
        "by a new base backup; none: it stays down.",
    )

    def nodes(self) -> tuple[str, ...]:
        """Return the standby, if one is named."""
        return () if self.to is None else (self.to,)

    def what(self) -> str:
        """Return a description of the action."""
        when = f"{self.probes} probes failed, one each {format_duration(self.probe_interval_s)}"
        return f"fail over to {self.to or 'the standby with the most WAL'} once {when}"


def server_actions(actions: Iterable[TimedAction]) -> tuple[ServerAction, ...]:
    """Return those of actions that are about servers."""
    return tuple(action for action in actions if isinstance(action, ServerAction))
