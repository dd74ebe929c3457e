"""The answer of an analysis and the effect that it tells first, by what was compared."""

from collections.abc import Sequence

from plinth.analyse import wording
from plinth.analyse.durability import power_cut_sentence
from plinth.analyse.ranking_wording import ranking_answer
from plinth.analyse.sweep_wording import sweep_answer
from plinth.analyse.wording import Told, effect_of
from plinth.model.analysis import Comparison, VariantResult
from plinth.model.grouping import Grouping
from plinth.model.sweep import Sweep


def answer_of(
    results: Sequence[VariantResult],
    comparisons: Sequence[Comparison],
    sweep: Sweep | None,
    groups: Sequence[Grouping],
    target: float | None,
) -> Told:
    """Tell the effect and its interval, what a sweep shows along its levels, and what becomes of an acknowledged commit."""
    told = _compared(results, comparisons, sweep, groups, target)
    return Told(_with_power_cuts(told.text, results), told.headline)


def _compared(
    results: Sequence[VariantResult],
    comparisons: Sequence[Comparison],
    sweep: Sweep | None,
    groups: Sequence[Grouping],
    target: float | None,
) -> Told:
    by_id = {result.id: result for result in results}
    if sweep is not None and (comparisons or sweep.curves):
        return sweep_answer(results, comparisons, sweep)
    if len(comparisons) > 1 and all(one.latency_p99 for one in comparisons):
        return _scheduled(by_id, comparisons)
    if len(comparisons) > 1:
        return ranking_answer(results, comparisons, groups[0] if groups else None, target)
    if comparisons:
        return Told(comparisons[0].sentence, effect_of(comparisons[0], by_id))
    return Told(_alone(results), None)


def _scheduled(by_id: dict[str, VariantResult], comparisons: Sequence[Comparison]) -> Told:
    """Of open loops that all keep up with their schedule: p99 latency, the lowest first."""
    ordered = sorted(comparisons, key=lambda one: one.latency_p99.value if one.latency_p99 else 0.0)
    latencies = [(by_id[one.variant].label, one.latency_p99) for one in ordered if one.latency_p99 is not None]
    sides = [wording.Side(one.label, one.safety.grade) for one in by_id.values() if not one.is_aa_twin]
    text = wording.scheduled_sentence(latencies, by_id[ordered[0].baseline].label, sides)
    return Told(text, effect_of(ordered[0], by_id))


def _alone(results: Sequence[VariantResult]) -> str:
    """Where nothing is compared: the only variant that was measured, or why none was."""
    fastest = results[0]
    if fastest.tps is None:
        failed = (trial for result in results for trial in result.trials if trial.failure)
        lost = min(failed, key=lambda trial: trial.number, default=None)
        why = f" Trial {lost.number} failed: {lost.failure}." if lost else ""
        return f"Nothing was measured: no trial counts.{why}"
    missing = [result.label for result in results if result.tps is None and not result.is_aa_twin]
    compared = f" No trial of {', '.join(missing)} counts, so nothing is compared." if missing else ""
    return wording.single_sentence(fastest, fastest.tps) + compared


def _with_power_cuts(answer: str, results: Sequence[VariantResult]) -> str:
    """Damage by power cuts leads the answer; that there was none ends it."""
    tests = [(result.label, result.durability) for result in results if result.durability is not None]
    cuts = power_cut_sentence(tests)
    if cuts is None:
        return answer
    return f"{cuts} {answer}" if any(test.damaged for _, test in tests) else f"{answer} {cuts}"
