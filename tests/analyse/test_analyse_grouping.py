"""Groups of variants that cannot be distinguished: in simulation, as letters, and in every form of the report."""

import math
import zlib

import numpy as np
import pytest

from analyse_bundles import sweep
from plinth.analyse import analyse
from plinth.analyse.simultaneous import MOST_PAIRS, Ratios, Together, compact_letters
from plinth.model.plan import Variant
from simultaneous_simulation import sets_of_variants

COUNT = 300
SLACK = 2.5 * math.sqrt(0.05 * 0.95 / COUNT)
"""Two and a half standard errors of a share of 5 % as simulated."""
QUIET, ONE_NOISY = (0.03,) * 4, (0.01, 0.01, 0.01, 0.2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("noise", "trials", "strata"),
    [
        (QUIET, 3, 1),
        (QUIET, 5, 1),
        (QUIET[:2], 5, 2),
        (ONE_NOISY, 5, 1),
        *(pytest.param(*one, marks=pytest.mark.long) for one in ((QUIET, 5, 3), ((0.03,) * 10, 5, 1))),
    ],
)
def test_variants_that_are_the_same_are_one_group(noise: tuple[float, ...], trials: int, strata: int) -> None:
    found = sets_of_variants([0.0] * len(noise), trials, noise=noise, drift=0.2, strata=strata, count=COUNT, seed=41)
    assert found.false_alarms <= 0.05 + SLACK
    assert found.covered >= 0.95 - SLACK


@pytest.mark.long
@pytest.mark.parametrize("trials", [3, 5, 10])
def test_the_best_is_in_the_group_of_the_fastest(trials: int) -> None:
    logs = np.log([1.0, 1.02, 1.1, 1.05, 0.8]).tolist()
    found = sets_of_variants(logs, trials, noise=[0.05] * 5, drift=0.3, strata=1, count=COUNT, seed=42)
    assert found.best_kept >= 0.95 - SLACK
    assert found.false_alarms <= 0.05 + SLACK


def test_variants_that_are_far_apart_are_distinguished() -> None:
    logs = np.log([1.0, 1.2, 1.44, 1.73]).tolist()
    found = sets_of_variants(logs, 5, noise=[0.02] * 4, drift=0.3, strata=1, count=60, seed=43)
    assert found.power >= 0.95


def test_of_too_many_pairs_nothing_is_computed() -> None:
    one = Together(tuple({1: 0.0, 2: 0.1, 3: 0.2} for _ in range(202)))
    with pytest.raises(ValueError, match=f"more than {MOST_PAIRS} pairs"):
        Ratios([one], seed=1)


def matrix(count: int, pairs: set[tuple[int, int]]) -> list[list[bool]]:
    return [[(i, j) in pairs or (j, i) in pairs for j in range(count)] for i in range(count)]


@pytest.mark.parametrize(
    ("count", "apart", "letters"),
    [
        (3, set(), ["a", "a", "a"]),
        (3, {(0, 1), (0, 2), (1, 2)}, ["a", "b", "c"]),
        (3, {(0, 2)}, ["a", "ab", "b"]),
        (4, {(0, 2), (0, 3), (1, 3)}, ["a", "ab", "bc", "c"]),
        # The noisy variant 1 is like all others, which are all different.
        (4, {(0, 2), (0, 3), (2, 3)}, ["a", "abc", "b", "c"]),
    ],
)
def test_letters(count: int, apart: set[tuple[int, int]], letters: list[str]) -> None:
    assert compact_letters(matrix(count, apart)) == letters


def test_two_share_a_letter_exactly_if_they_were_not_distinguished() -> None:
    for seed in range(50):
        draw = np.random.default_rng(seed)
        pairs = {(i, j) for i in range(7) for j in range(i + 1, 7) if draw.random() < 0.4}
        letters = compact_letters(matrix(7, pairs))
        if letters is not None:
            shared = {(i, j) for i in range(7) for j in range(i + 1, 7) if set(letters[i]) & set(letters[j])}
            assert shared | pairs == {(i, j) for i in range(7) for j in range(i + 1, 7)} and not shared & pairs


def test_past_z_the_letters_have_blanks_between_and_too_many_are_none() -> None:
    every = {(i, j) for i in range(30) for j in range(i + 1, 30)}
    letters = compact_letters(matrix(30, {pair for pair in every if pair[1] - pair[0] > 1}))
    assert letters is not None and letters[0] == "a" and letters[28] == "ab ac"
    # Fifteen pairs that differ, each within itself only: 2^15 groups.
    assert compact_letters(matrix(30, {(i, i + 1) for i in range(0, 30, 2)})) is None


PACE = {"disk": 1.0, "ssd": 1.5, "nvme": 2.0, "zfs": 2.01}


def rate(variant: Variant, block: int) -> float:
    noise = np.random.default_rng(zlib.crc32(f"{variant.id} {block}".encode())).standard_normal()
    return 1000 * PACE[str(variant.levels["storage"])] * math.exp(0.01 * noise)


def test_the_ranking_has_groups_and_the_answer_names_the_fastest() -> None:
    analysis = analyse(sweep({"storage": list(PACE)}, rate, aa=True))
    assert {result.label: result.group for result in analysis.variants} == {
        "zfs": "a",
        "nvme": "a",
        "ssd": "b",
        "disk": "c",
        "disk (A/A)": None,
    }
    (group,) = analysis.groups
    assert set(group.fastest) == {"nvme", "zfs"} and group.missing is None
    assert "cannot be distinguished as the fastest" in analysis.answer


def test_few_variants_have_no_groups() -> None:
    analysis = analyse(sweep({"storage": ["disk", "ssd"]}, rate))
    assert analysis.groups == () and {result.group for result in analysis.variants} == {None}


def test_a_variant_without_enough_trials_is_named_and_left_out() -> None:
    def failing(variant: Variant, block: int) -> float | None:
        return None if variant.levels["storage"] == "ssd" and block > 2 else rate(variant, block)

    (group,) = analyse(sweep({"storage": list(PACE)}, failing)).groups
    assert set(group.letters) == {"disk", "nvme", "zfs"}
    assert group.missing == "fewer than 3 counted trials: ssd"
    (alone,) = analyse(sweep({"storage": list(PACE)}, failing, repeats=2)).groups
    assert alone.letters == {} and alone.missing == "not grouped: 0 variants have 3 counted trials, which takes 3"


def test_what_differs_no_more_than_an_alarmed_pair_is_one_group() -> None:
    def odd(variant: Variant, block: int) -> float:
        return rate(variant, block) * (1.6 if variant.is_aa_twin else 1.0)

    analysis = analyse(sweep({"storage": list(PACE)}, odd, aa=True))
    assert analysis.noise is not None and analysis.noise.alarm
    groups = {result.label: result.group for result in analysis.variants if not result.is_aa_twin}
    assert groups == {"zfs": "a", "nvme": "a", "ssd": "ab", "disk": "b"}
