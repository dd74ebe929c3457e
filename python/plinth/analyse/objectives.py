"""Whether each variant keeps the bounds that the experiment sets.

Each objective is judged by its own 95 % interval, without a correction for their number: that all of them are met is claimed only
where each one is, an intersection-union test, whose level is that of each part (Berger 1982, Technometrics 24:295-300).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plinth.analyse.bootstrap import Pivot, estimate, of_trials_in_full, stated
from plinth.analyse.costs import MILLION_PER_HOUR, objective_price, price_per_hour
from plinth.analyse.trials import Measured
from plinth.model.analysis import VariantResult
from plinth.model.contents import BundleContents
from plinth.model.durability import PowerCut
from plinth.model.figures import Estimate, number, percent
from plinth.model.objective import LATENCY_QUANTILES, Objective, ObjectiveResult, Outcome
from plinth.model.plan import Plan
from plinth.model.safety import GRADES, Safety

_METHOD = "median of the trials"
_INCLUDES_BOUND = "the interval includes the bound"


class _Found(NamedTuple):
    """The figure of a variant, or why there is none; `doubt`: why a latency that seems to keep its bound may not.

    The interval is there however wide it is: it may still lie on one side of the bound. `pivot` is what it was made from.
    """

    figure: Estimate | None = None
    pivot: Pivot | None = None
    missing: str | None = None
    doubt: str | None = None


def judge_objectives(
    contents: BundleContents, measured: Mapping[str, Measured], results: Sequence[VariantResult], seed: int
) -> tuple[ObjectiveResult, ...]:
    """Return every objective for each of its variants, in the order of the experiment and of the results."""
    judged: list[ObjectiveResult] = []
    for place, objective in enumerate(contents.plan.experiment.objectives):
        for result in results:
            if result.is_aa_twin or not objective.applies_to(result.levels):
                continue
            if objective.metric == "commits":
                judged.append(_of_grade(objective, place, result))
            elif objective.metric == "recovery":
                judged.append(_of_figure(objective, place, result.id, _recovery(contents.cuts, result.id, seed)))
            else:
                found = _figure(objective, contents.plan, measured[result.id], result, seed)
                judged.append(_of_figure(objective, place, result.id, found))
    return tuple(judged)


def costs_by_prices(
    contents: BundleContents, measured: Mapping[str, Measured], results: Sequence[VariantResult], seed: int
) -> dict[str, Estimate | None]:
    """Return what a million transactions cost by [prices], of each variant but the A/A twin; empty without prices."""
    costs: dict[str, Estimate | None] = {}
    for result in results:
        price = price_per_hour(contents.plan, result)
        if price is not None and not result.is_aa_twin and result.tps is not None:
            costs[result.id] = _cost(price, *_tps(measured[result.id], seed)).figure
    return costs


def cheapest_sentence(
    judged: Sequence[ObjectiveResult],
    results: Sequence[VariantResult],
    by_prices: Mapping[str, Estimate | None],
    currency: str = "",
) -> str:
    """Return which variant costs least of those that meet all their objectives; "" for an experiment without a cost.

    The cheapest is named alone only where its interval lies below those of all others.
    """
    asked = [one for one in judged if one.metric == "cost_per_million_transactions"]
    costs = by_prices or {one.variant: one.figure for one in asked}
    if not costs:
        return ""
    if not by_prices and len(costs) < len(asked):
        return "No variant is named the cheapest: some have several prices."
    failed = {one.variant for one in judged if one.outcome != "met"}
    labels = {one.id: one.label for one in results}
    known = [(labels[id_], cost) for id_, cost in costs.items() if cost is not None and id_ not in failed]
    if not known:
        return "No variant is shown to meet all its objectives, so none is the cheapest that does."
    (cheapest, cost), *others = sorted(known, key=lambda one: one[1].value)
    near = [(label, other) for label, other in others if not _is_below(cost, other)]
    that_meets = " that meets all its objectives" if judged else ""
    if not near:
        which = "cheapest" if others or not judged else "only"
        return f"{cheapest} is the {which} variant{that_meets}, at {_price_text(cost, currency)} for a million transactions."
    named = ", ".join(f"{label} at {_price_text(other, currency)}" for label, other in [(cheapest, cost), *near])
    return f"The cheapest variant{that_meets} is one of {named} for a million transactions: their intervals overlap."


def _is_below(one: Estimate, other: Estimate) -> bool:
    return one.interval is not None and other.interval is not None and one.interval.high < other.interval.low


def _price_text(cost: Estimate, currency: str) -> str:
    value = f"{number(cost.value)} {currency}".rstrip()
    if cost.interval is None:
        return value
    low, high = number(cost.interval.low), number(cost.interval.high)
    return f"{value} ({percent(cost.interval.level)} CI {low} to {high})"


def outcome_of(figure: Estimate, objective: Objective) -> tuple[Outcome, str | None]:
    """Return on which side of the bound the whole interval lies; otherwise inconclusive, and why."""
    bound = objective.bound
    if not isinstance(bound, int | float):
        raise TypeError(f"{objective.metric} has no figure")
    if figure.interval is None:
        return "inconclusive", figure.note or "there is no interval"
    low, high = figure.interval.low, figure.interval.high
    is_within, is_beyond = (high <= bound, low > bound) if objective.max is not None else (low >= bound, high < bound)
    if is_within:
        return "met", None
    return ("not met", None) if is_beyond else ("inconclusive", _INCLUDES_BOUND)


def _of_figure(objective: Objective, place: int, variant: str, found: _Found) -> ObjectiveResult:
    outcome: Outcome = "not measured"
    reason, figure = found.missing, found.figure
    if figure is not None:
        outcome, reason = outcome_of(figure, objective)
        # What was never done would have been slow: it can make a latency worse, and never better.
        favourable: Outcome = "met" if objective.max is not None else "not met"
        if found.doubt is not None and outcome == favourable:
            outcome, reason = "inconclusive", found.doubt
        if outcome == "inconclusive":
            figure = stated(figure, found.pivot)
            if figure.interval is None and reason == _INCLUDES_BOUND:  # no interval is shown
                reason = figure.note
    return _result(objective, place, variant, outcome, reason, figure=figure)


def _of_grade(objective: Objective, place: int, result: VariantResult) -> ObjectiveResult:
    grade, safety = result.safety.grade, result.safety
    if grade == "unknown":
        return _result(objective, place, result.id, "not measured", "; ".join(safety.reasons), safety=safety)
    is_met = GRADES.index(grade) <= [str(one) for one in GRADES].index(str(objective.bound))
    reason = None if is_met else "; ".join(safety.reasons)
    return _result(objective, place, result.id, "met" if is_met else "not met", reason, safety=safety)


def _result(
    objective: Objective,
    place: int,
    variant: str,
    outcome: Outcome,
    reason: str | None,
    *,
    figure: Estimate | None = None,
    safety: Safety | None = None,
) -> ObjectiveResult:
    return ObjectiveResult(
        objective=place,
        variant=variant,
        metric=objective.metric,
        requirement=objective.requirement,
        direction="min" if objective.max is None else "max",
        bound=objective.bound,
        outcome=outcome,
        figure=figure,
        grade=None if safety is None else safety.grade,
        basis=None if safety is None else safety.basis,
        reason=reason,
    )


def _figure(objective: Objective, plan: Plan, measured: Measured, result: VariantResult, seed: int) -> _Found:
    if result.tps is None:
        return _Found(missing="no trial counts")
    if objective.metric == "tps":
        return _Found(*_tps(measured, seed))
    if objective.metric in LATENCY_QUANTILES:
        return _latency(objective, measured, seed)
    if objective.metric == "wal_per_transaction":
        return _wal(measured, result, seed)
    if objective.metric == "written_per_transaction":
        return _written(result)
    return _cost(objective_price(objective, plan, result), *_tps(measured, seed))


def _recovery(cuts: Sequence[PowerCut], variant: str, seed: int) -> _Found:
    """Return the median time until the server took connections again; a server that did not come back is no figure."""
    own = [cut for cut in cuts if cut.variant == variant and cut.was_tested]
    known = [cut.recovery_s for cut in own if cut.recovery_s is not None]
    if not own:
        return _Found(missing="no power was cut")
    if len(known) < len(own):
        return _Found(missing=f"after {len(own) - len(known)} of {len(own)} power cuts the server did not come back")
    return _Found(*of_trials_in_full(known, seed))


def _tps(measured: Measured, seed: int) -> tuple[Estimate, Pivot | None]:
    return estimate(list(measured.log_tps.values()), seed, _METHOD)


def _latency(objective: Objective, measured: Measured, seed: int) -> _Found:
    """Return the median of the trials' own percentiles, each of the trial's merged histogram."""
    points = [trial.point() for trial in measured.counted]
    field = f"{objective.metric}_ns"
    known: list[int] = [value for point in points if (value := getattr(point, field)) is not None]
    if len(known) < len(points):
        return _Found(missing="a counted trial has no histogram of latencies")
    return _Found(
        *of_trials_in_full(known, seed), doubt=_without_latency(measured, 1 - LATENCY_QUANTILES[objective.metric])
    )


def _without_latency(measured: Measured, share_above: float) -> str | None:
    """Return why the percentile may be higher: more transactions than lie above it were never done, and are in no histogram."""
    totals = [trial.contents.trial.measured for trial in measured.counted]
    known = [one for one in totals if one is not None]
    # In a closed loop those that are open at the end are cut off by it, however fast they were.
    is_open = measured.variant.workload.is_open_loop
    lost = sum(one.failed + one.skipped + (one.open if is_open else 0) for one in known)
    due = sum(one.scheduled for one in known)
    if not due or lost <= share_above * due:
        return None
    what = "failed, were skipped or were still waiting" if is_open else "failed"
    return f"{lost:,} of {due:,} transactions {what}, and have no latency"


def _wal(measured: Measured, result: VariantResult, seed: int) -> _Found:
    each = [trial.work.wal_bytes for trial in measured.counted if trial.work is not None]
    known = [value for value in each if value is not None]
    if known and len(known) == len(measured.counted):
        return _Found(*of_trials_in_full(known, seed))
    reasons = [gap.reason for gap in result.work.gaps if gap.what.startswith("WAL")]
    return _Found(missing="; ".join(reasons) or "the WAL's position was not read")


def _written(result: VariantResult) -> _Found:
    account = result.endurance
    if account is not None and account.total is not None:
        return _Found(account.total.bytes_per_transaction)
    reasons = [f"{gap.what}: {gap.reason}" for gap in account.gaps if "devices of" in gap.what] if account else []
    return _Found(missing="; ".join(reasons) or "the devices' counters were not read in every counted trial")


def _cost(price: float | str, tps: Estimate, pivot: Pivot | None) -> _Found:
    """Return what a million transactions cost at the variant's rate, measured day and night."""
    if isinstance(price, str):
        return _Found(missing=price)
    cost = price * MILLION_PER_HOUR
    return _Found(tps.through(lambda rate: cost / rate), pivot)
