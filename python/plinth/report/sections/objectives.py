"""Texts about objectives, shared by the terminal, Markdown, JUnit XML and, by report.json, the HTML page."""

from plinth.model.analysis import Analysis
from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.objective import LATENCY_QUANTILES, SIZES, ObjectiveResult, Outcome
from plinth.model.report import ObjectiveText, Report
from plinth.model.safety import grade_words
from plinth.model.units import format_decimal_size, format_duration
from plinth.report.sections.section import Block, Entry, Section, Table, entry
from plinth.report.text import figure, latency

_HEADS = ("Objective", "Variant", "Figure [95 % interval]", "Outcome")
_NOTE = (
    "Met or not met: the whole 95 % interval lies on that side of the bound. Of a latency the figure is the median of the "
    "trials' own percentiles."
)
_STYLES: dict[Outcome, str] = {
    "not met": "bold red",
    "inconclusive": "yellow",
    "not measured": "yellow",
    "met": "green",
}
"""From the worst."""


def objective_texts(analysis: Analysis) -> tuple[ObjectiveText, ...]:
    """Return a text for each objective and variant, in the order of the analysis."""
    labels = {variant.id: variant.label for variant in analysis.variants}
    return tuple(
        ObjectiveText(
            requirement=one.requirement,
            variant=labels[one.variant],
            figure=_figure(one),
            outcome=one.outcome,
            reason=one.reason or "",
        )
        for one in analysis.objectives
    )


def outcome_text(of: ObjectiveText) -> str:
    """Return the outcome and its reason: "inconclusive: the interval includes the bound"."""
    return f"{of.outcome}: {of.reason}" if of.reason else of.outcome


def objective_sentence(of: ObjectiveText) -> str:
    """Return one line: "p99 latency at most 20ms: met: 12.3 ms [11.9 ms, 12.8 ms]"."""
    return f"{of.requirement}: {outcome_text(of)}" + ("" if of.figure == NOT_AVAILABLE else f" ({of.figure})")


def _figure(of: ObjectiveResult) -> str:
    if of.metric == "commits":
        return grade_words(of.grade, of.basis or "assumed") if of.grade else NOT_AVAILABLE
    if of.metric in LATENCY_QUANTILES:
        return figure(of.figure, latency)
    if of.metric == "recovery":
        return figure(of.figure, format_duration)
    return figure(of.figure, format_decimal_size if of.metric in SIZES else number)


def _blocks(report: Report) -> list[Block]:
    rows = [(one.requirement, one.variant, one.figure, outcome_text(one)) for one in report.objectives]
    return [Table(_HEADS, rows), _NOTE] if rows else []


def _entries(report: Report) -> list[Entry]:
    """List unmet ones first, since a terminal lists some only."""
    outcomes = list(_STYLES)
    ordered = sorted(report.objectives, key=lambda one: outcomes.index(one.outcome))
    return [entry(one.variant, objective_sentence(one), _STYLES[one.outcome]) for one in ordered]


OBJECTIVES = Section(
    id="objectives",
    title="Objectives",
    note=_NOTE,
    blocks=_blocks,
    entries=_entries,
    nouns="objectives",
    most=12,
    in_summary=True,
)
