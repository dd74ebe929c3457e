"""Classes of replayed statements, next to their recording and to the baseline."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.figures import Estimate

TimeVerdict = Literal["slower", "faster", "no difference shown", "undecided"]


class TimeRatio(Frozen):
    """How a time compares with another one."""

    ratio: Estimate = Field(description="More than 1 is slower.")
    verdict: TimeVerdict = Field(description="Corrected for all classes and variants that are compared.")
    p_value: float | None = Field(description="Corrected likewise; None where there are too few trials.")


class ReplayFailure(Frozen):
    """Statements of a class that failed in one way, in a variant's counted trials, warm-up included."""

    kind: str = Field(
        description="refused: the server does not take their types, values or encoding; refused_write: they write, or follow a write, "
        "and sessions are read-only; failed_as_recorded; others: as errors of a load."
    )
    sqlstate: str | None
    count: int
    message: str = Field(description="The first one.")


class ReplayedClass(Frozen):
    """A class of replayed statements over a variant's counted trials; None: the recording does not say, or there is nothing to compare.

    Times of the replay are from sending to the end of the reply, whenever a statement was due; recorded ones are the server's own.
    """

    name: str = Field(description="The text without constants.")
    done: int = Field(description="What all times and comparisons rest on.")
    failures: tuple[ReplayFailure, ...] = Field(
        default=(), description="If there are any, no comparison says that the class is faster."
    )
    recorded_mean_ns: Estimate | None = Field(description="Of the same statements, when they were recorded.")
    mean_ns: Estimate | None
    p50_ns: int | None
    p99_ns: int | None
    to_recording: TimeRatio | None
    to_baseline: TimeRatio | None = Field(description="Of the variant's stratum; None of the baseline itself.")

    @property
    def failed(self) -> int:
        """Return how many failed in the counted trials, warm-up included."""
        return sum(one.count for one in self.failures)
