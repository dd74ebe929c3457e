"""What every action of an experiment has: when it begins, how long its effect lasts, and how it is described."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

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
        """Return a description of the action and its time."""
        return f"{self.what()} at {format_duration(self.at_s)}"

    @abstractmethod
    def what(self) -> str:
        """Return a description of the action."""


class LastingAction(TimedAction, ABC):
    """An action whose effect lasts until it is ended: after a time, by another action, or with the measured time at the latest."""

    for_s: DurationS | None = Field(
        default=None,
        alias="for",
        gt=0,
        description="How long it lasts. Default: until another action ends it, at most until the end of the measured time.",
        examples=["2s"],
    )

    def duration_words(self) -> str:
        """Return the end of the description: how long it lasts, where that is said."""
        return "" if self.for_s is None else f" for {format_duration(self.for_s)}"

    @abstractmethod
    def ending(self) -> str:
        """Return a description of how its effect ends."""


def check_times(actions: Iterable[TimedAction], duration_s: float) -> None:
    """Raise ValueError for an action that begins or ends after the measured time."""
    measured = f"the measured time is {format_duration(duration_s)}"
    for action in actions:
        if action.at_s >= duration_s:
            raise ValueError(f"action {action.title()}: {measured} and over by then")
        if isinstance(action, LastingAction) and action.for_s is not None and action.at_s + action.for_s > duration_s:
            end = format_duration(round(action.at_s + action.for_s, 9))
            raise ValueError(
                f"action {action.title()}: it would end at {end}, and {measured}: leave `for` out to have it last until then"
            )
