"""Latency percentiles. Of a trial they come from its merged histogram, since counts can be summed and percentiles cannot; of a variant
each is the median of its trials' own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from plinth.model.analysis import StatementLatency
from plinth.model.latency import LatencyPercentiles
from plinth.model.load import Histogram
from plinth.model.median import median_of_trials

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Latency:
    """A merged histogram: `values_ns` ascending, each the highest value of its bucket, and how many fell there."""

    values_ns: Counts
    counts: Counts
    sum_ns: int
    max_ns: int

    @property
    def count(self) -> int:
        """Number of latencies."""
        return int(self.counts.sum())

    def percentile_ns(self, per_mille: int) -> int:
        """The value of rank ceil(count * per_mille / 1000), never above the largest latency seen."""
        rank = -(-self.count * per_mille // 1000)
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return min(int(self.values_ns[place]), self.max_ns)

    def percentiles(self) -> LatencyPercentiles:
        """The percentiles that every table shows."""
        return LatencyPercentiles(
            p50_ns=self.percentile_ns(500),
            p90_ns=self.percentile_ns(900),
            p95_ns=self.percentile_ns(950),
            p99_ns=self.percentile_ns(990),
            p999_ns=self.percentile_ns(999),
            max_ns=self.max_ns,
            mean_ns=self.sum_ns / self.count,
            count=self.count,
            stddev_ns=self.stddev_ns(),
        )

    def stddev_ns(self) -> float:
        """The standard deviation of all latencies, as pgbench has it: of the population, with one latency 0."""
        mean_ns = np.average(self.values_ns, weights=self.counts)
        return float(np.sqrt(np.average((self.values_ns - mean_ns) ** 2, weights=self.counts)))


def read(histogram: Histogram) -> Latency:
    """The engine's sparse buckets as arrays."""
    numbers = chain.from_iterable(histogram.buckets)
    buckets = np.fromiter(numbers, dtype=np.int64, count=2 * len(histogram.buckets)).reshape(-1, 2)
    return Latency(buckets[:, 0], buckets[:, 1], histogram.sum_ns, histogram.max_ns)


def merge(parts: Iterable[Latency]) -> Latency | None:
    """The sum of histograms with the same buckets; None if nothing is in them."""
    filled = [part for part in parts if len(part.counts)]
    if not filled:
        return None
    values_ns, place = np.unique(np.concatenate([part.values_ns for part in filled]), return_inverse=True)
    counts = np.zeros(len(values_ns), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([part.counts for part in filled]))
    return Latency(values_ns, counts, sum(part.sum_ns for part in filled), max(part.max_ns for part in filled))


def merge_transactions(histograms: Iterable[Histogram]) -> Latency | None:
    """Whole transactions of every script."""
    return merge_scope(histograms, "transaction")


def merge_scope(histograms: Iterable[Histogram], scope: str) -> Latency | None:
    """All histograms of one scope."""
    return merge(read(histogram) for histogram in histograms if histogram.scope == scope)


_OF_TRIALS = ("p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns")


def percentiles_of(trials: Iterable[Latency | None]) -> LatencyPercentiles | None:
    """The latency of several trials: each percentile the median of the trials' own, all else of all their transactions together.

    None if nothing is in any of them. This is what every table, chart, objective and comparison shows of a variant.
    """
    known = [one for one in trials if one is not None and one.count]
    merged = merge(known)
    if merged is None:
        return None
    each = [one.percentiles() for one in known]
    medians = {name: round(median_of_trials([getattr(one, name) for one in each])) for name in _OF_TRIALS}
    return merged.percentiles().model_copy(update=medians)


def statement_latencies(trials: Iterable[Iterable[Histogram]]) -> tuple[StatementLatency, ...]:
    """One figure for each statement of each script over these trials, in the order of the scripts' text."""
    groups: dict[tuple[str, int], list[list[Histogram]]] = {}
    for histograms in trials:
        of_trial: dict[tuple[str, int], list[Histogram]] = {}
        for histogram in histograms:
            if histogram.scope == "statement" and histogram.statement is not None:
                of_trial.setdefault((histogram.script or "", histogram.statement), []).append(histogram)
        for statement, parts in of_trial.items():
            groups.setdefault(statement, []).append(parts)
    rows = (
        (found[0][0], percentiles_of(merge(read(part) for part in parts) for parts in found))
        for _, found in sorted(groups.items())
    )
    return tuple(_statement(first, latency) for first, latency in rows if latency is not None)


def _statement(first: Histogram, latency: LatencyPercentiles) -> StatementLatency:
    return StatementLatency(
        script=first.script or "",
        statement=first.statement or 0,
        line=first.line,
        text=first.text or "",
        latency=latency,
    )
