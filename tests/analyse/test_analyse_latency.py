"""Percentiles of merged histograms against percentiles of all the latencies together."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyse_bundles import histogram
from plinth.analyse.bootstrap import median
from plinth.analyse.latency import percentiles, percentiles_of, statement_latencies
from plinth.bench.load import _latency as bench_latency
from plinth.fleet.merge import merged_histograms
from plinth.load import Latencies
from plinth.load.drivers.aggregates import add_times
from plinth.model.histogram import Buckets, median_of_trials, nearest_rank
from plinth.model.probe import FsyncCase
from plinth.probe.fsync_probe import Round
from plinth.probe.fsync_probe import merged as merged_rounds
from plinth.report.curves import percentile_curve

latencies = st.lists(st.integers(min_value=1000, max_value=3_600_000_000_000), min_size=1, max_size=200)


def bucket_top(latency_ns: int) -> int:
    """The highest value of an HDR bucket from 1 us, three significant digits: at least 512 ns wide, or 1/1024 of it."""
    width = 1 << max(9, latency_ns.bit_length() - 11)
    return latency_ns // width * width + width - 1


def histogram_of(values: list[int], **fields):
    buckets: dict[int, int] = {}
    for value in values:
        buckets[bucket_top(value)] = buckets.get(bucket_top(value), 0) + 1
    return histogram(buckets, **fields).model_copy(
        update={"min_ns": min(values), "max_ns": max(values), "sum_ns": sum(values)}
    )


@settings(deadline=None)
@given(st.lists(latencies, min_size=1, max_size=4))
def test_merged_percentiles_are_those_of_the_pooled_latencies(trials: list[list[int]]) -> None:
    merged = Buckets.transactions(histogram_of(values) for values in trials)
    pooled = sorted(value for values in trials for value in values)
    assert merged.count == len(pooled)
    for share in (0.001, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0):
        true = pooled[math.ceil(len(pooled) * share) - 1]
        assert true <= merged.percentile_ns(share) <= max(true + 512, true * 1.001)
    figures = percentiles(merged)
    assert figures.max_ns == pooled[-1]
    mean = sum(pooled) / len(pooled)
    assert figures.mean_ns == pytest.approx(mean)
    stddev = math.sqrt(sum((value - mean) ** 2 for value in pooled) / len(pooled))
    assert figures.stddev_ns == pytest.approx(stddev, rel=0.01, abs=max(512, 0.002 * max(pooled)))


def test_percentiles_are_not_averages_of_percentiles() -> None:
    quick, slow = histogram_of([1_000_000] * 990), histogram_of([100_000_000] * 10)
    merged = Buckets.transactions([quick, slow])
    assert merged.percentile_ns(0.99) == pytest.approx(1_000_000, rel=1e-3)
    assert merged.percentile_ns(0.991) == pytest.approx(100_000_000, rel=1e-3)


@settings(deadline=None)
@given(st.lists(latencies, min_size=1, max_size=6))
def test_a_percentile_of_several_trials_is_the_median_of_their_own(trials: list[list[int]]) -> None:
    each = [Buckets.transactions([histogram_of(values)]) for values in trials]
    found = percentiles_of(each)
    assert found is not None
    own = sorted(one.percentile_ns(0.99) for one in each)
    lower, upper = own[(len(own) - 1) // 2], own[len(own) // 2]
    assert found.p99_ns == pytest.approx(math.sqrt(lower * upper), rel=1e-9, abs=1)
    assert found.p50_ns <= found.p90_ns <= found.p95_ns <= found.p99_ns <= found.p999_ns <= found.max_ns
    assert (found.count, found.max_ns) == (sum(map(len, trials)), max(map(max, trials)))


def test_a_trial_without_transactions_is_none_of_them() -> None:
    one = Buckets.transactions([histogram_of([1_000_000] * 10)])
    assert percentiles_of([one, Buckets()]) == percentiles_of([one])
    assert percentiles_of([Buckets()]) is None and percentiles_of([]) is None


def test_a_statement_has_the_median_of_its_trials() -> None:
    def statement(value: int):
        return histogram_of([value] * 10, scope="statement", script="tpcb", statement=1, line=2, text="s")

    (row,) = statement_latencies([[statement(value)] for value in (1_000_000, 2_000_000, 90_000_000)])
    assert row.latency.p99_ns == pytest.approx(2_000_000, rel=1e-3)
    assert (row.latency.count, row.latency.max_ns) == (30, 90_000_000)


def test_nothing_has_no_percentile() -> None:
    assert not Buckets.transactions([])
    with pytest.raises(ValueError, match="no percentiles"):
        Buckets().percentile_ns(0.5)


def test_statements_are_merged_by_script_and_place_and_kept_out_of_transactions() -> None:
    def statement(place: int, values: list[int]):
        return histogram_of(values, scope="statement", script="tpcb", statement=place, line=place + 1, text=f"s{place}")

    parts = [
        statement(2, [4_000_000]),
        statement(1, [1_000_000] * 3),
        statement(1, [3_000_000]),
        histogram_of([9_000_000]),
    ]
    rows = statement_latencies([parts])
    assert [(row.statement, row.line, row.text, row.latency.count) for row in rows] == [
        (1, 2, "s1", 4),
        (2, 3, "s2", 1),
    ]
    assert rows[0].latency.max_ns == 3_000_000
    transactions = Buckets.transactions(parts)
    assert transactions.count == 1


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(1, 5000), min_size=1, max_size=30),
    share=st.sampled_from([0.01, 0.07, 0.25, 0.5, 0.9, 0.99, 0.999]),
)
def test_a_percentile_is_the_smallest_latency_that_enough_do_not_exceed(counts: list[int], share: float):
    buckets = [(10 * (place + 1), count) for place, count in enumerate(counts)]
    found = Buckets.of_counts(buckets).percentile_ns(share)
    within = sum(number for value, number in buckets if value <= found)
    below = sum(number for value, number in buckets if value < found)
    assert below < share * sum(counts) <= within


CASE = {"group": "one_block", "label": "fdatasync", "method": "fdatasync", "direct": False, "block_bytes": 8192}
CASE |= {"writes": 1, "place": "beginning", "descriptor": "kept", "writers": 1, "sharing": "alone"}


@settings(deadline=None)
@given(st.lists(latencies, min_size=1, max_size=4))
def test_all_that_show_a_latency_agree(parts: list[list[int]]) -> None:
    """The report, the engine's arrays, a fleet, the drivers, the probe, the curve and bench, of the same latencies."""
    histograms = [histogram_of(values) for values in parts]
    report = Buckets.transactions(histograms)
    (of_fleet,) = merged_histograms([[one] for one in histograms])
    driver = Buckets()
    for values in parts:
        add_times(driver, np.array(values, np.int64))
    assert driver == report == Buckets.of([of_fleet])
    arrays = np.array(of_fleet.buckets, np.int64)
    engine = Latencies(of_fleet, arrays[:, 0], arrays[:, 1])
    rounds = [
        Round(
            {
                "ops": one.count,
                "flushes": 0,
                "elapsed_ns": 1,
                **one.model_dump(include={"min_ns", "max_ns", "buckets"}),
            },
            None,
        )
        for one in histograms
    ]
    probe = merged_rounds(FsyncCase.model_validate(CASE), rounds, None).figure
    assert probe is not None
    for percent, found in probe.percentiles_ns.items():
        share = float(percent) / 100
        assert report.percentile_ns(share) == engine.percentile_ns(share)
        assert found in (None, report.percentile_ns(share))
    for point in percentile_curve(of_fleet.buckets)[:-1]:
        assert min(point.latency_ns, report.max_ns) == report.percentile_ns(point.quantile)
    bench = bench_latency(of_fleet)
    assert bench.mean_us == pytest.approx(report.mean_ns() / 1000)
    assert bench.stddev_us == pytest.approx(report.stddev_ns() / 1000, rel=1e-6, abs=1e-6 * bench.mean_us)


@settings(deadline=None)
@given(latencies, st.sampled_from([0.07, 0.5, 0.95, 0.99, 1.0]))
def test_ranks_are_those_of_numpy(values: list[int], share: float) -> None:
    assert sorted(values)[nearest_rank(share, len(values)) - 1] == np.quantile(values, share, method="inverted_cdf")


def test_one_latency_has_no_standard_deviation() -> None:
    assert Buckets.transactions([histogram_of([1_234_567_890])]).stddev_ns() == 0


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=12))
def test_the_median_of_trials_is_that_which_the_interval_is_around(values: list[float]) -> None:
    assert median_of_trials(values) == pytest.approx(math.exp(float(median(np.log(values)))))
