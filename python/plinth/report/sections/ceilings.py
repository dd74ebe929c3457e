"""The fsync probe: durable writes by storage, and the commit rate that each variant's storage permits."""

from collections.abc import Mapping
from typing import get_args

from plinth.model.choices import WAL_BLOCK_BYTES, WriteGroup
from plinth.model.figures import NOT_AVAILABLE, number, percent
from plinth.model.pg_units import format_block_size
from plinth.model.probe import FsyncCase, FsyncProbe, FsyncResult
from plinth.model.report import FlushFigure, Report, StorageFlushes
from plinth.report.curves import percentile_curve
from plinth.report.sections.section import Section, Table
from plinth.report.text import latency, variant_name

_WRITES: tuple[WriteGroup, ...] = get_args(WriteGroup)
_DRAWN = ("one_block", "group_commit")
"""The others would be too many curves."""
_HEADS = ("Variant", "Flush, median", "One client, commits/s", "All clients, commits/s", "Reached")


def storage_flushes(probes: Mapping[str, FsyncProbe]) -> tuple[StorageFlushes, ...]:
    """Return, by storage, the durable writes of every method, then commits of one and of many writers."""
    return tuple(
        StorageFlushes(
            storage=storage,
            verdict=probe.plausibility.verdict,
            reasons=probe.plausibility.reasons,
            figures=tuple(_figure(result) for group in (*_WRITES, "group_commit") for result in probe.of(group)),
        )
        for storage, probe in probes.items()
    )


def _figure(result: FsyncResult) -> FlushFigure:
    figure = result.figure
    return FlushFigure(
        label=_label(result.case),
        kind="commits" if result.case.group == "group_commit" else "write",
        ops_per_s=figure.ops_per_s if figure else None,
        latency_p50_ns=figure.median_ns if figure else None,
        latency_p99_ns=figure.percentiles_ns["99"] if figure else None,
        latency_curve=percentile_curve(figure.buckets) if figure and result.case.group in _DRAWN else (),
        unavailable=result.unavailable,
    )


def _label(case: FsyncCase) -> str:
    """Return what the table calls a case: "fdatasync", "64 kB: fdatasync", "two of 64 kB: fsync", "8 kB: write, close, fsync"."""
    block = format_block_size(case.block_bytes)
    match case.group:
        case "one_block":
            return case.label if case.block_bytes == WAL_BLOCK_BYTES else f"{block}: {case.label}"
        case "two_blocks":
            return f"two of {block}: {case.label}"
        case "other_descriptor":
            return f"{block}: {case.label}"
        case "unsynced":
            return f"{block}, not synced"
        case _:
            return case.label


def _blocks(report: Report) -> list[Table]:
    rows = []
    for variant in report.analysis.variants:
        of = variant.ceiling
        if of.unavailable is not None or of.one_client_per_s is None or of.flush_median_ns is None:
            rows.append((variant_name(variant), f"{NOT_AVAILABLE}: {of.unavailable}", "", "", ""))
            continue
        flush = f"{latency(of.flush_median_ns)} ({of.method} on {of.storage})"
        reached = NOT_AVAILABLE if of.reached is None else percent(of.reached, 0)
        of_all = f"{number(of.clients_per_s or 0)} of {of.clients}"
        rows.append((variant_name(variant), flush, number(of.one_client_per_s), of_all, reached))
    return [Table(_HEADS, rows)]


CEILINGS = Section(
    id="ceilings",
    title="Commit ceiling",
    note="Measured by the fsync probe before any server was started there. One client commits at most once per flush; "
    "several clients can share a flush. A transaction costs more than its flush.",
    blocks=_blocks,
)
