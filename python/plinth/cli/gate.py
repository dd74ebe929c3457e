"""--fail-on: which findings make a command end with exit code 99, so that a pipeline stops there."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from plinth.model.analysis import Verdict

FAILED_GATE = 99
"""As k6 has it for a threshold that was crossed; no other outcome of a command gives it."""
RatioFinding = Literal["regression", "inconclusive"]
Finding = Literal[RatioFinding, "objective"]
FailOn = Annotated[
    tuple[RatioFinding, ...],
    Parameter(
        name="--fail-on",
        negative="",
        help="End with exit code 99 if there is such a finding: regression, a verdict of worse; inconclusive, an undecided "
        "verdict, or a variant that is not compared. May be repeated.",
    ),
]


def finding_of_verdict(verdict: "Verdict | None") -> Finding | None:
    """The finding that a verdict is; what is not compared is inconclusive."""
    if verdict == "worse":
        return "regression"
    return "inconclusive" if verdict in (None, "undecided") else None


def gated(found: Iterable[Finding | None], fail_on: Iterable[Finding]) -> int:
    """The exit code of a command that did what it was asked to do and found this."""
    return FAILED_GATE if set(found) & set(fail_on) else 0
