"""The steady-state rule: quiet on noise, loud on trends and jumps."""

import numpy as np
import pytest

from analyse_bundles import seconds
from noise_simulation import unsteady
from plinth.analyse.steady import StepDown, steadiness, step_down


@pytest.mark.parametrize("n", [10, 30, 60])
@pytest.mark.parametrize(("autocorrelation", "at_most"), [(0.0, 0.03), (0.5, 0.12)])
def test_noise_alone_is_steady(n: int, autocorrelation: float, at_most: float) -> None:
    assert unsteady(np.ones(n), 0.10, autocorrelation, 200) <= at_most


@pytest.mark.parametrize(
    ("shape", "what"),
    [
        (np.linspace(1.2, 0.8, 30), "a trend of 40 %"),
        (np.linspace(0.8, 1.2, 60), "a rising trend"),
        (np.where(np.arange(30) < 20, 1.0, 0.7), "a jump of 30 %"),
    ],
)
def test_what_moves_is_found(shape: np.ndarray, what: str) -> None:
    assert unsteady(shape, 0.05, 0.3, 200) >= 0.95, what


def test_small_changes_do_not_matter_however_clear() -> None:
    assert steadiness(seconds(10_000 * np.linspace(1.03, 0.97, 60))).steady is True


def test_a_short_dip_is_not_a_jump() -> None:
    rates = np.full(60, 1000.0)
    rates[30:32] = 300
    assert steadiness(seconds(rates)).steady is True


def test_reasons_are_for_people() -> None:
    fell = steadiness(seconds([1000.0] * 15 + [600.0] * 15))
    assert fell.reason is not None and fell.reason.startswith("throughput fell by")
    rose = steadiness(seconds(np.linspace(500, 1500, 30)))
    assert rose.reason == "throughput rose by 100 % of its mean over the measured time"


def test_too_short_or_empty_cannot_be_said() -> None:
    assert steadiness(seconds([1000.0] * 9)).steady is None
    assert steadiness(()).steady is None
    assert steadiness(seconds([0.0] * 30)).steady is None


def test_warm_up_and_a_last_piece_do_not_count() -> None:
    measured = seconds([1000.0] * 20)
    warm_up = [second.model_copy(update={"phase": "warmup", "done": 10}) for second in measured]
    piece = measured[-1].model_copy(update={"length_ns": 100_000_000, "done": 3})
    assert steadiness((*warm_up, *measured, piece)).steady is True


@pytest.mark.parametrize("autocorrelation", [0.0, 0.5])
def test_a_step_down_is_found_where_it_is(autocorrelation: float) -> None:
    rng = np.random.default_rng(5)
    for left in (0.1, 0.3, 0.5):
        noise = np.zeros(60)
        for place in range(1, 60):
            noise[place] = autocorrelation * noise[place - 1] + 0.05 * rng.standard_normal()
        step = step_down(seconds(1000 * np.where(np.arange(60) < 41, 1.0, left) * np.exp(noise)))
        assert step is not None and step.after_s == pytest.approx(41, abs=1)
        assert step.left == pytest.approx(left, rel=0.1)


@pytest.mark.parametrize(
    "rates",
    [
        np.full(60, 1000.0),
        np.linspace(1000, 200, 60),
        np.where(np.arange(60) < 30, 1000.0, 700.0),
        np.where((np.arange(60) >= 30) & (np.arange(60) < 50), 200.0, 1000.0),
        np.where(np.arange(60) < 30, 200.0, 1000.0),
        np.where(np.arange(60) < 58, 1000.0, 100.0),
        np.zeros(60),
    ],
    ids=["steady", "line", "small", "comes back", "rises", "at the very end", "nothing"],
)
def test_no_step_down(rates: np.ndarray) -> None:
    assert step_down(seconds(rates)) is None


def test_a_step_is_exact_without_noise() -> None:
    assert step_down(seconds([1000.0] * 20 + [250.0] * 10)) == StepDown(20, 0.25)
