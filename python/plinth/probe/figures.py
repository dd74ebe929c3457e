"""Merges the rounds of a case: histograms are summed, and percentiles are computed from the sum."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from plinth.model.probe import PERCENTILES, FsyncCase, FsyncFigure, FsyncResult
from plinth.probe.fsync import Round


def merged(case: FsyncCase, rounds: Sequence[Round], device_flushes: int | None) -> FsyncResult:
    """Return the result of all rounds, without figures if one round has none."""
    for one in rounds:
        if one.figure is None:
            return FsyncResult(case=case, unavailable=one.unavailable, failed=one.failed, device_flushes=device_flushes)
    figure = _figure([one.figure for one in rounds if one.figure is not None])
    return FsyncResult(case=case, figure=figure, device_flushes=device_flushes)


def percentile(buckets: Iterable[tuple[int, int]], count: int, share: float) -> int | None:
    """Return the latency that `share` (0 to 1) of `count` do not exceed; None if fewer than one value is expected beyond it."""
    if count * (1 - share) < 1:
        return None
    seen = 0
    for highest_ns, in_bucket in buckets:
        seen += in_bucket
        if seen >= share * count:
            return highest_ns
    raise ValueError("the buckets hold fewer than they should")


def _figure(rounds: Sequence[dict[str, Any]]) -> FsyncFigure:
    counts: Counter[int] = Counter()
    for one in rounds:
        for highest_ns, count in one["buckets"]:
            counts[highest_ns] += count
    buckets = tuple(sorted(counts.items()))
    ops = sum(one["ops"] for one in rounds)
    elapsed_ns = sum(one["elapsed_ns"] for one in rounds)
    return FsyncFigure(
        ops=ops,
        flushes=sum(one["flushes"] for one in rounds),
        elapsed_ns=elapsed_ns,
        ops_per_s=ops / (elapsed_ns / 1e9),
        round_ops_per_s=tuple(one["ops"] / (one["elapsed_ns"] / 1e9) for one in rounds),
        min_ns=min(one["min_ns"] for one in rounds),
        max_ns=max(one["max_ns"] for one in rounds),
        percentiles_ns={f"{percent:g}": percentile(buckets, ops, percent / 100) for percent in PERCENTILES},
        buckets=buckets,
    )
