"""Merges HDR histograms and reads percentiles, means and standard deviations from them: the one kernel of all that Plinth shows.

Buckets are those of crates/load/src/latencies.rs (http://hdrhistogram.org): 1 us to 1 h, three significant digits. Counts of
equal buckets can be summed; percentiles cannot, so they are always read from merged histograms. Definitions:

- percentile: nearest rank. Of n latencies the one at rank ceil(share * n), as HdrHistogram's getValueAtPercentile has it,
  given as the highest latency of its bucket, but never above the longest latency seen.
- mean: the exact sum over the count.
- standard deviation: of the population (divided by n), as pgbench prints it; each latency counts as the middle of its bucket,
  but not as less than the shortest or more than the longest latency seen, so that it is right to three digits and 0 of one
  latency.

The centre of several trials is their median, on the logarithmic scale: of an even number of trials the geometric mean of the
middle two, so that the ratio of two variants and its inverse agree. Standard deviations of trials are those of a sample
(divided by n - 1, `plinth.analyse.bootstrap`).
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from plinth.model.load import Histogram

HIGHEST_NS = 3_600_000_000_000
"""Latencies above this, an hour, fall into its bucket."""
NARROWEST_BITS = 9
"""Width of the narrowest buckets, as a power of two: 512 ns."""
_HALF_BITS = NARROWEST_BITS - 1
LOWEST_BITS = 20
"""Length of the lowest range, as a power of two: 2048 buckets; each further range is twice as long, with buckets twice as wide."""


def nearest_rank(share: float, count: int) -> int:
    """Return the rank, from 1, of the value that `share` (0 to 1) of `count` sorted values do not exceed."""
    return max(1, math.ceil(share * count))


@dataclass
class Buckets:
    """A histogram: counts by the highest latency of each bucket; count, sum, shortest and longest are exact."""

    counts: Counter[int] = field(default_factory=Counter)
    count: int = 0
    sum_ns: int = 0
    min_ns: int = 0
    max_ns: int = 0
    _sorted: tuple[list[int], list[int]] | None = field(default=None, init=False, repr=False, compare=False)
    """The buckets and the cumulative counts, until something is added."""

    @classmethod
    def of(cls, histograms: "Iterable[Histogram]") -> Self:
        """Return the sum of histograms."""
        merged = cls()
        for one in histograms:
            merged.add(one.sum_ns, one.min_ns, one.max_ns, one.buckets)
        return merged

    @classmethod
    def transactions(cls, histograms: "Iterable[Histogram]") -> Self:
        """Return the latencies of whole transactions, of every script."""
        return cls.of(one for one in histograms if one.scope == "transaction")

    @classmethod
    def of_counts(cls, buckets: Iterable[tuple[int, int]]) -> Self:
        """Return the histogram of (highest latency of a bucket, count) pairs; what is exact elsewhere is of the buckets here."""
        counts: Counter[int] = Counter()
        for highest_ns, counted in buckets:
            counts[highest_ns] += counted
        total = sum(highest_ns * counted for highest_ns, counted in counts.items())
        return cls(counts, counts.total(), total, min(counts, default=0), max(counts, default=0))

    def __bool__(self) -> bool:
        """Return whether there are latencies."""
        return self.count > 0

    def add(self, sum_ns: int, min_ns: int, max_ns: int, buckets: Iterable[tuple[int, int]]) -> None:
        """Add a histogram, by what is exact of it and its (highest latency of a bucket, count) pairs."""
        before = self.count
        for highest_ns, counted in buckets:
            self.counts[highest_ns] += counted
            self.count += counted
        if self.count > before:
            self.min_ns = min(self.min_ns, min_ns) if before else min_ns
            self.max_ns = max(self.max_ns, max_ns)
            self.sum_ns += sum_ns
            self._sorted = None

    def merge(self, other: "Buckets") -> None:
        """Add another one."""
        self.add(other.sum_ns, other.min_ns, other.max_ns, other.counts.items())

    def percentile_ns(self, share: float) -> int:
        """Return the latency that `share` (0 to 1) do not exceed. Raises ValueError if there are no latencies."""
        if not self.count:
            raise ValueError("a histogram without latencies has no percentiles")
        values, cumulative = self._in_order()
        return min(values[bisect_left(cumulative, nearest_rank(share, self.count))], self.max_ns)

    def mean_ns(self) -> float:
        """Return the mean. Raises ZeroDivisionError if there are no latencies."""
        return self.sum_ns / self.count

    def stddev_ns(self) -> float:
        """Return the standard deviation. Raises ZeroDivisionError if there are no latencies."""
        mean_ns, counts = self.mean_ns(), self.counts
        values, _ = self._in_order()
        middles = [
            value + 1 - (1 << max(_HALF_BITS, value.bit_length() - LOWEST_BITS + _HALF_BITS)) for value in values
        ]
        for place in (0, -1):  # of the others every latency is between the shortest and the longest
            middles[place] = min(max(middles[place], self.min_ns), self.max_ns)
        squares = sum(counts[value] * (middle - mean_ns) ** 2 for value, middle in zip(values, middles, strict=True))
        return math.sqrt(squares / self.count)

    def _in_order(self) -> tuple[list[int], list[int]]:
        """Return the buckets, ascending, and the cumulative counts."""
        if self._sorted is None:
            values = sorted(self.counts)
            self._sorted = values, list(accumulate(self.counts[value] for value in values))
        return self._sorted

    def sorted_counts(self) -> tuple[tuple[int, int], ...]:
        """Return (highest latency of a bucket, count) pairs, ascending."""
        return tuple(sorted(self.counts.items()))


def median_of_trials(values: Sequence[float]) -> float:
    """Return the median; of an even number, none of them 0, the geometric mean of the middle two. Raises ValueError without values."""
    if not values:
        raise ValueError("the median of no trials: at least one is needed")
    if min(values) <= 0:
        return median(values)
    return math.exp(median(math.log(value) for value in values))
