"""Patterns of trials that a reader of a plot sees: a drift over the blocks, two modes of a variant, a trial that stands out.

All is done on logarithms. Each test's false alarms are known where the noise of trials is lognormal: of the drift by Kendall's rank
correlation, of the modes by simulation, of the outlier by Grubbs' test with Bonferroni's bound. Together they stay below 5 % of reports.
A pattern must also be large enough to matter.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np

from plinth.analyse.bootstrap import Floats, of_trials
from plinth.analyse.machine_load import LEAST_DIFFERENCE, machine_load
from plinth.analyse.trials import JudgedTrial, Measured, name_trials
from plinth.model.analysis import PatternMetric, TrialPattern
from plinth.model.figures import Estimate, bounds, number, percent
from plinth.model.units import format_duration

DRIFT_ALPHA, MODES_ALPHA, OUTLIER_ALPHA = 0.017, 0.011, 0.016
"""The shares of reports without a pattern in which each is found by chance. Of five blocks only an unbroken rise or fall has 0.017."""
LEAST_DRIFT, LEAST_MODES, LEAST_OUTLIER = 1.05, 1.10, 1.10
"""The smallest ratios of throughputs that are worth a sentence."""
LEAST_SLOW = 1.5
"""The same of a p99 latency."""
MIN_BLOCKS, MIN_FOR_MODES, MIN_FOR_OUTLIER = 5, 6, 4
_LEAST_SPREAD = 0.001
"""Trials that agree better than to a thousandth do so by chance."""
_EXACT = 40
"""Blocks up to which the distribution of Kendall's statistic is counted, and not approximated by a normal one."""
_SIMULATED = 2_000_000
"""Values drawn for the distribution of the modes' statistic, in 20,000 samples at most."""


class Found(NamedTuple):
    """A pattern: the places of the trials that it is of, their figure over that of the others (of a drift, the last block over the first,
    by a line through the medians of slopes), and the p-value."""

    places: tuple[int, ...]
    ratio: float
    p_value: float


def find_drift(variants: Sequence[Mapping[int, float]]) -> Found | None:
    """Return the drift that all variants share, of their logs by block; None where none is clear, or of fewer than MIN_BLOCKS blocks."""
    deviations: dict[int, list[float]] = {}
    for logs in variants:
        centre = float(np.median(list(logs.values()))) if logs else 0.0
        for block, log in logs.items():
            deviations.setdefault(block, []).append(log - centre)
    if len(deviations) < MIN_BLOCKS:
        return None
    blocks = np.array(sorted(deviations), dtype=np.float64)
    series = np.array([np.median(deviations[int(block)]) for block in blocks])
    later, earlier = np.tril_indices(len(blocks), -1)
    rises = series[later] - series[earlier]
    slope = float(np.median(rises / (blocks[later] - blocks[earlier])))
    ratio = math.exp(slope * (blocks[-1] - blocks[0]))
    p_value = _kendall_p(len(blocks), int(np.sign(rises).sum()))
    return Found((), ratio, p_value) if p_value <= DRIFT_ALPHA and _apart(ratio) >= LEAST_DRIFT else None


def find_modes(logs: Sequence[float], least: float, tests: int = 1) -> Found | None:
    """Find two groups of at least two trials each, at least `least` apart; `tests` is how often a report looks for them."""
    n = len(logs)
    if n < MIN_FOR_MODES:
        return None
    order = np.argsort(np.asarray(logs), kind="stable")
    ordered = np.asarray(logs, dtype=np.float64)[order]
    separations = _separations(ordered)
    place = int(np.argmax(separations))
    seen = _null_separations(n)
    p_value = min(1.0, tests * (1 + int(np.count_nonzero(seen >= separations[place]))) / (1 + len(seen)))
    low, high = order[: place + 2], order[place + 2 :]
    ratio = math.exp(ordered[place + 2 :].mean() - ordered[: place + 2].mean())
    if p_value > MODES_ALPHA or ratio < least:
        return None
    smaller, ratio = (high, ratio) if len(high) <= len(low) else (low, 1 / ratio)
    return Found(tuple(sorted(smaller.tolist())), ratio, p_value)


