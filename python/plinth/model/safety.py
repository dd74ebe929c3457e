"""Whether an acknowledged commit survives a power failure."""

from typing import Literal, get_args

from pydantic import Field

from plinth.model.base import Frozen

SafetyGrade = Literal["keeps", "unknown", "may lose recent commits", "does not keep"]
"""From the best to the worst; "unknown" where the facts to judge by could not be had."""
GRADES: tuple[SafetyGrade, ...] = get_args(SafetyGrade)
"""From the best to the worst, wherever grades are ordered.

A variant has the worst grade of what was found. So "unknown" stands before the two that are known losses: a setting that
loses commits loses them on any storage, also on one that could not be seen.
"""


SafetyBasis = Literal["assumed", "tested"]
"""assumed: judged from facts and settings. tested: power cuts have shown it."""


def grade_words(grade: SafetyGrade, basis: SafetyBasis) -> str:
    """Return the grade with what it rests on: "keeps (assumed)", "keeps (tested)".

    A loss that facts know of needs no test, so only a tested one has a word behind it.
    """
    return f"{grade} ({basis})" if grade == "keeps" or basis == "tested" else grade


class Safety(Frozen):
    """Whether an acknowledged commit survives a power failure: judged from facts, and tested where power was cut."""

    grade: SafetyGrade
    reasons: tuple[str, ...]
    tested: str | None = Field(
        default=None, description='What power cuts found: "damage in 0 of 24 power cuts". None: none was made.'
    )
    basis: SafetyBasis = Field(
        default="assumed",
        description="What the grade rests on. tested: power cuts have shown it; assumed: facts and settings alone, also where power cuts "
        "did not show a loss that these know of.",
    )
    power_loss: str | None = Field(
        default=None, description="What survives when the primary loses its power. None: there is no standby."
    )
    primary_loss: str | None = Field(
        default=None, description="What survives when the primary is lost with its storage. None: there is no standby."
    )

    @property
    def words(self) -> str:
        """The grade with what it rests on."""
        return grade_words(self.grade, self.basis)
