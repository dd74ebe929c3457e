"""The sentences of several comparisons with one baseline: the strongest decided effect, then what is undecided and why."""

from collections import Counter
from collections.abc import Mapping, Sequence

from plinth.analyse.wording import (
    INCONCLUSIVE,
    Side,
    Told,
    commits_of,
    deciding,
    effect_of,
    latency_of,
    outcomes_text,
    sentence,
)
from plinth.model.analysis import Comparison, VariantResult, Verdict
from plinth.model.figures import NOT_ENOUGH, times_of
from plinth.model.grouping import Grouping
from plinth.model.headline import Headline
from plinth.model.labels import levels_label
from plinth.model.level import level_text

_SEVERAL = 3
"""Comparisons from which on the answer names the group of the fastest: with fewer, their ratios say all."""
_MOST_NAMED = 3
"""Of the fastest variants; the ranking has all."""
_INCLUDES_ONE = "the interval includes 1"


def ranking_answer(
    results: Sequence[VariantResult],
    comparisons: Sequence[Comparison],
    grouping: Grouping | None = None,
    target: float | None = None,
) -> Told:
    """Tell several comparisons: the best that keeps its commits, the fastest that does not, what is undecided, and of more than a few
    variants which of them are the fastest. The headline is the effect of the first sentence."""
    by_id = {result.id: result for result in results}
    baseline = by_id[comparisons[0].baseline]
    names = {result.id: _short_name(result, baseline) for result in results}
    mixed = len({by_id[id_].safety.grade for c in comparisons for id_ in (c.variant, c.baseline)}) > 1
    top, first = _leading(comparisons, by_id, names, mixed=mixed)
    parts = [first, *(_ran(c, names, by_id, keeps=mixed) for c in top[1:])]
    if rest := _counted(comparisons, target, has_winners=bool(top) and decided(top[0]) == "better"):
        parts.append(rest)
    fastest = [by_id[id_] for id_ in grouping.fastest] if grouping and len(comparisons) >= _SEVERAL else []
    if fastest:
        parts.append(_fastest([names[one.id] for one in fastest], len(comparisons) + 1))
    if names[baseline.id] != baseline.label:
        parts.append(f"the baseline is {baseline.label}")
    named = [*(by_id[c.variant] for c in top), *fastest[:_MOST_NAMED]] if mixed else list(by_id.values())
    sides = list(dict.fromkeys(Side(names[one.id], one.safety.grade) for one in named if not one.is_aa_twin))
    text = " ".join([*map(sentence, parts), *commits_of(sides, "the fastest" if mixed else "all of them")])
    if not top:
        return Told(text, Headline(missing=undecided_text(comparisons) or "no comparison shows a difference"))
    return Told(text, effect_of(top[0], by_id, names))


def decided(one: Comparison) -> Verdict:
    """The verdict; of latencies where both sides keep up with one schedule."""
    if one.latency_p99 is None:
        return one.verdict
    if one.is_undecided or one.latency_p99.interval is None:
        return "undecided"
    return "better" if one.latency_p99.interval.high < 1 else "worse"


def undecided_text(comparisons: Sequence[Comparison]) -> str:
    """How many comparisons are undecided, and why: "of 7 comparisons, 3 inconclusive (2: the interval includes 1; 1: ...)"; "" for none."""
    reasons = Counter(_why(one) for one in comparisons if decided(one) == "undecided")
    if not reasons:
        return ""
    said = outcomes_text(len(comparisons), [(reasons.total(), INCONCLUSIVE)])
    return f"{said} ({_reasons(reasons)})"


def _why(one: Comparison) -> str:
    return one.reason or (_INCLUDES_ONE if (one.latency_p99 or one.ratio).interval else NOT_ENOUGH)


def _reasons(reasons: Mapping[str, int]) -> str:
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{count}: {reason}" for reason, count in reasons.items())


def _short_name(result: VariantResult, baseline: VariantResult) -> str:
    """Of several factors only the levels that are not the baseline's, so that the effect is not buried in its name."""
    if len(baseline.levels) < 2 or result.is_aa_twin:
        return result.label
    if result.id == baseline.id:
        return "the baseline"
    own = {
        name: level
        for name, level in result.levels.items()
        if name not in baseline.levels or level_text(level) != level_text(baseline.levels[name])
    }
    return levels_label(own) or result.label


