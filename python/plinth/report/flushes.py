"""Results of the fsync probe by storage, for the report."""

from collections.abc import Mapping

from plinth.model.probe import FsyncProbe, FsyncResult
from plinth.model.report import FlushFigure, StorageFlushes
from plinth.report.curves import percentile_curve


def storage_flushes(probes: Mapping[str, FsyncProbe]) -> tuple[StorageFlushes, ...]:
    """Return, by storage, the durable writes of every method, then commits of one and of many writers."""
    return tuple(
        StorageFlushes(
            storage=storage,
            verdict=probe.plausibility.verdict,
            reasons=probe.plausibility.reasons,
            figures=tuple(_figure(result) for result in (*probe.of("one_block"), *probe.of("group_commit"))),
        )
        for storage, probe in probes.items()
    )


def _figure(result: FsyncResult) -> FlushFigure:
    figure = result.figure
    return FlushFigure(
        label=result.case.label,
        kind="commits" if result.case.group == "group_commit" else "write",
        ops_per_s=figure.ops_per_s if figure else None,
        latency_p50_ns=figure.median_ns if figure else None,
        latency_p99_ns=figure.percentiles_ns["99"] if figure else None,
        latency_curve=percentile_curve(figure.buckets) if figure else (),
        unavailable=result.unavailable,
    )