def find_outlier(logs: Sequence[float], least: float, tests: int = 1) -> Found | None:
    """Return the trial that is furthest from the others in units of their spread, at least `least` from their median."""
    n = len(logs)
    if n < MIN_FOR_OUTLIER:
        return None
    from scipy.special import stdtr

    values = np.asarray(logs, dtype=np.float64)
    others = np.array([np.delete(values, place) for place in range(n)])
    spread = np.maximum(others.std(axis=1, ddof=1), _LEAST_SPREAD) * math.sqrt(1 + 1 / (n - 1))
    distance = np.abs(values - others.mean(axis=1)) / spread
    place = int(np.argmax(distance))
    p_value = min(1.0, tests * 2 * n * float(stdtr(n - 2, -distance[place])))
    ratio = math.exp(values[place] - np.median(others[place]))
    return Found((place,), ratio, p_value) if p_value <= OUTLIER_ALPHA and _apart(ratio) >= least else None


def _apart(ratio: float) -> float:
    return max(ratio, 1 / ratio)


def _separations(ordered: Floats) -> Floats:
    """Return, for each split of ordered rows with two or more on either side, squares between the groups over those within."""
    n = ordered.shape[-1]
    below = np.arange(2, n - 1)
    sums = np.cumsum(ordered - ordered.mean(axis=-1, keepdims=True), axis=-1)[..., below - 1]
    # The values are centred: what is below and what is above have opposite sums.
    between = sums**2 * (1 / below + 1 / (n - below))
    total = ordered.var(axis=-1, keepdims=True) * n
    return between / np.maximum(total - between, n * _LEAST_SPREAD**2)


