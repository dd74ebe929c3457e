"""Whether an acknowledged commit survives a power failure."""

from typing import Literal, get_args

from pydantic import Field

from plinth.model.base import Frozen

SafetyGrade = Literal["keeps", "unknown", "may lose recent commits", "does not keep"]
"""From the best to the worst; "unknown" where the facts to judge by could not be had."""
GRADES: tuple[SafetyGrade, ...] = get_args(SafetyGrade)
"""From the best to the worst, wherever grades are ordered.

A variant has the worst grade of what was found. So "unknown" stands before the two that are known losses: a setting that
loses commits loses them whatever the storage is that could not be seen.
"""


class Safety(Frozen):
    """Whether an acknowledged commit survives a power failure: judged from facts, and tested where power was cut."""

    grade: SafetyGrade
    reasons: tuple[str, ...]
    tested: str | None = Field(
        default=None, description='What power cuts found: "damage in 0 of 24 power cuts". None: none was made.'
    )
