"""The option --fail-on: findings that make a command end with exit code 99, so that a CI pipeline fails."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plinth import exit_codes

if TYPE_CHECKING:
    from plinth.model.analysis import Verdict

RatioFinding = Literal["regression", "inconclusive"]
Finding = Literal[RatioFinding, "objective"]
FailOn = Annotated[
    tuple[RatioFinding, ...],
    Parameter(
        name="--fail-on",
        help="End with exit code 99 if there is such a finding: regression, a verdict of worse; inconclusive, an undecided "
        "verdict, or a variant that is not compared. May be repeated.",
    ),
]


def finding_of_verdict(verdict: "Verdict | None") -> Finding | None:
    """Return the finding of a verdict, None for none; a variant that is not compared is inconclusive."""
    if verdict == "worse":
        return "regression"
    return "inconclusive" if verdict in (None, "undecided") else None


def gated(found: Iterable[Finding | None], fail_on: Iterable[Finding]) -> int:
    """Return the exit code of a successful command with these findings."""
    return exit_codes.FINDING if set(found) & set(fail_on) else 0
