"""Latency percentile curves."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from plinth.model.histogram import Buckets, median_of_trials
from plinth.model.load import Histogram
from plinth.model.report import CurvePoint

POINTS_PER_NINE = 12
"""Points of the curve from 90 % to 99 %, and so on: the axis is logarithmic in 1 - quantile."""


def latency_curve(trials: Iterable[Iterable[Histogram]]) -> tuple[CurvePoint, ...]:
    """Return latency of transactions by quantile: the median of the trials' own, as in every table, and at 1 the longest of all."""
    curves = [curve for histograms in trials if (curve := percentile_curve(_transactions(histograms)))]
    if not curves:
        return ()
    shortest = min(curves, key=len)
    return (
        *(_median([curve[place] for curve in curves]) for place in range(len(shortest) - 1)),
        max((curve[-1] for curve in curves), key=lambda point: point.latency_ns),
    )


def _transactions(histograms: Iterable[Histogram]) -> Iterable[tuple[int, int]]:
    return chain.from_iterable(histogram.buckets for histogram in histograms if histogram.scope == "transaction")


def _median(points: Sequence[CurvePoint]) -> CurvePoint:
    """Return the median of the points of one quantile."""
    latency_ns = round(median_of_trials([point.latency_ns for point in points]))
    return CurvePoint(quantile=points[0].quantile, latency_ns=latency_ns)


def percentile_curve(buckets: Iterable[tuple[int, int]]) -> tuple[CurvePoint, ...]:
    """Return latency by quantile from (latency, count) pairs, up to the resolution of the count, and the maximum at 1.

    Quantile q is the lowest latency that a share of at least q does not exceed, as HdrHistogram defines it.
    """
    latencies = Buckets.of_counts(buckets)
    if not latencies:
        return ()
    steps = math.floor(math.log10(latencies.count) * POINTS_PER_NINE)
    wanted = [1 - 10 ** (-step / POINTS_PER_NINE) for step in range(steps + 1)] + [1.0]
    return tuple(
        CurvePoint(quantile=round(quantile, 9), latency_ns=latencies.percentile_ns(quantile)) for quantile in wanted
    )
