"""When trials may stop: a group-sequential test of each ratio, which may be looked at after every block of trials.

Looking at a test of fixed size after every block and stopping at the first significant one calls equal variants different far
more often than 5 %. Here the 5 % are spent over the looks by the Pocock-type function of Lan and DeMets (1983), as a function of
the trials so far over the most that may be run. The test is Student's t of the log ratios within blocks. With few trials its joint
distribution over the looks is far from that of a normal test with known noise: boundaries of the latter, applied to t at the same
nominal levels (Jennison and Turnbull 2000, section 11.5), gave up to 6.5 % false alarms. So the critical values are taken from simulated
series of t. The intervals are repeated confidence intervals (Jennison and Turnbull 1989): those of all looks hold the truth
together 95 times in 100. docs/concepts/statistics.md has the shares that were found in simulation.

A decision depends on the trials alone, in the order of their blocks. So it is never stored: a resumed run makes the same one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from plinth.analyse.bootstrap import LEVEL, MAX_TRIALS
from plinth.model.experiment import FIRST_LOOK
from plinth.model.figures import Interval

_GROWTH = 1.05
"""Of the trials from one look to the next, once that is more than one: more looks would gain nothing."""
_EXPERIMENTS = 200_000
"""Simulated for the critical values: what they let through is known to a standard error of 0.05 % at 5 %."""

Decision = Literal["difference", "within the target", "undecided"]


@dataclass(frozen=True)
class Rule:
    """What ends the trials: `target` is the difference that matters, as a share of 1; `most` trials of each are run at most;
    `family` comparisons share the 5 %."""

    target: float
    most: int
    family: int

    def __post_init__(self) -> None:
        if not self.target > 0 or self.most < FIRST_LOOK or self.family < 1:
            raise ValueError(f"a target above 0, {FIRST_LOOK} trials or more, 1 comparison or more; got {self}")


@dataclass(frozen=True)
class Decided:
    """What a rule says of a ratio after `trials` of each, the ones that it stopped at or the last look so far.

    `interval` is None before the first look, and where the trials show no spread. `more_trials` is about how many would decide, if
    ratio and spread stay as seen: None where it is decided, unknown before the first look, or over a thousand.
    """

    decision: Decision
    trials: int
    interval: Interval | None = None
    more_trials: int | None = None


def decide(logs: Sequence[float], rule: Rule) -> Decided:
    """Return the decision at the first look that allows one; `logs` are of the ratios within blocks, in the order of the blocks.

    difference: the interval leaves out 1. within the target: it lies inside 1/(1 + target) to 1 + target. What was decided at
    a look remains so, regardless of trials that are run for other comparisons afterwards.
    """
    margin = math.log1p(rule.target)
    values = critical_values(rule.most, (1 - LEVEL) / rule.family)
    last: tuple[int, float, float, Interval] | None = None
    for trials, value in values.items():
        if trials > len(logs):
            break
        seen = np.asarray(logs[:trials], dtype=np.float64)
        spread = float(seen.std(ddof=1))
        if spread == 0 or math.isinf(value):
            continue
        centre, half = float(seen.mean()), value * spread / math.sqrt(trials)
        interval = Interval(low=math.exp(centre - half), high=math.exp(centre + half), level=LEVEL)
        if abs(centre) > half:
            return Decided("difference", trials, interval)
        if abs(centre) + half <= margin:
            return Decided("within the target", trials, interval)
        last = (trials, centre, spread, interval)
    if last is None:
        return Decided("undecided", len(logs))
    trials, centre, spread, interval = last
    return Decided("undecided", trials, interval, _more_trials(centre, spread, len(logs), rule, values))


def looks(most: int) -> list[int]:
    """Return numbers of trials of each after which is looked: from FIRST_LOOK on each, later every twentieth part more; `most` at last."""
    found = [FIRST_LOOK]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + 1, round(found[-1] * _GROWTH))))
    return found


@lru_cache(maxsize=16)
def critical_values(most: int, alpha: float) -> dict[int, float]:
    """Return, of each look, the |t| beyond which a difference is shown; together they spend at most `alpha` where noise is normal.

    Each is the quantile, among simulated experiments without a difference that have not stopped before, that spends what the
    look may. Two standard errors of that simulation are not spent, so that its own error does not lead beyond `alpha`. A
    function of its arguments alone.
    """
    alpha -= 2 * math.sqrt(alpha * (1 - alpha) / _EXPERIMENTS)
    rng = np.random.default_rng(0)
    sums, squares = np.zeros(_EXPERIMENTS), np.zeros(_EXPERIMENTS)
    found: dict[int, float] = {}
    stopped, trials = 0, 0
    for look in looks(most):
        for _ in range(look - trials):
            drawn = rng.standard_normal(len(sums))
            sums += drawn
            squares += drawn**2
        trials = look
        t = np.abs(sums) / np.sqrt((squares - sums**2 / look) * look / (look - 1))
        stops = round(_spent(look / most, alpha) * _EXPERIMENTS) - stopped
        if stops == 0:
            found[look] = math.inf
            continue
        found[look] = float(np.partition(t, -stops)[-stops])
        goes_on = t < found[look]
        sums, squares, stopped = sums[goes_on], squares[goes_on], stopped + stops
    return found


def _spent(share: float, alpha: float) -> float:
    """Return the part of `alpha` spent at this share of the trials, by the Pocock-type spending function."""
    return alpha * math.log1p((math.e - 1) * share)


def _more_trials(centre: float, spread: float, trials: int, rule: Rule, values: dict[int, float]) -> int | None:
    """Estimate how many; beyond the most that may be run, at the critical value of the last look."""
    margin = math.log1p(rule.target)
    for total in looks(trials + MAX_TRIALS):
        half = values.get(total, values[rule.most]) * spread / math.sqrt(total)
        if total > trials and (half < abs(centre) or half + abs(centre) <= margin):
            return total - trials
    return None
