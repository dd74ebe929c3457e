"""Merges the rounds of a case: histograms are summed, and percentiles are computed from the sum."""

from collections.abc import Sequence
from typing import Any

from plinth.model.histogram import Buckets
from plinth.model.probe import PERCENTILES, FsyncCase, FsyncFigure, FsyncResult
from plinth.probe.fsync import Round


def merged(case: FsyncCase, rounds: Sequence[Round], device_flushes: int | None) -> FsyncResult:
    """Return the result of all rounds, without figures if one round has none."""
    for one in rounds:
        if one.figure is None:
            return FsyncResult(case=case, unavailable=one.unavailable, failed=one.failed, device_flushes=device_flushes)
    figure = _figure([one.figure for one in rounds if one.figure is not None])
    return FsyncResult(case=case, figure=figure, device_flushes=device_flushes)


def _figure(rounds: Sequence[dict[str, Any]]) -> FsyncFigure:
    latencies = Buckets.of_counts(pair for one in rounds for pair in one["buckets"])
    latencies.min_ns, latencies.max_ns = (min(one["min_ns"] for one in rounds), max(one["max_ns"] for one in rounds))
    ops = latencies.count
    elapsed_ns = sum(one["elapsed_ns"] for one in rounds)
    return FsyncFigure(
        ops=ops,
        flushes=sum(one["flushes"] for one in rounds),
        elapsed_ns=elapsed_ns,
        ops_per_s=ops / (elapsed_ns / 1e9),
        round_ops_per_s=tuple(one["ops"] / (one["elapsed_ns"] / 1e9) for one in rounds),
        min_ns=latencies.min_ns,
        max_ns=latencies.max_ns,
        percentiles_ns={
            f"{percent:g}": latencies.percentile_ns(percent / 100) if ops * (1 - percent / 100) >= 1 else None
            for percent in PERCENTILES
        },
        buckets=latencies.sorted_counts(),
    )
