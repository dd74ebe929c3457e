"""How servers recovered after power cuts: how long it took, and what they did meanwhile."""

from typing import NamedTuple

from plinth.model.figures import NOT_AVAILABLE
from plinth.model.power_cuts import DurabilityTest, RecoveryFigures
from plinth.model.report import Report
from plinth.model.units import format_count, format_duration, format_size
from plinth.report.sections.section import Section, sentences_of, table_of


class _Row(NamedTuple):
    """A variant whose server came back after a power cut."""

    label: str
    test: DurabilityTest
    median_s: float
    longest_s: float
    parts: RecoveryFigures | None


def _rows(report: Report) -> list[_Row]:
    return [
        _Row(one.label, test, test.recovery_median_s, test.recovery_max_s, test.recovery)
        for one in report.analysis.variants
        if (test := one.durability) is not None
        and test.recovery_median_s is not None
        and test.recovery_max_s is not None
    ]


def _replayed(row: _Row) -> str:
    """Return how much WAL was replayed, and how fast."""
    if row.parts is None:
        return NOT_AVAILABLE
    size, rate = format_size(row.parts.redo_bytes), row.parts.redo_bytes_per_s
    return size if rate is None else f"{size}, {format_size(rate)}/s"


def _part(seconds: float | None) -> str:
    return NOT_AVAILABLE if seconds is None else format_duration(seconds)


def _refused(row: _Row) -> int:
    """Return after how many power cuts the server did not come back: no time is known of these."""
    return row.test.kinds.get("recovery refused", 0)


def _until_connections(row: _Row) -> str:
    words = f"{format_duration(row.median_s)}, at most {format_duration(row.longest_s)}"
    refused = _refused(row)
    return f"{words}, never in {refused} of {row.test.made}" if refused else words


def _sentence(row: _Row) -> str:
    """Return what the terminal says of a variant."""
    refused = _refused(row)
    words = (
        f"{format_duration(row.median_s)} until connections, at most {format_duration(row.longest_s)}, in "
        f"{format_count(row.test.made - refused, 'power cut')}"
    ) + (f", and never in {refused}" if refused else "")
    if row.parts is None:
        return words
    return (
        f"{words}: {_part(row.parts.mounted_s)} for its file systems, {format_duration(row.parts.before_redo_s)} before WAL was "
        f"replayed, {format_duration(row.parts.redo_s)} for {_replayed(row)}, {format_duration(row.parts.after_redo_s)} after it"
    )


RECOVERIES = Section(
    id="recoveries",
    title="Recovery",
    note="After a power cut, from the return of the power until the server takes connections: file systems are mounted, all files of the "
    "data directory are synced, WAL is replayed from the last checkpoint on, a checkpoint is written, and the first session reads the "
    "catalogs. Medians of the cuts; the parts are of the server's own log, and the last is what is left.",
    blocks=table_of(
        _rows,
        {
            "Variant": lambda row: row.label,
            "Cuts": lambda row: str(row.test.made),
            "Until connections": _until_connections,
            "File systems": lambda row: _part(row.parts and row.parts.mounted_s),
            "Before replay": lambda row: _part(row.parts and row.parts.before_redo_s),
            "Replay": lambda row: _part(row.parts and row.parts.redo_s),
            "WAL replayed": _replayed,
            "After replay": lambda row: _part(row.parts and row.parts.after_redo_s),
            "First session": lambda row: _part(row.parts and row.parts.session_s),
        },
    ),
    entries=sentences_of(_rows, lambda row: row.label, _sentence),
    page="storage",
)
