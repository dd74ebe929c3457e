"""Open loops: how many transactions were due, done, skipped, late and left open, and how late they began."""

from plinth.model.report import Report
from plinth.report.sections.section import Section, Table
from plinth.report.text import latency_pair, variant_name

_HEADS = ("Variant", "Due", "Done", "Skipped", "Late", "Left open", "Service p50 / p99", "Schedule lag p50 / p99")


def _blocks(report: Report) -> list[Table]:
    rows = [
        (
            variant_name(variant),
            *(f"{count:,}" for count in (loop.scheduled, loop.done, loop.skipped, loop.late, loop.open)),
            latency_pair(loop.service),
            latency_pair(loop.schedule_lag),
        )
        for variant in report.analysis.variants
        if (loop := variant.open_loop) is not None
    ]
    return [Table(_HEADS, rows)]


SCHEDULE = Section(id="schedule", title="Schedule", blocks=_blocks)
