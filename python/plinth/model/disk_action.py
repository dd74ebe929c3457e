"""The action that changes the emulated disks of a server while the load runs."""

from typing import Literal, Self

from pydantic import Field, model_validator

from plinth.model.action_base import LastingAction
from plinth.model.base import Name
from plinth.model.disk import Physics
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
