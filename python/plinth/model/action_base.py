"""What every action of an experiment has: when it begins, and how it is described."""

from abc import ABC, abstractmethod

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
