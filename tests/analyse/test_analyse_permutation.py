"""Permutation tests against brute force, and Holm's correction against the worked definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plinth.analyse import permutation
from plinth.analyse.comparison import compare
from plinth.analyse.permutation import holm
from typed import present

numbers = st.floats(min_value=-10, max_value=10)


def brute_within_blocks(ratios: list[float]) -> float:
    seen = abs(math.fsum(ratios))
    ways = [
        abs(math.fsum(s * r for s, r in zip(signs, ratios, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(ratios))
    ]
    return sum(way >= seen - 1e-9 for way in ways) / len(ways)


def brute_over_all(a: list[float], b: list[float]) -> float:
    pooled, size = [*a, *b], len(a)
    total = math.fsum(pooled)

    def apart(chosen: list[float]) -> float:
        return abs(math.fsum(chosen) / size - (total - math.fsum(chosen)) / (len(pooled) - size))

    ways = [apart([pooled[i] for i in chosen]) for chosen in itertools.combinations(range(len(pooled)), size)]
    return sum(way >= apart(a) - 1e-9 for way in ways) / len(ways)


@given(st.lists(st.integers(-50, 50).map(lambda k: k / 8), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_within_blocks_is_exact(ratios: list[float]) -> None:
    assert permutation.within_blocks(np.array(ratios), seed=1) == pytest.approx(brute_within_blocks(ratios))


@given(
    st.lists(st.integers(-50, 50).map(lambda k: k / 8), min_size=2, max_size=5),
    st.lists(st.integers(-50, 50).map(lambda k: k / 8), min_size=2, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_over_all_is_exact(a: list[float], b: list[float]) -> None:
    assert permutation.over_all(np.array(a), np.array(b), seed=1) == pytest.approx(brute_over_all(a, b))


@pytest.mark.parametrize("n", [3, 5, 8])
def test_the_smallest_p_is_reached_by_the_clearest_difference(n: int) -> None:
    apart = np.arange(1.0, n + 1)
    assert permutation.within_blocks(apart, seed=1) == permutation.smallest_p_within_blocks(n)
    assert permutation.over_all(apart, apart + 100, seed=1) == permutation.smallest_p_over_all(n, n)
    assert permutation.over_all(apart, np.arange(0.0, n - 1) + 100, seed=1) >= permutation.smallest_p_over_all(n, n - 1)


def test_a_sample_of_arrangements_comes_near_the_exact_p() -> None:
    ratios = 0.3 + np.random.default_rng(2).standard_normal(15)
    exact = permutation.within_blocks(ratios, seed=1)
    signs = np.random.default_rng(5).choice((-1, 1), (400_000, 15))
    assert exact == pytest.approx(np.mean(abs(signs @ ratios) >= abs(ratios.sum())), abs=0.004)
    many = 0.2 + np.random.default_rng(3).standard_normal(40)
    sampled = permutation.within_blocks(many, seed=1)
    z = abs(many.sum()) / math.sqrt(float(many @ many))
    assert sampled == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.02)
    assert permutation.over_all(many, many + 100, seed=1) == 1 / (permutation.SAMPLED + 1)


def test_p_is_below_alpha_as_seldom_as_it_says() -> None:
    rng = np.random.default_rng(6)
    found = [permutation.over_all(*rng.standard_normal((2, 5)), seed=1) for _ in range(2000)]
    assert np.mean(np.array(found) <= 0.05) <= 0.065


def test_the_test_is_chosen_by_the_number_of_trials_and_left_out_where_it_cannot_decide() -> None:
    def p_value(n: int, family: int) -> float | None:
        clear = {block: 10.0 + 0.01 * block for block in range(n)}
        found = compare(clear, dict.fromkeys(range(n), 0.0), seed=1, family=family)
        assert found
        return found.permutation_p_value

    assert p_value(3, 1) is None  # 2 of 20 arrangements is 0.1
    assert p_value(5, 1) == permutation.smallest_p_over_all(5, 5)
    assert p_value(5, 59) is None
    assert p_value(6, 1) == permutation.smallest_p_within_blocks(6)


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.9, 0.2], [1.0, 1.0, 0.6]),
        ([0.01, None, 0.02], [0.03, None, 0.04]),
    ],
)
def test_holm(p_values: list[float | None], corrected: list[float | None]) -> None:
    assert holm(p_values) == [None if p is None else pytest.approx(p) for p in corrected]


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=20))
def test_holm_never_helps_and_keeps_the_order(p_values: list[float]) -> None:
    corrected = [present(p) for p in holm(p_values)]
    assert all(p <= held <= 1 for p, held in zip(p_values, corrected, strict=True))
    in_order = [held for _, held in sorted(zip(p_values, corrected, strict=True))]
    assert in_order == sorted(in_order)
