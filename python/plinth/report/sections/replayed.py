"""Classes of replayed statements: how long they took when they were recorded, and here."""

from rich.text import Text

from plinth.common.shown import shown
from plinth.model.analysis import VariantResult
from plinth.model.figures import NOT_AVAILABLE, Estimate
from plinth.model.replayed import ReplayedClass, ReplayFailure, TimeRatio
from plinth.model.report import Report
from plinth.report.sections.section import Block, Entry, Section, Table
from plinth.report.text import figure, latency, ratio, variant_name

_HEADS = (
    "Variant",
    "Statement",
    "Done",
    "Failed",
    "Recorded, mean",
    "Replayed, mean",
    "p50",
    "p99",
    "Replayed / recorded",
    "Against the baseline",
)
_FAILURE_HEADS = ("Variant", "Statement", "Outcome", "SQLSTATE", "Count", "First message")
_KINDS = {
    "sql": "failed",
    "refused": "refused",
    "refused_write": "refused as a write",
    "failed_as_recorded": "failed as recorded",
}
_NOTE = (
    "A statement stands for all that differ from it in constants only. Recorded: how long the same statements took by the server's log. "
    "Replayed: from sending to the end of the reply, so with the way to the server and back, and without the time that a statement waited "
    "for its session. Means of each trial, median of the trials with its 95 % interval; ratios above 1 are slower. Verdicts are "
    "corrected for the number of classes and variants that are compared (Holm). Times and comparisons rest on the statements that were "
    "done; a class of which some failed, warm-up included, is never called faster."
)
_MOST_CLASSES = 10
_MOST_CHARACTERS = 90


def _rows(variant: VariantResult) -> list[tuple[str, ...]]:
    return [
        (
            variant_name(variant),
            one.name,
            f"{one.done:,}",
            f"{one.failed:,}",
            _mean(one.recorded_mean_ns),
            _mean(one.mean_ns),
            _percentile(one.p50_ns),
            _percentile(one.p99_ns),
            _compared(one.to_recording),
            _compared(one.to_baseline),
        )
        for one in variant.replayed
    ]


def _failures(variant: VariantResult) -> list[tuple[str, ...]]:
    return [
        (
            variant_name(variant),
            one.name,
            _kind(failure),
            failure.sqlstate or NOT_AVAILABLE,
            f"{failure.count:,}",
            shown(failure.message),
        )
        for one in variant.replayed
        for failure in one.failures
    ]


def _kind(failure: ReplayFailure) -> str:
    return _KINDS.get(failure.kind, failure.kind.replace("_", " "))


def _percentile(of: int | None) -> str:
    return NOT_AVAILABLE if of is None else latency(of)


def _mean(of: Estimate | None) -> str:
    return NOT_AVAILABLE if of is None else figure(of, latency)


def _compared(of: TimeRatio | None) -> str:
    return NOT_AVAILABLE if of is None else f"{ratio(of.ratio)}, {of.verdict}"


def _line(one: ReplayedClass) -> str:
    """Format one class: "0.42 ms, recorded 0.31 ms (1.3x [1.2, 1.4], slower), 1,234 done: SELECT ..."."""
    text = one.name if len(one.name) <= _MOST_CHARACTERS else f"{one.name[:_MOST_CHARACTERS]} ..."
    took = "not done" if one.mean_ns is None else latency(one.mean_ns.value)
    if one.recorded_mean_ns is not None:
        took += f", recorded {latency(one.recorded_mean_ns.value)}"
    compared = "" if one.to_recording is None else f" ({_compared(one.to_recording)})"
    failed = "".join(f", {failure.count:,} {_in_words(failure)}" for failure in one.failures)
    return f"{took}{compared}, {one.done:,} done{failed}: {text}"


def _in_words(failure: ReplayFailure) -> str:
    """Format a way to fail: "refused (42725: function f(unknown) is not unique)"."""
    message = shown(failure.message)
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[:_MOST_CHARACTERS]} ..."
    code = f"{failure.sqlstate}: " if failure.sqlstate else ""
    return f"{_kind(failure)} ({code}{message})"


def _blocks(report: Report) -> list[Block]:
    rows = [row for variant in report.analysis.variants for row in _rows(variant)]
    failures = [row for variant in report.analysis.variants for row in _failures(variant)]
    tables: list[Block] = [Table(_HEADS, rows), _NOTE] if rows else []
    return [*tables, Table(_FAILURE_HEADS, failures)] if failures else tables


def _entries(report: Report) -> list[Entry]:
    variants = [one for one in report.analysis.variants if one.replayed and not one.is_aa_twin]
    return [_entry(variant) for variant in variants]


def _entry(variant: VariantResult) -> Entry:
    shown = variant.replayed[:_MOST_CLASSES]
    lines = [Text(f"{variant.label}:", style="bold"), *(Text(f"  {_line(one)}") for one in shown)]
    further = len(variant.replayed) - len(shown)
    if further:
        lines.append(Text(f"  and {further} more, in report.md", style="dim"))
    return lines


REPLAYED = Section(id="replayed", title="Replayed statements", note=_NOTE, blocks=_blocks, entries=_entries, page="own")
"""The transactions by type of a recording are these statements, with the latencies from when they were due."""
