"""RAID-0 of two SSDs compared with one, as in the study of 2015.

Published: linear reads about twice as fast, random selects +15 %, random updates +40 %.
"""

from pathlib import Path

import pytest

from shape import Shape, run_shape

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def shape(module_scratch: Path) -> Shape:
    return run_shape(module_scratch, "raid0")


def gain(shape: Shape, script: str) -> float:
    return shape.ratio(f"raid0-{script}", to=f"one-{script}")


def test_scans_are_near_twice_as_fast(shape: Shape) -> None:
    """Published: twice."""
    assert 1.5 <= gain(shape, "scripts-numbers-scan-sql") <= 2.4


def test_random_updates_gain_less_since_a_flush_waits_for_both_drives(shape: Shape) -> None:
    """Published: 1.4 times."""
    assert 1.15 <= gain(shape, "scripts-random-update-sql") <= 1.7


def test_random_selects_gain_and_never_more_than_there_are_drives(shape: Shape) -> None:
    """Published: 1.15 times, with a client that took a fifth of the CPU."""
    assert 1.15 <= gain(shape, "scripts-random-select-sql") <= 2.1
