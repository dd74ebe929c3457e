"""Actions of an experiment: what is done to the server at set times of each trial, while the load runs."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from plinth.model.action_base import LastingAction, TimedAction
from plinth.model.base import Name
from plinth.model.disk import Physics
from plinth.model.fault import (
    ContinueAction,
    FailoverAction,
    FillAction,
    FreeAction,
    KillAction,
    PauseAction,
    PowerAction,
    PromoteAction,
    StartAction,
    StopAction,
)
from plinth.model.flashback import SnapshotAction
from plinth.model.network import Direction, LinkAsked, LinkChanges, LinkName, all_directions, directions_of
from plinth.model.standby import PRIMARY


class DiskAction(LastingAction):
    """Emulated disks become slower, or faster; what is not named stays as it is."""

    do: Literal["disk"]
    node: Name = Field(default=PRIMARY, description='The node: "primary", or a standby.', examples=["primary"])
    holds: Literal["data", "wal"] | None = Field(
        default=None,
        description="Only the disks below the storage that holds the data directory, or the WAL. Default: all of the node.",
        examples=["wal"],
    )
    physics: Physics = Field(description="What changes.", examples=[{"flush_latency": "50ms"}])

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.changes:
            raise ValueError("nothing to change: name numbers of the disk in physics, such as flush_latency")
        return self

    @property
    def changes(self) -> tuple[str, ...]:
        """The fields of `physics` that are named."""
        return tuple(name for name, value in self.physics if value is not None)

    @property
    def place(self) -> str:
        """Which disks, for people."""
        return f"{self.node}'s {'' if self.holds is None else 'data ' if self.holds == 'data' else 'WAL '}disks"

    def what(self) -> str:
        """Return a description of the action."""
        return f"disk: {self.place}: {self.physics.words()}{self.duration_words()}"

    def ending(self) -> str:
        """Return a description of how its effect ends."""
        return f"disk: {self.place}: as before"


class StatementAction(TimedAction, ABC):
    """An action that is done by SQL."""

    @abstractmethod
    def statement(self) -> str:
        """Return the SQL that does it."""


class CheckpointAction(StatementAction):
    """CHECKPOINT, which needs the rights of a superuser or of pg_checkpoint."""

    do: Literal["checkpoint"]

    def what(self) -> str:
        """Return a description of the action."""
        return "checkpoint"

    def statement(self) -> str:
        """Return the SQL that does it."""
        return "CHECKPOINT"


class ReloadAction(StatementAction):
    """The server reads its configuration files again (pg_reload_conf), as after ALTER SYSTEM in an earlier action."""

    do: Literal["reload"]

    def what(self) -> str:
        """Return a description of the action."""
        return "reload"

    def statement(self) -> str:
        """Return the SQL that does it."""
        return "SELECT pg_reload_conf()"


class SqlAction(StatementAction):
    """Custom SQL, such as VACUUM or CREATE INDEX CONCURRENTLY, in its own session."""

    do: Literal["sql"]
    sql: str = Field(
        min_length=1,
        description="One statement, or several that are one transaction.",
        examples=["VACUUM (ANALYZE) pgbench_accounts"],
    )

    def what(self) -> str:
        """Return a description of the action."""
        return f"sql: {' '.join(self.sql.split())}"

    def statement(self) -> str:
        """Return the SQL that does it."""
        return self.sql


class NetworkAction(LastingAction, LinkAsked):
    """Links of [network] change, for packets that are sent from then on; what is not named stays as it is."""

    do: Literal["network"]
    link: LinkName | None = Field(
        default=None,
        description="NODE-NODE for both directions, NODE-to-NODE for one. Default: all links.",
        examples=["primary-a"],
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.words():
            raise ValueError("nothing to change: name delay, jitter, loss, rate, queue or partitioned")
        if self.link is not None:
            directions_of(self.link)
        return self

    def what(self) -> str:
        """Return a description of the action."""
        return f"network: {self.link or 'all links'}: {self.words()}{self.duration_words()}"

    def ending(self) -> str:
        """Return a description of how its effect ends."""
        return f"network: {self.link or 'all links'}: as before"

    def changes(self, nodes: Iterable[str]) -> dict[Direction, LinkChanges]:
        """Return what is changed of which directions, of those between `nodes`."""
        all_of_them = all_directions(nodes)
        asked = all_of_them if self.link is None else directions_of(self.link)
        changes = LinkChanges(**{name: getattr(self, name) for name in LinkChanges.model_fields})
        return {direction: changes for direction in asked if direction in all_of_them}


Action = Annotated[
    CheckpointAction
    | ReloadAction
    | SqlAction
    | NetworkAction
    | DiskAction
    | PauseAction
    | ContinueAction
    | FillAction
    | FreeAction
    | KillAction
    | StopAction
    | StartAction
    | PowerAction
    | PromoteAction
    | FailoverAction
    | SnapshotAction,
    Field(discriminator="do"),
]
