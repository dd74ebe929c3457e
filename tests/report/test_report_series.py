"""Rates and bins: sums are kept, holes stay holes, percentiles are not averaged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plinth.model.load import Second
from plinth.report.series import (
    BIN_WIDTHS_S,
    MAX_BINS,
    MAX_VALUES,
    bin_count,
    bin_width,
    counter_rates,
    gauge_means,
    load_latency,
    load_rates,
    rounded,
)


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


def second(number: int, done: int, p99_ns: int | None = None, length_ns: int = 1_000_000_000) -> Second:
    return Second(
        second=number,
        phase="measure",
        t_ns=number * 1_000_000_000,
        length_ns=length_ns,
        done=done,
        failed=0,
        retried=0,
        latency_mean_ns=None,
        latency_p50_ns=None,
        latency_p95_ns=None,
        latency_p99_ns=p99_ns,
        latency_max_ns=None,
    )


def done_rates(seconds: list[Second], bins: int, bin_s: int) -> list[float]:
    return load_rates(seconds, [s.done for s in seconds], bins, bin_s).tolist()


def p99s(seconds: list[Second], bins: int, bin_s: int) -> list[float]:
    return load_latency(seconds, [s.latency_p99_ns for s in seconds], bins, bin_s).tolist()


class TestCounters:
    def test_rate_is_the_difference_over_its_time(self) -> None:
        assert counter_rates(array(0, 1, 2), array(100, 110, 140), 2, 1).tolist() == [10, 30]

    def test_what_falls_across_a_bin_is_shared_out(self) -> None:
        assert counter_rates(array(0.5, 1.5, 2.5), array(0, 10, 40), 2, 1).tolist() == pytest.approx([10, 20])

    def test_a_counter_that_was_reset_says_nothing_of_that_step(self) -> None:
        rates = counter_rates(array(0, 1, 2, 3), array(100, 110, 3, 8), 3, 1)
        assert rates[[0, 2]].tolist() == [10, 5]
        assert np.isnan(rates[1])

    def test_readings_far_apart_leave_a_hole(self) -> None:
        rates = counter_rates(array(0, 1, 2, 6, 7, 8), array(0, 1, 2, 6, 7, 8), 8, 1)
        assert np.isnan(rates).tolist() == [False] * 2 + [True] * 4 + [False] * 2

    @pytest.mark.parametrize("readings", [(), (5.0,)])
    def test_fewer_than_two_readings_give_no_rate(self, readings: tuple[float, ...]) -> None:
        assert np.isnan(counter_rates(array(*readings), array(*readings), 3, 1)).all()

    @settings(deadline=None)
    @given(
        st.lists(st.floats(0, 1e6), min_size=2, max_size=40),
        st.floats(-0.2, 0.2),
        st.sampled_from([1, 2, 5]),
    )
    def test_rates_sum_up_to_what_was_counted(self, steps: list[float], late_s: float, bin_s: int) -> None:
        """With any width of the bins, the time under the rates is the counter's whole advance."""
        seconds = len(steps) * bin_s
        t_s = np.linspace(0, seconds, len(steps) + 1)
        t_s[1:-1] += late_s
        counter = np.concatenate(([7.0], 7.0 + np.cumsum(steps)))
        rates = counter_rates(t_s, counter, len(steps), bin_s)
        assert rates.sum() * bin_s == pytest.approx(counter[-1] - counter[0], abs=1e-3)


class TestGauges:
    def test_mean_over_a_bin(self) -> None:
        assert gauge_means(array(0, 1, 2), array(0, 10, 20), 1, 2).tolist() == [10]

    @settings(deadline=None)
    @given(st.lists(st.floats(0, 1e12), min_size=3, max_size=40))
    def test_means_stay_within_what_was_read(self, values: list[float]) -> None:
        means = gauge_means(np.arange(len(values), dtype=float), array(*values), len(values) - 1, 1)
        assert np.isfinite(means).all()
        assert min(values) * (1 - 1e-6) - 1e-3 <= means.min() <= means.max() <= max(values) * (1 + 1e-6) + 1e-3


class TestLoad:
    def test_a_bin_holds_the_mean_rate(self) -> None:
        assert done_rates([second(0, 10), second(1, 30), second(2, 50)], 2, 2) == [20, 50]

    def test_a_short_rest_goes_to_the_last_bin_by_its_length(self) -> None:
        seconds = [second(0, 100), second(1, 100), second(2, 8, length_ns=100_000_000)]
        assert done_rates(seconds, bin_count(2.1, 1), 1) == pytest.approx([100, 108 / 1.1])

    def test_a_time_without_load_is_a_hole(self) -> None:
        assert np.isnan(done_rates([second(0, 10), second(2, 10)], 3, 1)[1])

    def test_latency_is_the_highest_of_the_bin_never_a_mean(self) -> None:
        assert p99s([second(0, 1, 5), second(1, 1, 90), second(2, 1, 7)], 2, 2) == [90, 7]

    def test_a_second_in_which_nothing_was_done_has_no_latency(self) -> None:
        assert np.isnan(p99s([second(0, 0), second(1, 1, 8)], 2, 1)[0])

    def test_the_last_transactions_do_not_stand_for_a_bin(self) -> None:
        assert p99s([second(0, 100, 5), second(1, 8, 900, length_ns=60_000_000)], 1, 1) == [5]


class TestWidth:
    def test_short_runs_keep_every_second(self) -> None:
        assert bin_width([35.0] * 15, 40) == 1

    @settings(deadline=None)
    @given(st.lists(st.floats(1, 90_000), min_size=1, max_size=400), st.integers(1, 60))
    def test_the_least_width_that_fits(self, ends_s: list[float], series: int) -> None:
        def fits(width: int) -> bool:
            values = series * sum(bin_count(end_s, width) for end_s in ends_s)
            return values <= MAX_VALUES and bin_count(max(ends_s), width) <= MAX_BINS

        width = bin_width(ends_s, series)
        assert fits(width) or width == BIN_WIDTHS_S[-1]
        assert not any(fits(narrower) for narrower in BIN_WIDTHS_S if narrower < width)

    def test_no_trials_need_no_width(self) -> None:
        assert bin_width([], 40) == 1


def test_values_are_short_and_holes_are_none_not_zero() -> None:
    assert rounded(array(1234.567, 0.000123456, 5.0, 0.0, np.nan)) == (1235, 0.0001235, 5, 0, None)


@given(st.floats(1e-12, 1e18), st.sampled_from((1, -1)))
def test_rounding_is_that_of_four_digits_in_print(size: float, sign: int) -> None:
    (found,) = rounded(array(sign * size))
    assert found is not None and float(f"{found:.4g}") == found
    assert abs(found - sign * size) <= 0.5001e-3 * size  # of a tie, either side
