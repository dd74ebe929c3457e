"""The patterns of a run's trials in sentences: what is seen, and what a figure is with and without it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.machine_load import LEAST_DIFFERENCE, machine_load
from plinth.analyse.trial_patterns import LEAST_MODES, LEAST_OUTLIER, LEAST_SLOW, find_drift, find_modes, find_outlier
from plinth.analyse.trials import JudgedTrial, Measured, name_trials
from plinth.model.estimate import Estimate
from plinth.model.figures import bounds, number, percent
from plinth.model.trial_pattern import PatternMetric, TrialPattern
from plinth.model.units import format_duration

_NAMES: dict[PatternMetric, str] = {"tps": "throughput", "latency_p99": "p99 latency"}


def trial_patterns(measured: Mapping[str, Measured], seed: int) -> tuple[TrialPattern, ...]:
    """What the counted trials show: a drift that all share first, then each variant's two modes or trials that stand out.

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
    """Throughput of an open loop is what its schedule asks for."""
    return "tps" if one.variant.workload.rate is None else "latency_p99"


def _logs(one: Measured, metric: PatternMetric) -> dict[int, float]:
    return one.log_tps if metric == "tps" else one.log_p99


def _drift(variants: Sequence[Measured]) -> TrialPattern | None:
    metrics = {_metric_of(one) for one in variants}
    metric: PatternMetric = "tps" if "tps" in metrics else "latency_p99"
    of_metric = [_logs(one, metric) for one in variants if _metric_of(one) == metric]
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
    smaller = [trial for place, trial in enumerate(trials) if place in found.smaller]
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
    """One of each figure. Both are looked at: a disk that stalls once moves the p99 and leaves the throughput."""
    metrics: tuple[PatternMetric, ...] = ("tps", "latency_p99") if _metric_of(one) == "tps" else ("latency_p99",)
    for metric in metrics:
        trials = _trials_with(one, metric)
        least = LEAST_OUTLIER if metric == "tps" else LEAST_SLOW
        found = find_outlier([_log(trial, metric) for trial in trials], least, variants * len(metrics))
        if found is None:
            continue
        outlier = trials[found.place]
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
    """What others on the machine did in the trial, where that was much more than in the other trials."""
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
