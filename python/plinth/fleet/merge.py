"""One result of several agents' results, as if one engine had recorded everything: counts of equal buckets are added.

Percentiles come from merged histograms only, in the series as well: agents send the histograms of each second.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from plinth.fleet.figures import check_counts, check_raw
from plinth.model.histogram import Buckets
from plinth.model.load import EngineCost, Histogram, LoadError, LoadResult, ReplayCounts, ScriptTotals, Second, Totals
from plinth.system.framed_tls import ProtocolError

_NUMBERS_OF_HISTOGRAM = 5


@dataclass
class SecondHistograms:
    """Of one second: its latencies, and how late transactions began."""

    latencies: Buckets = field(default_factory=Buckets)
    lags: Buckets = field(default_factory=Buckets)


def add_histograms(seconds: dict[int, SecondHistograms], taken: bytes) -> None:
    """Add what `LoadRun.take_histograms` gave to the histograms by row. Raises ProtocolError for anything else."""
    if len(taken) % 8:
        raise ProtocolError("histograms are numbers of 8 bytes; the last one is cut off")
    unpacked = struct.unpack(f"<{len(taken) // 8}Q", taken)
    check_raw(unpacked)
    numbers = iter(unpacked)
    try:
        for row in numbers:
            second = seconds.setdefault(row, SecondHistograms())
            for histogram in (second.latencies, second.lags):
                count, sum_ns, min_ns, max_ns, buckets = (next(numbers) for _ in range(_NUMBERS_OF_HISTOGRAM))
                counted = [(next(numbers), next(numbers)) for _ in range(buckets)]
                check_counts(f"the histograms of second {row}", count, min_ns, max_ns, counted)
                histogram.add(sum_ns, min_ns, max_ns, counted)
    except (StopIteration, RuntimeError, ValueError):  # a generator turns StopIteration into RuntimeError
        raise ProtocolError("the histograms of a second are cut off") from None


def merged_second(parts: Sequence[Second], histograms: SecondHistograms) -> Second:
    """Merge into one row of the series the rows that agents have of the same second."""
    first = parts[0]
    latencies, lags = histograms.latencies, histograms.lags
    return Second(
        second=first.second,
        phase=first.phase,
        t_ns=first.t_ns,
        length_ns=max(part.length_ns for part in parts),
        done=sum(part.done for part in parts),
        failed=sum(part.failed for part in parts),
        retried=sum(part.retried for part in parts),
        retries=sum(part.retries or 0 for part in parts),
        skipped=sum(part.skipped or 0 for part in parts),
        late=sum(part.late or 0 for part in parts),
        latency_mean_ns=latencies.mean_ns() if latencies else None,
        latency_stddev_ns=latencies.stddev_ns() if latencies else None,
        latency_p50_ns=latencies.percentile_ns(0.50) if latencies else None,
        latency_p95_ns=latencies.percentile_ns(0.95) if latencies else None,
        latency_p99_ns=latencies.percentile_ns(0.99) if latencies else None,
        latency_max_ns=latencies.max_ns if latencies else None,
        schedule_lag_mean_ns=lags.mean_ns() if lags else None,
        schedule_lag_p99_ns=lags.percentile_ns(0.99) if lags else None,
        schedule_lag_max_ns=lags.max_ns if lags else None,
    )


def merged_result(results: Sequence[LoadResult], series: Sequence[Second], started_unix_ns: int) -> LoadResult:
    """Return the result of the whole load. `series` are the merged seconds; the start is the agreed one, by the coordinator's clock."""
    warmup_ns = max(result.warmup_ns for result in results)
    ends_ns = max(result.warmup_ns + result.measured_ns for result in results)
    return LoadResult(
        started_unix_ns=started_unix_ns,
        first_start_ns=min((r.first_start_ns for r in results if r.first_start_ns is not None), default=None),
        connect_ns=max(result.connect_ns for result in results),
        warmup_ns=warmup_ns,
        measured_ns=ends_ns - warmup_ns,
        interrupted=any(result.interrupted for result in results),
        clients_aborted=sum(result.clients_aborted for result in results),
        totals=merged_totals([result.totals for result in results]),
        measured=merged_totals([result.measured for result in results]),
        server_transactions=_sum_if_known([result.server_transactions for result in results]),
        scripts=tuple(
            ScriptTotals(name=same[0].name, weight=same[0].weight, measured=merged_totals([s.measured for s in same]))
            for same in zip(*(result.scripts for result in results), strict=True)
        ),
        series=tuple(series),
        histograms=merged_histograms([result.histograms for result in results]),
        errors=_merged_errors([result.errors for result in results]),
        engine=_merged_cost([result.engine for result in results]),
        replay=_merged_replay([result.replay for result in results if result.replay is not None]),
    )


