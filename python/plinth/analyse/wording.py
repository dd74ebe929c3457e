"""The sentences of an analysis. Plain words, the effect, its interval, and what becomes of a commit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plinth.analyse.comparison import EQUIVALENCE, in_doubt
from plinth.model.analysis import Comparison, NoiseFloor, SafetyGrade, VariantResult, Verdict
from plinth.model.estimate import Estimate, Interval
from plinth.model.figures import more_command, number, times


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name for people and its safety grade."""

    label: str
    grade: SafetyGrade


NEAR = f"{EQUIVALENCE - 1:.0%}"
_ALONE: dict[SafetyGrade, str] = {
    "keeps": "what it acknowledges it keeps",
    "unknown": "whether it keeps what it acknowledges is not known",
    "may lose recent commits": "it may lose recent commits",
    "does not keep": "acknowledged commits can be lost in a power failure",
}
_BOTH: dict[SafetyGrade, str] = {
    "keeps": "both keep what they acknowledge",
    "unknown": "whether either keeps what it acknowledges is not known",
    "may lose recent commits": "both may lose recent commits",
    "does not keep": "neither keeps what it acknowledges",
}


_ALL: dict[SafetyGrade, str] = {
    "keeps": "all keep what they acknowledge",
    "unknown": "whether any of them keeps what it acknowledges is not known",
    "may lose recent commits": "all of them may lose recent commits",
    "does not keep": "none of them keeps what it acknowledges",
}


def commit_clause(grade: SafetyGrade) -> str:
    """What becomes of an acknowledged commit, of one variant."""
    return _ALONE[grade]


def rate(estimate: Estimate) -> str:
    """A throughput with its interval: "1,234 transactions/s [1,200, 1,260]"."""
    digits = 0 if estimate.value == 0 or estimate.value >= 99.95 else max(2, 1 - math.floor(math.log10(estimate.value)))
    text = f"{estimate.value:,.{digits}f} transactions/s"
    interval = estimate.interval
    return f"{text} [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]" if interval else text


def effect(variant: str, baseline: str, ratio: Estimate) -> str:
    """ "memory is 3.1x [2.8, 3.4] faster than disk"; a ratio under 1 is turned round and called slower."""
    if ratio.value >= 1:
        return f"{variant} is {times(ratio)} faster than {baseline}"
    return f"{variant} is {times(inverse(ratio))} slower than {baseline}"


def inverse(ratio: Estimate) -> Estimate:
    """The same comparison seen from the other side."""
    interval = ratio.interval
    turned = Interval(low=1 / interval.high, high=1 / interval.low, level=interval.level) if interval else None
    return ratio.model_copy(update={"value": 1 / ratio.value, "interval": turned})


def comparison_sentence(
    verdict: Verdict, ratio: Estimate, variant: Side, baseline: Side, floor: NoiseFloor | None, more: int | None
) -> str:
    """One comparison in one sentence, with its safety clause."""
    if verdict in ("better", "worse"):
        text = effect(variant.label, baseline.label, ratio)
    elif verdict == "no difference shown":
        text = f"no difference shown between {variant.label} and {baseline.label}: {times(ratio)}, inside {NEAR}"
    else:
        text = f"whether {variant.label} is faster or slower than {baseline.label} is undecided: {_open(ratio, floor, more)}"
    return text + _safety_clause(verdict, variant, baseline)


def single_sentence(result: VariantResult, tps: Estimate) -> str:
    """The answer where there is nothing to compare with."""
    few = f" ({tps.note})" if tps.note else ""
    return f"{result.label} does {rate(tps)}{few}; {commit_clause(result.safety.grade)}"


