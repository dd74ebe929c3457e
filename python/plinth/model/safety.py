"""What becomes of an acknowledged commit when the power goes."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen

SafetyGrade = Literal["keeps", "unknown", "may lose recent commits", "does not keep"]
"""In order of severity; "unknown" where the facts to judge by could not be had."""


class Safety(Frozen):
    """What becomes of an acknowledged commit when the power goes: judged from facts, and tested where power was cut."""

    grade: SafetyGrade
    reasons: tuple[str, ...]
    tested: str | None = Field(
        default=None, description='What power cuts found: "damage in 0 of 24 power cuts". None: none was made.'
    )
