"""Actions of an experiment: what is done to the server at set times of each trial, beside the load."""

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.units import DurationS, format_duration


class TimedAction(Frozen, ABC):
    """The fields of every action."""

    at_s: DurationS = Field(
        alias="at",
        ge=0,
        description="When it begins, counted from the end of the warm-up; less than measure.duration.",
        examples=["10s"],
    )

    def title(self) -> str:
        """A description of the action and its time."""
        return f"{self.what()} at {format_duration(self.at_s)}"

    @abstractmethod
    def what(self) -> str:
        """A description of the action."""

    @abstractmethod
    def statement(self) -> str:
        """The SQL that does it."""


class CheckpointAction(TimedAction):
    """CHECKPOINT, which needs the rights of a superuser or of pg_checkpoint."""

    do: Literal["checkpoint"]

    def what(self) -> str:
        """A description of the action."""
        return "checkpoint"

    def statement(self) -> str:
        """The SQL that does it."""
        return "CHECKPOINT"


class ReloadAction(TimedAction):
    """The server reads its configuration files again (pg_reload_conf), as after ALTER SYSTEM in an earlier action."""

    do: Literal["reload"]

    def what(self) -> str:
        """A description of the action."""
        return "reload"

    def statement(self) -> str:
        """The SQL that does it."""
        return "SELECT pg_reload_conf()"


class SqlAction(TimedAction):
    """SQL of one's own, such as VACUUM or CREATE INDEX CONCURRENTLY, in a session of its own."""

    do: Literal["sql"]
    sql: str = Field(
        min_length=1,
        description="One statement, or several that are one transaction.",
        examples=["VACUUM (ANALYZE) pgbench_accounts"],
    )

    def what(self) -> str:
        """A description of the action."""
        return f"sql: {' '.join(self.sql.split())}"

    def statement(self) -> str:
        """The SQL that does it."""
        return self.sql


Action = Annotated[CheckpointAction | ReloadAction | SqlAction, Field(discriminator="do")]