def ranking_answer(results: Sequence[VariantResult], comparisons: Sequence[Comparison]) -> str:
    """The answer of several comparisons: the best that keeps its commits, the fastest that does not, the rest counted."""
    by_id = {result.id: result for result in results}
    baseline = by_id[comparisons[0].baseline].label
    grades: set[SafetyGrade] = {by_id[id_].safety.grade for c in comparisons for id_ in (c.variant, c.baseline)}
    winners = sorted((c for c in comparisons if c.verdict == "better"), key=lambda c: -c.ratio.value)
    if len(grades) == 1:
        parts = [effect(by_id[winners[0].variant].label, baseline, winners[0].ratio)] if winners else []
        parts = parts or [f"nothing is shown to be faster than {baseline}"]
        parts += [_ALL[grade] for grade in grades if grade != "keeps"]
    else:
        parts = _mixed_answer(by_id, baseline, winners)
    rest = _counted(comparisons, told=bool(winners))
    return "; ".join([*parts, rest] if rest else parts)


def _mixed_answer(by_id: dict[str, VariantResult], baseline: str, winners: Sequence[Comparison]) -> list[str]:
    """Where some keep their commits and some do not: never a winner without its safety."""
    safe = next((c for c in winners if by_id[c.variant].safety.grade == "keeps"), None)
    unsafe = next((c for c in winners if by_id[c.variant].safety.grade != "keeps"), None)
    if safe:
        parts = [f"{effect(by_id[safe.variant].label, baseline, safe.ratio)} and keeps its commits"]
    else:
        parts = [f"nothing that keeps its commits is shown to be faster than {baseline}"]
    if unsafe and (not safe or unsafe.ratio.value > safe.ratio.value):
        fastest = by_id[unsafe.variant]
        parts.append(f"{fastest.label} is {times(unsafe.ratio)} faster, but {commit_clause(fastest.safety.grade)}")
    return parts


def _counted(comparisons: Sequence[Comparison], *, told: bool) -> str | None:
    """What the answer does not name: how many came out how. Once winners are told, only the undecided still matter."""
    words: dict[Verdict, str] = {"undecided": "undecided"}
    if not told:
        words = {"worse": "slower", "no difference shown": "with no difference shown", **words}
    counts = [(sum(c.verdict == verdict for c in comparisons), word) for verdict, word in words.items()]
    said = ", ".join(f"{n} {word}" for n, word in counts if n)
    return f"of {len(comparisons)} compared, {said}{_deciding(comparisons)}" if said else None


def _deciding(comparisons: Sequence[Comparison]) -> str:
    """What would decide those that are undecided, as far as that is known."""
    undecided = [c for c in comparisons if c.verdict == "undecided"]
    known = [c.more_trials for c in undecided if c.more_trials is not None]
    if not known:
        return ""
    some = "" if len(known) == len(undecided) else f" of {len(known)} of them"
    return f"; {_needed(max(known))}{some} ({more_command(max(known))})"


def _needed(more: int) -> str:
    return f"about {more} more trial{'s' if more > 1 else ''} of each would be needed to tell"


def _safety_clause(verdict: Verdict, variant: Side, baseline: Side) -> str:
    if variant.grade == baseline.grade:
        return "" if variant.grade == "keeps" else f"; {_BOTH[variant.grade]}"
    if variant.grade == "keeps":
        return f"; and {variant.label} keeps what it acknowledges, which {baseline.label} {_denied(baseline.grade)}"
    if verdict in ("better", "worse"):
        return f"; {'but' if verdict == 'better' else 'and'} {commit_clause(variant.grade)}"
    return f"; of {variant.label}: {commit_clause(variant.grade)}"


def _denied(grade: SafetyGrade) -> str:
    return {"unknown": "is not known to do", "may lose recent commits": "may not do"}.get(grade, "does not do")


def _open(ratio: Estimate, floor: NoiseFloor | None, more: int | None) -> str:
    """What is known of an undecided ratio, and what it would take."""
    parts = [times(ratio)]
    if ratio.interval is None and ratio.note:
        parts.append(ratio.note)
    if floor and in_doubt(ratio, floor):
        parts.append(f"the A/A pair, which is the same, was told apart by {number(floor.smallest_ratio)}x")
    elif ratio.interval and not ratio.interval.low <= 1 <= ratio.interval.high:
        parts.append("clear by itself, but not as one of several comparisons")
    if more is not None:
        parts.append(f"{_needed(more)} ({more_command(more)})")
    elif ratio.interval:
        parts.append("even a thousand more trials of each would hardly tell")
    return "; ".join(parts)
