"""The Pareto front of throughput, 99th percentile of latency, kept commits, bytes written and cost, and what is dominated by what.

A variant dominates another if it is shown better in one metric at least, and worse by no more than 5 % in each of the others:
bounds of intervals that hold together for all ratios of all metrics and strata (`plinth.analyse.simultaneous`). What the noise leaves
open dominates nothing, so a front is rather too long than too short. Open loops are compared by what they did in time, and one that
did not keep its schedule dominates none that did.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plinth.analyse.bootstrap import MIN_TRIALS, of_trials
from plinth.analyse.comparison import EQUIVALENCE
from plinth.analyse.costs import MILLION_PER_HOUR
from plinth.analyse.simultaneous import MOST_PAIRS, Ratios, Together, pairs_of
from plinth.analyse.trials import Measured
from plinth.model.analysis import VariantResult
from plinth.model.base import Gap
from plinth.model.factors import Design
from plinth.model.pareto import METRIC_NAMES, ParetoFront, ParetoMetric, ParetoPoint
from plinth.model.safety import GRADES
from plinth.model.sweep import Stratum

FEWEST = 3
"""Variants of the whole experiment; of two without prices, their comparison says all."""
_EQUAL = 1e-12
_COST: ParetoMetric = "cost_per_million_transactions"
Figures = Mapping[str, Mapping[int, float]]
"""Of each variant: a figure of its counted trials, by block."""


@dataclass(frozen=True)
class _Metric:
    """A metric that has a figure in every trial of every variant of a stratum."""

    name: ParetoMetric
    is_more_better: bool
    figures: Figures


@dataclass(frozen=True)
class _Candidates:
    """What is compared in a stratum."""

    stratum: Stratum
    ids: tuple[str, ...]
    metrics: tuple[_Metric, ...]
    by_grade: bool
    by_schedule: bool
    gaps: tuple[Gap, ...]

    @property
    def names(self) -> tuple[ParetoMetric, ...]:
        """All metrics, commits among them."""
        grades: tuple[ParetoMetric, ...] = ("commits",) if self.by_grade else ()
        schedules: tuple[ParetoMetric, ...] = ("schedule",) if self.by_schedule else ()
        return (*(metric.name for metric in self.metrics), *grades, *schedules)


def pareto_fronts(
    design: Design,
    measured: Mapping[str, Measured],
    results: Mapping[str, VariantResult],
    written: Figures,
    seed: int,
    prices: Mapping[str, float] | None = None,
) -> tuple[ParetoFront, ...]:
    """Return the front of each stratum of two variants or more; none of experiments of fewer than FEWEST variants without prices.

    `written` has the bytes that each transaction wrote to devices, of the variants of which they were counted; `prices` what an hour of
    each variant costs, None for an experiment without prices.
    """
    if prices is None and sum(len(one.variants) for one in design.strata) < FEWEST:
        return ()
    found = [_candidates(one, measured, results, written, prices) for one in design.strata if len(one.variants) > 1]
    pairs = pairs_of([len(one.ids) for one in found for _ in one.metrics])
    if pairs > MOST_PAIRS:
        gap = Gap(what="Pareto front", reason=f"{pairs:,} ratios are more than {MOST_PAIRS:,}")
        return tuple(ParetoFront(stratum=one.stratum.label, metrics=(), points=(), gaps=(gap,)) for one in found)
    compared = [one for one in found if len(one.ids) > 1]
    sets = [_together(one.ids, metric) for one in compared for metric in one.metrics]
    ratios = Ratios(sets, seed)
    fronts: list[ParetoFront] = []
    first = 0
    for one in found:
        dominance = _Dominance(one, sets, ratios, first, results)
        points = tuple(_point(one, place, dominance, results, seed) for place in range(len(one.ids)))
        fronts.append(ParetoFront(stratum=one.stratum.label, metrics=one.names, points=points, gaps=one.gaps))
        first += len(one.metrics) if len(one.ids) > 1 else 0
    return tuple(fronts)


@dataclass(frozen=True)
class _Dominance:
    """Which variant of a stratum dominates which; `first` is the place of its first metric among all sets."""

    of: _Candidates
    sets: Sequence[Together]
    ratios: Ratios
    first: int
    results: Mapping[str, VariantResult]

    def dominates(self, over: int, under: int) -> bool:
        shown = [self._shown(which, over, under) for which in range(len(self.of.metrics))]
        if self.of.by_grade:
            over_grade, under_grade = (
                GRADES.index(self.results[self.of.ids[place]].safety.grade) for place in (over, under)
            )
            shown.append((over_grade < under_grade, over_grade <= under_grade))
        if self.of.by_schedule:
            over_kept, under_kept = (self.results[self.of.ids[place]].schedule == "kept" for place in (over, under))
            shown.append((over_kept and not under_kept, over_kept or not under_kept))
        return all(no_worse for _, no_worse in shown) and any(better for better, _ in shown)

    def _shown(self, which: int, over: int, under: int) -> tuple[bool, bool]:
        """Return whether the one is shown better than the other in a metric, and whether worse by no more than 5 %."""
        metric, place = self.of.metrics[which], self.first + which
        good, bad = (over, under) if metric.is_more_better else (under, over)
        interval = self.ratios.interval(place, good, bad)
        if interval is None:  # Without any spread only what is the same is known to be no worse.
            centres = self.sets[place].centres
            return False, abs(float(centres[good] - centres[bad])) <= _EQUAL
        return interval.low > 1, interval.low >= 1 / EQUIVALENCE


def _candidates(
    stratum: Stratum,
    measured: Mapping[str, Measured],
    results: Mapping[str, VariantResult],
    written: Figures,
    prices: Mapping[str, float] | None,
) -> _Candidates:
    ids = tuple(id_ for id_ in stratum.variants if len(measured[id_].log_tps) >= MIN_TRIALS)
    few = [results[id_].label for id_ in stratum.variants if id_ not in ids]
    gaps = [Gap(what=", ".join(few), reason=f"fewer than {MIN_TRIALS} counted trials")] if few else []
    rates = {id_: {block: math.exp(log) for block, log in measured[id_].log_in_time.items()} for id_ in ids}
    metrics = [_Metric("tps", is_more_better=True, figures=rates)]
    latencies = {id_: _latencies(measured[id_]) for id_ in ids}
    wal = {id_: _wal(measured[id_]) for id_ in ids}
    devices = {id_: written.get(id_, {}) for id_ in ids}
    choices: list[tuple[tuple[ParetoMetric, Figures], ...]] = [
        (("latency_p99", latencies),),
        (("written_per_transaction", devices), ("wal_per_transaction", wal)),
    ]
    if prices is not None:
        costs = {
            id_: {block: prices[id_] * MILLION_PER_HOUR / tps for block, tps in rates[id_].items()}
            if id_ in prices
            else {}
            for id_ in ids
        }
        choices.append(((_COST, costs),))
    for alternatives in choices:
        whole = next((one for one in alternatives if _is_whole(one[1], rates)), None)
        if whole is not None:
            metrics.append(_Metric(whole[0], is_more_better=False, figures=whole[1]))
        else:
            title = METRIC_NAMES[alternatives[0][0]]
            gaps.append(Gap(what=title, reason="it is not known, or 0, in a counted trial of a variant"))
    unknown = [results[id_].label for id_ in ids if results[id_].safety.grade == "unknown"]
    if unknown:
        gaps.append(Gap(what=METRIC_NAMES["commits"], reason=f"not known of {', '.join(unknown)}"))
    schedules = {results[id_].schedule for id_ in ids}
    by_schedule = None not in schedules and "kept" in schedules and len(schedules) > 1
    return _Candidates(stratum, ids, tuple(metrics), not unknown, by_schedule, tuple(gaps))


def _is_whole(figures: Figures, rates: Figures) -> bool:
    """Return whether every counted trial of every variant has a figure above 0."""
    return all(figures[id_].keys() == rates[id_].keys() and all(v > 0 for v in figures[id_].values()) for id_ in rates)


def _latencies(measured: Measured) -> dict[int, float]:
    points = (judged.point() for judged in measured.counted)
    return {point.block: float(point.latency_p99_ns) for point in points if point.latency_p99_ns is not None}


def _wal(measured: Measured) -> dict[int, float]:
    works = ((judged.contents.trial.block, judged.work) for judged in measured.counted)
    return {block: work.wal_bytes for block, work in works if work is not None and work.wal_bytes is not None}


def _together(ids: Sequence[str], metric: _Metric) -> Together:
    return Together(tuple({block: math.log(value) for block, value in metric.figures[id_].items()} for id_ in ids))


def _point(
    one: _Candidates, place: int, dominance: _Dominance, results: Mapping[str, VariantResult], seed: int
) -> ParetoPoint:
    id_ = one.ids[place]
    figures = {metric.name: list(metric.figures[id_].values()) for metric in one.metrics[1:]}
    written = next((values for name, values in figures.items() if name not in ("latency_p99", _COST)), None)
    tps = results[id_].tps
    assert tps is not None, "it has counted trials"
    others = (other for other in range(len(one.ids)) if other != place)
    return ParetoPoint(
        variant=id_,
        tps=tps,
        latency_p99_ns=of_trials(figures["latency_p99"], seed) if "latency_p99" in figures else None,
        bytes_per_transaction=of_trials(written, seed) if written else None,
        cost_per_million=of_trials(figures[_COST], seed) if _COST in figures else None,
        dominated_by=tuple(one.ids[other] for other in others if dominance.dominates(other, place)),
    )