@lru_cache(maxsize=32)
def _null_separations(n: int) -> Floats:
    """Return the largest separation of samples of `n` from one normal distribution, with a spread that does not meet the floor."""
    rng = np.random.default_rng(n)
    samples = np.sort(rng.standard_normal((max(1000, min(20_000, _SIMULATED // n)), n)), axis=-1)
    return _separations(samples).max(axis=-1)


def _kendall_p(n: int, score: int) -> float:
    """Return two-sided p of a score of concordant less discordant pairs of n values without ties."""
    if n > _EXACT:
        return math.erfc(max(0, abs(score) - 1) / math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / math.sqrt(2))
    counts = _inversions(n)
    pairs = n * (n - 1) // 2
    most = (pairs - abs(score)) // 2
    return min(1.0, 2 * float(counts[: most + 1].sum()))


@lru_cache(maxsize=_EXACT)
def _inversions(n: int) -> Floats:
    """Return the share of the permutations of n with 0, 1, 2 ... inversions."""
    shares = np.ones(1)
    for size in range(2, n + 1):
        shares = np.convolve(shares, np.full(size, 1 / size))
    return shares


_NAMES: dict[PatternMetric, str] = {"tps": "throughput", "latency_p99": "p99 latency"}


def trial_patterns(measured: Mapping[str, Measured], seed: int) -> tuple[TrialPattern, ...]:
    """Return what the counted trials show: a drift that all share first, then each variant's two modes or trials that stand out.

    Under a drift no modes are looked for: its beginning and its end are two.
    """
    variants = [one for one in measured.values() if one.counted]
    drift = _drift(variants)
    found = [] if drift is None else [drift]
    for one in variants:
        modes = _modes(one, len(variants)) if drift is None else None
        if modes is not None:
            found.append(modes)
        else:
            found += _outliers(one, len(variants), seed)
    return tuple(found)


def _metric_of(one: Measured) -> PatternMetric:
    """Return latency for an open loop, whose throughput is what its schedule asks for, otherwise throughput."""
    return "latency_p99" if one.variant.workload.is_open_loop else "tps"


def _drift(variants: Sequence[Measured]) -> TrialPattern | None:
    metrics = {_metric_of(one) for one in variants}
    metric: PatternMetric = "tps" if "tps" in metrics else "latency_p99"
    alike = [one for one in variants if _metric_of(one) == metric]
    of_metric = [one.log_tps if metric == "tps" else one.log_p99 for one in alike]
    found = find_drift(of_metric)
    if found is None:
        return None
    blocks = sorted({block for logs in of_metric for block in logs})
    whose = "of all variants together " if len(of_metric) > 1 else ""
    kept = "; ratios within blocks do not hold it, figures of single variants do" if len(of_metric) > 1 else ""
    return TrialPattern(
        kind="drift",
        metric=metric,
        trials=(),
        ratio=found.ratio,
        p_value=found.p_value,
        sentence=f"{_NAMES[metric]} {whose}{_moved(found.ratio)} from block {blocks[0]} to block {blocks[-1]}, a drift of the run{kept}",
    )


def _modes(one: Measured, tests: int) -> TrialPattern | None:
    metric = _metric_of(one)
    trials = _trials_with(one, metric)
    found = find_modes([_log(trial, metric) for trial in trials], LEAST_MODES if metric == "tps" else LEAST_SLOW, tests)
    if found is None:
        return None
    smaller = [trial for place, trial in enumerate(trials) if place in found.places]
    others = [trial for trial in trials if trial not in smaller]
    sides = " and ".join(
        f"{name_trials(side)} near {_text(math.exp(median(_log(trial, metric) for trial in side)), metric)}"
        for side in (smaller, others)
    )
    return TrialPattern(
        kind="modes",
        variant=one.variant.id,
        metric=metric,
        trials=tuple(trial.number for trial in smaller),
        ratio=found.ratio,
        p_value=found.p_value,
        sentence=f"{one.variant.label}: its trials have two modes of {_NAMES[metric]}, {sides}: a median describes neither",
    )


def _outliers(one: Measured, variants: int, seed: int) -> Iterator[TrialPattern]:
    """Find outliers of each figure: a disk that stalls once moves the p99 and leaves the throughput."""
    metrics: tuple[PatternMetric, ...] = ("tps", "latency_p99") if _metric_of(one) == "tps" else ("latency_p99",)
    for metric in metrics:
        trials = _trials_with(one, metric)
        least = LEAST_OUTLIER if metric == "tps" else LEAST_SLOW
        found = find_outlier([_log(trial, metric) for trial in trials], least, variants * len(metrics))
        if found is None:
            continue
        outlier = trials[found.places[0]]
        others = [trial for trial in trials if trial is not outlier]
        with_it, without = (
            of_trials([math.exp(_log(trial, metric)) for trial in side], seed) for side in (trials, others)
        )
        yield TrialPattern(
            kind="outlier",
            variant=one.variant.id,
            metric=metric,
            trials=(outlier.number,),
            ratio=found.ratio,
            p_value=found.p_value,
            sentence=f"{one.variant.label}, trial {outlier.number}: {_NAMES[metric]} was {_off(found.ratio)} the median of its other "
            f"trials; with it the median is {_figure(with_it, metric)}, without it {_figure(without, metric)}"
            f"{_busy(outlier, others)}",
        )


def _busy(outlier: JudgedTrial, others: Sequence[JudgedTrial]) -> str:
    """Return what others on the machine did in the trial, where that was much more than in the other trials."""
    then = machine_load(outlier.seen).others_cpu
    usual = [load for trial in others if (load := machine_load(trial.seen).others_cpu) is not None]
    if then is None or not usual or then - median(usual) < LEAST_DIFFERENCE["others_cpu"]:
        return ""
    return f"; other processes took {percent(then, 0)} of all cores' time in it, and {percent(median(usual), 0)} in the others"


def _trials_with(one: Measured, metric: PatternMetric) -> list[JudgedTrial]:
    return [trial for trial in one.counted if metric == "tps" or trial.latency]


def _log(trial: JudgedTrial, metric: PatternMetric) -> float:
    if metric == "latency_p99":
        return math.log(max(trial.latency.percentile_ns(0.99), 1))
    assert trial.contents.trial.tps, "a counted trial has a throughput"
    return math.log(trial.contents.trial.tps)


def _text(value: float, metric: PatternMetric) -> str:
    return f"{number(value)} tps" if metric == "tps" else format_duration(float(f"{value / 1e9:.3g}"))


def _figure(of: Estimate, metric: PatternMetric) -> str:
    return _text(of.value, metric) + bounds(of, lambda value: _text(value, metric))


def _moved(ratio: float) -> str:
    return f"{'rose' if ratio > 1 else 'fell'} by {percent(abs(ratio - 1), 0)}"


def _off(ratio: float) -> str:
    return f"{percent(abs(ratio - 1), 0)} {'above' if ratio > 1 else 'below'}" if ratio < 2 else f"{number(ratio)}x"