def merged_totals(all_totals: Sequence[Totals]) -> Totals:
    """Return the sums; a count that not every part knows is not known."""
    sums: dict[str, int | None] = {}
    for name in Totals.model_fields:
        values = [getattr(totals, name) for totals in all_totals]
        sums[name] = None if None in values else sum(values)
    return Totals.model_validate(sums)


def merged_histograms(all_histograms: Sequence[Sequence[Histogram]]) -> tuple[Histogram, ...]:
    """Return one histogram of all that are of the same, in the order of the agent that has most, which misses none in the usual case."""
    merged: dict[tuple[object, ...], tuple[Histogram, Buckets]] = {}
    for histograms in sorted(all_histograms, key=len, reverse=True):
        for one in histograms:
            of = (one.scope, one.script, one.statement, one.line)
            _, buckets = merged.setdefault(of, (one, Buckets()))
            buckets.add(one.sum_ns, one.min_ns, one.max_ns, one.buckets)
    return tuple(
        one.model_copy(
            update={
                "count": buckets.count,
                "sum_ns": buckets.sum_ns,
                "min_ns": buckets.min_ns,
                "max_ns": buckets.max_ns,
                "buckets": buckets.sorted_counts(),
            }
        )
        for one, buckets in merged.values()
    )


def _merged_replay(counts: Sequence[ReplayCounts]) -> ReplayCounts | None:
    """Return the sums: each machine has sessions of its own. Those at once are as many as the machines had, each at its own time."""
    if not counts:
        return None
    return ReplayCounts.model_validate(
        {name: sum(getattr(one, name) for one in counts) for name in ReplayCounts.model_fields}
    )


def _merged_errors(all_errors: Iterable[Sequence[LoadError]]) -> tuple[LoadError, ...]:
    """Count errors of one kind at one place together; the message is that of the earliest."""
    merged: dict[tuple[object, ...], LoadError] = {}
    for error in _flat(all_errors):
        of = (error.kind, error.sqlstate, error.script, error.statement, error.line)
        known = merged.get(of)
        if known is None:
            merged[of] = error
            continue
        first = min(known, error, key=lambda one: one.first_ns)
        retried = (known.retried or 0) + (error.retried or 0)
        merged[of] = first.model_copy(update={"count": known.count + error.count, "retried": retried})
    return tuple(sorted(merged.values(), key=lambda error: (-error.count, error.first_ns)))


def _flat(lists: Iterable[Sequence[LoadError]]) -> Iterator[LoadError]:
    for one in lists:
        yield from one


def _merged_cost(costs: Sequence[EngineCost]) -> EngineCost:
    """Return the sums. The lag of the engines' loops stays with each machine: a percentile of percentiles would be none."""
    return EngineCost(
        user_cpu_ns=sum(cost.user_cpu_ns for cost in costs),
        system_cpu_ns=sum(cost.system_cpu_ns for cost in costs),
        loop_lag_p99_ns=None if len(costs) > 1 else costs[0].loop_lag_p99_ns,
        bytes_sent=_sum_if_known([cost.bytes_sent for cost in costs]),
        bytes_received=_sum_if_known([cost.bytes_received for cost in costs]),
        threads=sum(cost.threads for cost in costs),
        server_version=next((cost.server_version for cost in costs if cost.server_version is not None), None),
        driver=costs[0].driver,
    )


def _sum_if_known(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
