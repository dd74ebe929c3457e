"""Texts about objectives, shared by the terminal, Markdown, JUnit XML and, by report.json, the HTML page."""

from plinth.model.analysis import Analysis
from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.objective import LATENCY_QUANTILES, SIZES, ObjectiveResult
from plinth.model.report import ObjectiveText
from plinth.model.safety import grade_words
from plinth.model.units import format_decimal_size
from plinth.report.text import latency
from plinth.report.written import figure

OBJECTIVE_HEADS = ("Objective", "Variant", "Figure [95 % interval]", "Outcome")


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
    return figure(of.figure, format_decimal_size if of.metric in SIZES else number)
