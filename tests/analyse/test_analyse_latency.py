"""Percentiles of merged histograms against percentiles of all the latencies together."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyse_bundles import histogram
from plinth.analyse.latency import merge, merge_transactions, percentiles_of, read, statement_latencies

latencies = st.lists(st.integers(min_value=1000, max_value=3_600_000_000_000), min_size=1, max_size=200)


def bucket_top(latency_ns: int) -> int:
    """The highest value of an HDR bucket from 1 us, three significant digits: at least 512 ns wide, or 1/1024 of it."""
    width = 1 << max(9, latency_ns.bit_length() - 11)
    return latency_ns // width * width + width - 1


def histogram_of(values: list[int], **fields):
    buckets: dict[int, int] = {}
    for value in values:
        buckets[bucket_top(value)] = buckets.get(bucket_top(value), 0) + 1
    return histogram(buckets, **fields).model_copy(update={"max_ns": max(values), "sum_ns": sum(values)})


@given(st.lists(latencies, min_size=1, max_size=4))
def test_merged_percentiles_are_those_of_the_pooled_latencies(trials: list[list[int]]) -> None:
    merged = merge_transactions(histogram_of(values) for values in trials)
    pooled = sorted(value for values in trials for value in values)
    assert merged is not None and merged.count == len(pooled)
    for per_mille in (1, 500, 900, 950, 990, 999, 1000):
        true = pooled[math.ceil(len(pooled) * per_mille / 1000) - 1]
        assert true <= merged.percentile_ns(per_mille) <= max(true + 512, true * 1.001)
    figures = merged.percentiles()
    assert figures.max_ns == pooled[-1]
    mean = sum(pooled) / len(pooled)
    assert figures.mean_ns == pytest.approx(mean)
    stddev = math.sqrt(sum((value - mean) ** 2 for value in pooled) / len(pooled))
    assert figures.stddev_ns == pytest.approx(stddev, rel=0.01, abs=max(512, 0.002 * max(pooled)))


def test_percentiles_are_not_averages_of_percentiles() -> None:
    quick, slow = histogram_of([1_000_000] * 990), histogram_of([100_000_000] * 10)
    merged = merge_transactions([quick, slow])
    assert merged is not None
    assert merged.percentile_ns(990) == pytest.approx(1_000_000, rel=1e-3)
    assert merged.percentile_ns(991) == pytest.approx(100_000_000, rel=1e-3)


@given(st.lists(latencies, min_size=1, max_size=6))
def test_a_percentile_of_several_trials_is_the_median_of_their_own(trials: list[list[int]]) -> None:
    each = [merge_transactions([histogram_of(values)]) for values in trials]
    found = percentiles_of(each)
    assert found is not None
    own = sorted(one.percentile_ns(990) for one in each if one is not None)
    lower, upper = own[(len(own) - 1) // 2], own[len(own) // 2]
    assert found.p99_ns == pytest.approx(math.sqrt(lower * upper), rel=1e-9, abs=1)
    assert found.p50_ns <= found.p90_ns <= found.p95_ns <= found.p99_ns <= found.p999_ns <= found.max_ns
    assert (found.count, found.max_ns) == (sum(map(len, trials)), max(map(max, trials)))


def test_a_trial_without_transactions_is_none_of_them() -> None:
    one = merge_transactions([histogram_of([1_000_000] * 10)])
    assert percentiles_of([one, None]) == percentiles_of([one])
    assert percentiles_of([None]) is None and percentiles_of([]) is None


def test_a_statement_has_the_median_of_its_trials() -> None:
    def statement(value: int):
        return histogram_of([value] * 10, scope="statement", script="tpcb", statement=1, line=2, text="s")

    (row,) = statement_latencies([[statement(value)] for value in (1_000_000, 2_000_000, 90_000_000)])
    assert row.latency.p99_ns == pytest.approx(2_000_000, rel=1e-3)
    assert (row.latency.count, row.latency.max_ns) == (30, 90_000_000)


def test_nothing_merged_is_none_not_zero() -> None:
    assert merge_transactions([]) is None
    assert merge([]) is None


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
    transactions = merge_transactions(parts)
    assert transactions is not None and transactions.count == 1


def test_a_histogram_is_read_as_it_is() -> None:
    one = read(histogram({1_000_447: 3, 2_000_895: 1}))
    assert one.values_ns.tolist() == [1_000_447, 2_000_895]
    assert one.counts.tolist() == [3, 1]
