"""The latency of a variant, by its percentiles."""

from pydantic import Field

from plinth.model.base import Frozen


class LatencyPercentiles(Frozen):
    """Latency of a variant's counted trials: each percentile is the median of the trials' own, which come from a trial's merged
    histogram; longest, mean, count and deviation are of all transactions together."""

    p50_ns: int
    p90_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    mean_ns: float
    count: int
    stddev_ns: float | None = Field(
        default=None,
        description="Standard deviation, as pgbench prints it; of the histogram's buckets, which are right to three digits. None in "
        "analyses of before it was worked out.",
    )
