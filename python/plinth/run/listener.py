"""What a run reports while it is running; the command line shows it, tests record it."""

from dataclasses import dataclass
from typing import Protocol

from plinth.model.load import LoadResult, Second
from plinth.model.plan import PlannedTrial, Variant
from plinth.model.progress import Progress
from plinth.model.trial import Trial


@dataclass(frozen=True)
class LiveSecond:
    """One finished second of the trial that is running; `host` holds a few figures of the observer."""

    second: Second
    elapsed_s: float
    total_s: float
    host: dict[str, float]


class Listener(Protocol):
    """Called from the conductor's thread, `note` from others as well; its methods must return quickly."""

    def phase(self, text: str) -> None:
        """Show that a new part of the run begins: "initialise cluster 1-disk"."""

    def progress(self, progress: Progress) -> None:
        """Show the progress of a long task."""

    def note(self, text: str) -> None:
        """Show a message to the user."""

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        """Show that the trial begins; `total` is the number of trials."""

    def second(self, live: LiveSecond) -> None:
        """Show that a second of the trial has passed."""

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        """Show that the trial is in the bundle, with the result of its load; None where the load did not finish."""