def _leading(
    comparisons: Sequence[Comparison],
    by_id: Mapping[str, VariantResult],
    names: Mapping[str, str],
    *,
    mixed: bool,
) -> tuple[list[Comparison], str]:
    """The comparisons that are named, the headline's first, and the first sentence."""
    base = names[comparisons[0].baseline]
    by_schedule = any(one.by_schedule for one in comparisons)  # the results are in the order of their ranks
    winners = [one for one in comparisons if decided(one) == "better"]
    if not by_schedule:
        winners.sort(key=lambda one: -one.ratio.value)
    kept = {one.variant: by_id[one.variant].safety.grade == "keeps" for one in winners}
    safe = next((one for one in winners if kept[one.variant] or not mixed), None)
    unsafe = next((one for one in winners if not kept[one.variant]), None) if mixed else None
    if safe is not None:
        is_faster = unsafe is not None and winners.index(unsafe) < winners.index(safe)
        return [safe, *([unsafe] if unsafe and is_faster else [])], _ran(safe, names, by_id, keeps=mixed)
    none = f"nothing{' that keeps its commits' if mixed else ''} is shown to be {'better' if by_schedule else 'faster'} than {base}"
    if unsafe is not None:
        return [unsafe], f"{none}; {_ran(unsafe, names, by_id, keeps=False)}"
    losers = sorted((one for one in comparisons if decided(one) == "worse"), key=lambda one: one.ratio.value)
    return losers[:1], f"{none}; {_ran(losers[0], names, by_id, keeps=False)}" if losers else none


def _ran(one: Comparison, names: Mapping[str, str], by_id: Mapping[str, VariantResult], *, keeps: bool) -> str:
    of, to = names[one.variant], names[one.baseline]
    basis = by_id[one.variant].safety.basis
    kept = f" and keeps its commits ({basis})" if keeps and by_id[one.variant].safety.grade == "keeps" else ""
    if one.latency_p99 is not None:
        return f"{of} keeps up with the schedule as {to} does, with a p99 latency of {latency_of(one.latency_p99, to)}{kept}"
    if one.by_schedule == "keeps the schedule":
        return f"{of} keeps up with its schedule{kept}, and {to} does not; in time it did {times_of(one.ratio, to)}"
    if one.by_schedule == "misses the schedule":
        return f"{of} does not keep up with its schedule{kept}, and {to} does; in time it did {times_of(one.ratio, to)}"
    if one.by_schedule == "neither keeps up":
        return f"in time {of} did {times_of(one.ratio, to)}{kept}; neither keeps up with its schedule"
    return f"{of} ran at {times_of(one.ratio, to)}{kept}"


def _fastest(labels: Sequence[str], of: int) -> str:
    """Which variants cannot be told apart as the fastest."""
    first, *others = labels
    if not others:
        return f"{first} is faster than each of the others"
    if len(labels) == of:
        return f"{first}, the fastest, cannot be told apart from any other"
    named, left = [first, *others][:_MOST_NAMED], len(labels) - _MOST_NAMED
    *front, last = [*named, f"{left} more"] if left > 0 else named
    between, before = ("; ", "; and ") if any("," in label for label in named) else (", ", " and ")
    return f"{between.join(front)}{before}{last} cannot be told apart as the fastest"


def _counted(comparisons: Sequence[Comparison], target: float | None, *, has_winners: bool) -> str | None:
    """What the answer does not name, by outcome, with why it is undecided. Once winners are named, only the undecided matter."""
    undecided = [one for one in comparisons if decided(one) == "undecided"]
    words: dict[Verdict, str] = {"undecided": INCONCLUSIVE}
    if not has_winners:
        words = {"worse": "slower", "no difference shown": "with no difference shown", **words}
    counts = [(sum(decided(c) == verdict for c in comparisons), word) for verdict, word in words.items()]
    said = outcomes_text(len(comparisons), [(n, word) for n, word in counts if n])
    if not said:
        return None
    why = f" ({_reasons(Counter(map(_why, undecided)))})" if undecided else ""
    return f"{said}{why}{deciding(undecided, target)}"
