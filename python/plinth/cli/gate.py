"""The options --fail-on, by which findings end a command with exit code 99 so that a CI pipeline fails, and --junit."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plinth import exit_codes
from plinth.cli.output_file import write_text
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.analysis import Analysis, Verdict
    from plinth.model.objective import Outcome


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


ObjectiveFinding = Literal["objective", "inconclusive"]
FailOnObjectives = Annotated[
    tuple[ObjectiveFinding, ...],
    Parameter(
        name="--fail-on",
        help="End with exit code 99 if there is such a finding: objective, an [[objective]] that a variant does not meet; "
        "inconclusive, one that is inconclusive or was not measured. May be repeated.",
    ),
]
_FINDINGS: "dict[Outcome, Finding | None]" = {
    "met": None,
    "not met": "objective",
    "inconclusive": "inconclusive",
    "not measured": "inconclusive",
}


def require_objectives(objectives: Sequence[object], asked: Sequence[ObjectiveFinding], junit: Path | None) -> None:
    """Raise UsageError if --fail-on or --junit is given for an experiment without objectives."""
    if not objectives and (asked or junit is not None):
        option = "--fail-on" if asked else "--junit"
        raise UsageError(
            f"{option}: the experiment has no [[objective]]",
            hint='such as [[objective]] metric = "latency_p99" max = "20ms"; see docs/guides/objectives.md',
        )


def gated_objectives(analysis: "Analysis", fail_on: Sequence[ObjectiveFinding], junit: Path | None) -> int:
    """Write JUnit XML if requested; return exit code 99 for a finding of `fail_on`, else 0."""
    if junit is not None:
        _write_junit(analysis, fail_on, junit)
    return gated([_FINDINGS[one.outcome] for one in analysis.objectives], fail_on)


def _write_junit(analysis: "Analysis", fail_on: Sequence[ObjectiveFinding], junit: Path) -> None:
    """Write JUnit XML: an unmet objective fails its case; an inconclusive one is skipped unless --fail-on names it."""
    from plinth.report.junit import Case, Suite, outcome_of, render_junit
    from plinth.report.sections.objectives import objective_sentence, objective_texts

    failing = {"objective", *fail_on}
    cases = [
        Case(
            f"{text.variant}: {text.requirement}",
            outcome_of(_FINDINGS[text.outcome], failing),
            objective_sentence(text),
        )
        for text in objective_texts(analysis)
    ]
    write_text(junit, render_junit([Suite(analysis.experiment, cases)]), "write JUnit XML", "--junit")
