"""Latency percentiles. Of a trial they come from its merged histogram (`plinth.model.histogram`), since counts can be summed and
percentiles cannot; of a variant each is the median of its trials' own.
"""

from collections.abc import Iterable

from plinth.model.analysis import LatencyPercentiles, StatementLatency
from plinth.model.histogram import Buckets, median_of_trials
from plinth.model.load import Histogram

_SHARES = {"p50_ns": 0.5, "p90_ns": 0.9, "p95_ns": 0.95, "p99_ns": 0.99, "p999_ns": 0.999}


def percentiles(of: Buckets) -> LatencyPercentiles:
    """Return the figures that every table shows of a histogram that is not empty."""
    return LatencyPercentiles(
        **{name: of.percentile_ns(share) for name, share in _SHARES.items()},
        max_ns=of.max_ns,
        mean_ns=of.mean_ns(),
        count=of.count,
        stddev_ns=of.stddev_ns(),
    )


def percentiles_of(trials: Iterable[Buckets]) -> LatencyPercentiles | None:
    """Return the latency of several trials: each percentile the median of the trials' own, all else of all their transactions together.

    None if nothing is in any of them. This is what every table, chart, objective and comparison shows of a variant.
    """
    known = [one for one in trials if one.count]
    if not known:
        return None
    merged = Buckets()
    for one in known:
        merged.merge(one)
    medians = {
        name: round(median_of_trials([one.percentile_ns(share) for one in known])) for name, share in _SHARES.items()
    }
    return percentiles(merged).model_copy(update=medians)


def statement_latencies(trials: Iterable[Iterable[Histogram]]) -> tuple[StatementLatency, ...]:
    """Return one figure for each statement of each script over these trials, in the order of the scripts' text."""
    groups: dict[tuple[str, int], list[list[Histogram]]] = {}
    for histograms in trials:
        of_trial: dict[tuple[str, int], list[Histogram]] = {}
        for histogram in histograms:
            if histogram.scope == "statement" and histogram.statement is not None:
                of_trial.setdefault((histogram.script or "", histogram.statement), []).append(histogram)
        for statement, parts in of_trial.items():
            groups.setdefault(statement, []).append(parts)
    rows = ((found[0][0], percentiles_of(map(Buckets.of, found))) for _, found in sorted(groups.items()))
    return tuple(
        StatementLatency(
            script=first.script or "",
            statement=first.statement or 0,
            line=first.line,
            text=first.text or "",
            latency=latency,
        )
        for first, latency in rows
        if latency is not None
    )
