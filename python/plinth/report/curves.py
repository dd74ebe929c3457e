"""Latency percentile curves from merged histograms."""

import math
from collections import Counter
from collections.abc import Iterable

from plinth.model.load import Histogram
from plinth.model.report import CurvePoint

POINTS_PER_NINE = 12
"""Points of the curve from 90 % to 99 %, and so on: the axis is logarithmic in 1 - quantile."""


def latency_curve(histograms: Iterable[Histogram]) -> tuple[CurvePoint, ...]:
    """Return latency by quantile of all transactions."""
    return percentile_curve(
        bucket for histogram in histograms if histogram.scope == "transaction" for bucket in histogram.buckets
    )


def percentile_curve(buckets: Iterable[tuple[int, int]]) -> tuple[CurvePoint, ...]:
    """Return latency by quantile from (latency, count) pairs, up to the resolution of the count, and the maximum at 1.

    Quantile q is the lowest latency that a share of at least q does not exceed, as HdrHistogram defines it.
    """
    counts: Counter[int] = Counter()
    for latency_ns, count in buckets:
        counts[latency_ns] += count
    total = counts.total()
    if not total:
        return ()
    steps = math.floor(math.log10(total) * POINTS_PER_NINE)
    wanted = [1 - 10 ** (-step / POINTS_PER_NINE) for step in range(steps + 1)] + [1.0]
    points: list[CurvePoint] = []
    reached = 0
    for latency_ns in sorted(counts):
        reached += counts[latency_ns]
        while len(points) < len(wanted) and reached >= wanted[len(points)] * total:
            points.append(CurvePoint(quantile=round(wanted[len(points)], 9), latency_ns=latency_ns))
    return tuple(points)
