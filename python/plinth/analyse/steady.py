"""Was a load in a steady state? One rule, on its throughput by the second: of the measured phase of a trial, and of the last
seconds of a warm-up that ends by it.

A load is unsteady when its throughput shows a trend or a jump that is both large, more than a tenth of
the mean, and clear, several times its own standard error. Seconds are autocorrelated, so that errors are
widened by sqrt((1 + r) / (1 - r)), r the lag-1 autocorrelation of what is left after the fit (Bartlett 1946),
corrected for its bias in short series (Marriott and Pope 1954).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plinth.analyse.bootstrap import Floats
from plinth.model.figures import percent
from plinth.model.load import Second

MIN_SECONDS = 10
"""Of fewer the rule says nothing; the warm-up's window has at least `plinth.model.experiment.LEAST_STEADY_WINDOW_S`."""
MIN_SIDE = 5
"""Seconds on each side of a jump; what is shorter is a dip, such as a checkpoint's."""
FITTED = 2
"""Parameters of either fit: a level and a slope, or two levels."""
MIN_CHANGE = 0.10
TREND_ERRORS = 3.0
LEAST_STEP = 0.4
"""How much of its throughput a load must lose at once for good: a checkpoint costs less, or passes."""
JUMP_ERRORS = 4.0
"""More than for a trend, since the place of the jump is the largest of many."""


@dataclass(frozen=True)
class Steadiness:
    """`steady` is None where there is too little to say; `reason` says what was seen otherwise."""

    steady: bool | None
    reason: str | None = None


@dataclass(frozen=True)
class StepDown:
    """A fall at once, `after_s` seconds into the measured time, to `left` of the throughput before, which lasted to the end."""

    after_s: int
    left: float


def step_down(series: Sequence[Second]) -> StepDown | None:
    """Return the step of a load whose throughput fell once by LEAST_STEP or more and stayed down; None where there is none.

    It is clear where two levels leave less than half of the squares that a line leaves, and no second after it is nearer to the level before.
    """
    measured = _measured(series)
    if len(measured) < MIN_SECONDS:
        return None
    rates = np.array([second.done / second.length_ns for second in measured])
    if rates.mean() == 0:
        return None
    change, error, place = _jump(rates)
    if not place or change >= 0 or abs(change) <= JUMP_ERRORS * error:
        return None
    before, after = rates[:place], rates[place:]
    time = np.arange(len(rates)) - (len(rates) - 1) / 2
    of_line = rates - rates.mean() - float(time @ rates / (time @ time)) * time
    of_levels = np.concatenate((before - before.mean(), after - after.mean()))
    left = float(after.mean() / before.mean())
    is_clear = float(of_levels @ of_levels) < float(of_line @ of_line) / 2
    stays = bool((after < (before.mean() + after.mean()) / 2).all())
    return StepDown(place, left) if is_clear and stays and left <= 1 - LEAST_STEP else None


def _measured(series: Sequence[Second]) -> list[Second]:
    """Return the seconds of the measured phase; a last piece shorter than half a second is left out."""
    return [second for second in series if second.phase == "measure" and second.length_ns >= 500_000_000]


def steadiness(series: Sequence[Second]) -> Steadiness:
    """Apply the rule to the seconds of the measured phase; a last piece shorter than half a second is left out."""
    measured = _measured(series)
    if len(measured) < MIN_SECONDS:
        return Steadiness(None, f"{len(measured)} measured seconds; {MIN_SECONDS} are needed to see a trend")
    return is_steady(measured, "the measured time")


def is_steady(seconds: Sequence[Second], over: str) -> Steadiness:
    """Apply the rule to `MIN_SECONDS` or more in a row, all of which count; `over` names them in the reason."""
    rates = np.array([second.done / second.length_ns for second in seconds])
    if rates.mean() == 0:
        return Steadiness(None, "nothing was done in any second")
    rates /= rates.mean()
    change, error = _trend(rates)
    if abs(change) > MIN_CHANGE and abs(change) > TREND_ERRORS * error:
        return Steadiness(False, f"throughput {_moved(change)} over {over}")
    change, error, place = _jump(rates)
    if abs(change) > MIN_CHANGE and abs(change) > JUMP_ERRORS * error:
        return Steadiness(False, f"throughput {_moved(change)} at once after {place} s")
    return Steadiness(True)


def _moved(change: float) -> str:
    return f"{'rose' if change > 0 else 'fell'} by {percent(abs(change), 0)} of its mean"


def _trend(rates: Floats) -> tuple[float, float]:
    """Return change of a least-squares line from the first second to the last, and its standard error."""
    n = len(rates)
    time = np.arange(n) - (n - 1) / 2
    slope = float(time @ rates / (time @ time))
    left = rates - rates.mean() - slope * time
    error = _noise(left) / np.sqrt(time @ time)
    return slope * (n - 1), float(error * (n - 1))


def _jump(rates: Floats) -> tuple[float, float, int]:
    """Return the clearest difference between the mean after and before some second: change, standard error, second."""
    clearest = (0.0, 1.0, 0)
    for place in range(MIN_SIDE, len(rates) - MIN_SIDE + 1):
        before, after = rates[:place], rates[place:]
        left = np.concatenate((before - before.mean(), after - after.mean()))
        error = float(_noise(left) * np.sqrt(1 / len(before) + 1 / len(after)))
        change = float(after.mean() - before.mean())
        if abs(change) * clearest[1] > abs(clearest[0]) * error:
            clearest = (change, error, place)
    return clearest


def _noise(left: Floats) -> float:
    """Return standard deviation of the residuals of a fit of two parameters, widened for their autocorrelation."""
    n, power = len(left), float(left @ left)
    if power == 0:
        return 0.0
    seen = float(left[1:] @ left[:-1]) / power
    r = min(max((n * seen + FITTED) / (n - 2 * FITTED), 0.0), 0.9)
    return float(np.sqrt(power / (n - FITTED) * (1 + r) / (1 - r)))
