"""Renders a report as CSV for other programs: a row for each trial, or the tables of one section."""

import csv
import io

from plinth.common.nearest import nearest
from plinth.common.shown import shown
from plinth.model.errors import UsageError
from plinth.model.report import Report
from plinth.report.sections import SECTIONS
from plinth.report.sections.new_orders import notice_of
from plinth.report.sections.section import Table

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TRIAL_COLUMNS = (
    "trial",
    "block",
    "variant",
    "label",
    "baseline",
    "aa_twin",
    "status",
    "excluded",
    "failure",
    "started_unix_ns",
    "tps",
    "latency_p50_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "failed",
    "steady",
    "wal_bytes_per_transaction",
    "full_page_images_per_transaction",
    "buffer_hits",
    "safety",
    "safety_basis",
    "group",
)

_TPCC_COLUMNS = ("nopm", "notice", "deviations")
_TYPE_COLUMNS = ("tps", "done", "failed", "retried", "latency_p50_ns", "latency_p99_ns")


def render_csv(report: Report) -> str:
    """Return one row per trial in order of execution, including excluded and failed ones. Empty fields are not available.

    Each factor has a further column, named `factor:NAME`; each type of transaction of a workload of several has one for
    each of its figures, named `FIGURE:TYPE`. Trials of the TPC-C-derived workload have three more.
    """
    factors = list(dict.fromkeys(name for variant in report.variants for name in variant.levels))
    results = {variant.id: variant for variant in report.analysis.variants}
    points = {point.number: point for variant in results.values() for point in variant.trials}
    types = list(dict.fromkeys(one.name for point in points.values() for one in point.transactions))
    by_type = [f"{figure}:{name}" for name in types for figure in _TYPE_COLUMNS]
    of_tpcc = _TPCC_COLUMNS if report.tpcc else ()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    by_factor = (f"factor:{name}" for name in factors)
    writer.writerow(_cell(name) for name in (*_TRIAL_COLUMNS, *by_factor, *by_type, *of_tpcc))
    for trial in report.trials:
        variant, point = results[trial.variant], points[trial.number]
        work, transactions = point.work, {one.name: one for one in point.transactions}
        writer.writerow(
            _cell(value)
            for value in (
                trial.number,
                trial.block,
                variant.id,
                variant.label,
                _bool(variant.is_baseline),
                _bool(variant.is_aa_twin),
                trial.status,
                trial.excluded,
                trial.failure,
                trial.started_unix_ns,
                point.tps,
                point.latency_p50_ns,
                point.latency_p95_ns,
                point.latency_p99_ns,
                point.latency_max_ns,
                point.failed,
                _bool(point.steady),
                *((work.wal_bytes, work.full_page_images, work.buffer_hits) if work else (None,) * 3),
                variant.safety.grade,
                variant.safety.basis,
                variant.group,
                *(_field(variant.levels.get(name)) for name in factors),
                *(getattr(transactions.get(name), figure, None) for name in types for figure in _TYPE_COLUMNS),
                *((point.nopm, *notice_of(report.tpcc, variant.label)) if report.tpcc else ()),
            )
        )
    return text.getvalue()


def render_section_csv(report: Report, section: str) -> str:
    """Return the tables of a section, given by its id, with an empty line between them. Raises UsageError if it has none."""
    tables = {
        one.id: found
        for one in SECTIONS
        if (found := [block for block in one.blocks(report) if isinstance(block, Table) and block.rows])
    }
    if section not in tables:
        raise UsageError(
            f"--section: got {section!r}, which has no table in this report",
            hint=nearest(section, tables) or "those with tables are " + ", ".join(tables),
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, table in enumerate(tables[section]):
        if number:
            text.write("\n")
        writer.writerows([_cell(value) for value in row] for row in (table.heads, *table.rows))
    return text.getvalue()


def _cell(value: object) -> object:
    """Escape text; text that a spreadsheet would take for a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return value
    text = shown(value)
    return f"'{text}" if value.startswith(_FORMULA) else text


def _bool(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _field(value: object) -> object:
    return _bool(value) if isinstance(value, bool) else value
