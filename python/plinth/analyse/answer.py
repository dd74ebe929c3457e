"""The answer of an analysis and the effect that it tells first, by what was compared."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plinth.analyse import wording
from plinth.analyse.durability import power_cut_sentence
from plinth.analyse.scaling import Levels
from plinth.analyse.wording import (
    INCONCLUSIVE,
    NEAR,
    Side,
    Told,
    commits_of,
    deciding,
    effect_of,
    latency_of,
    outcomes_text,
    possessive,
    sentence,
)
from plinth.model.analysis import Comparison, Grouping, Headline, VariantResult, Verdict
from plinth.model.figures import NOT_ENOUGH, Estimate, number, times_of
from plinth.model.level import RATE, Level, level_label, level_text, levels_label
from plinth.model.safety import SafetyGrade
from plinth.model.sweep import CurveEffect, Factor, ScalingCurve, Sweep
from plinth.model.units import format_count

_MOST_NAMED = 3
"""Levels or curves that are named one by one; the sections of the report have all."""
_FEW_OPEN = 2
"""As many that are inconclusive are given with their ratios and intervals; more in one sentence."""
_EFFECT = "the effect of"
"""How the sentence of a curve begins that is inconclusive."""


@dataclass(frozen=True)
class CurveSummary:
    """The findings along a curve: the labels of its levels, the level up to which throughput rises, and the level up
    to which it holds."""

    title: str
    labels: tuple[str, ...]
    levels: Levels
    gained: int | None
    held: int | None


def curve_sentence(summary: CurveSummary) -> str:
    """Return how throughput goes along a curve: "throughput rises to 5.1x 1 client (95 % CI 4.8 to 5.4) at 16 clients; above, nothing
    is gained". Without a full stop."""
    labels, last = summary.labels, len(summary.labels) - 1
    if summary.gained == 0 and summary.held == last:
        return f"{summary.title}: no difference of more than {NEAR} from {labels[0]} to {labels[last]}"
    if summary.gained is not None and summary.gained > 0:
        return _rise_sentence(summary, summary.gained)
    total = summary.levels.ratio(last, 0)
    if total is not None and _excludes_one(total):
        if total.value > 1:
            return f"throughput rises to {times_of(total, labels[0])} at {labels[last]}{_last_step_clause(summary)}"
        above = f" above {labels[summary.held]}," if summary.held else ""
        return f"throughput falls{above} to {times_of(total, labels[0])} at {labels[last]}"
    ratio = "" if total is None else f": {labels[last]} ran at {times_of(total, labels[0])}"
    return f"{_EFFECT} {summary.title} is inconclusive{ratio}"


def curve_effect(summary: CurveSummary, variants: Sequence[str]) -> CurveEffect | None:
    """Return the ratio that the sentence of a curve tells first; None where that is none."""
    gained, last = summary.gained, len(summary.labels) - 1
    if gained == 0 and summary.held == last:
        return None
    places = [(gained, 0), (last, gained)] if gained else [(last, 0)]
    for over, under in places:
        ratio = summary.levels.ratio(over, under)
        if ratio is None or not _excludes_one(ratio) or (gained and (ratio.value > 1) != (under == 0)):
            continue  # of a curve that ends to rise: the rise, else the fall after it
        return CurveEffect(variant=variants[over], over=summary.labels[over], under=summary.labels[under], ratio=ratio)
    return None


def _rise_sentence(summary: CurveSummary, until: int) -> str:
    labels, last = summary.labels, len(summary.labels) - 1
    rise, after = summary.levels.ratio(until, 0), summary.levels.ratio(last, until)
    falls = after is not None and after.interval is not None and after.interval.high < 1
    if rise is not None and _excludes_one(rise) and rise.value > 1:
        above = (
            f"above, it falls, to {times_of(after, 'that')} at {labels[last]}"
            if after and falls
            else "above, nothing is gained"
        )
        return f"throughput rises to {times_of(rise, labels[0])} at {labels[until]}; {above}"
    if after is not None and falls:
        return f"throughput falls above {labels[until]}, to {times_of(after, 'that')} at {labels[last]}"
    return f"above {labels[until]} nothing is gained"


def _last_step_clause(summary: CurveSummary) -> str:
    """Return whether the last step still gains."""
    last = len(summary.labels) - 1
    step = summary.levels.ratio(last, last - 1)
    if step is not None and step.interval is not None and step.interval.low > 1:
        return " and still rises there"
    return f"; whether more than {summary.labels[last - 1]} still gains is not decided"


def _excludes_one(ratio: Estimate) -> bool:
    return ratio.interval is not None and not ratio.interval.low <= 1 <= ratio.interval.high


def sweep_answer(results: Sequence[VariantResult], comparisons: Sequence[Comparison], sweep: Sweep) -> Told:
    """Tell how the compared levels rank along the others, then how throughput goes along the numbers; of an open loop first up to
    which rate the server keeps up. The headline is the effect of the first sentence."""
    by_id = {result.id: result for result in results}
    compares_names = any(factor.unit is None for factor in sweep.factors if factor.name in sweep.compared)
    contests = _contests(by_id, comparisons, sweep) if compares_names else []
    numbers = [factor for factor in sweep.factors if factor.unit is not None]
    along = [factor for factor in numbers if factor.name in sweep.compared] or numbers
    found = {factor.name: [curve for curve in sweep.curves if curve.factor == factor.name] for factor in along}
    rates, others = (
        [part for factor in along if (factor.name == RATE) is is_rate for part in _along(factor, found[factor.name])]
        for is_rate in (True, False)
    )
    undecided = undecided_text(comparisons) if compares_names else ""
    parts = [
        *rates,
        *_level_comparisons(contests),
        *([undecided] if undecided and len(comparisons) > 1 else []),
        *others,
    ]
    text = " ".join([*map(sentence, parts), *commits_of(_sides(by_id.values(), sweep))])
    return Told(text, _headline([curve for curves in found.values() for curve in curves], contests, by_id))


def _headline(
    curves: Sequence[ScalingCurve], contests: Sequence["_LevelComparison"], by_id: Mapping[str, VariantResult]
) -> Headline | None:
    """Return the figure of the first sentence: the rate that is kept, the strongest decided comparison, or the rise of a curve."""
    limit = next((curve for curve in curves if curve.schedule is not None), None)
    if limit is not None and limit.schedule is not None:
        kept = limit.schedule.kept_until
        where = f"of {limit.label}: " if limit.label else ""
        note = f"{where}the highest rate up to which the schedule is kept in every trial"
        return Headline(
            title="Schedule",
            figure=kept and f"up to {kept}",
            note=note,
            missing=None if kept else "the lowest rate is missed",
        )
    if contests:
        strongest = contests[0].strongest
        if strongest is not None:
            return effect_of(strongest, by_id)
        every = [one for contest in contests for one in contest.comparisons]
        return Headline(missing=undecided_text(every) or "no comparison shows a difference")
    told = next((curve for curve in curves if not curve.sentence.startswith(_EFFECT)), None) or next(iter(curves), None)
    if told is None:
        return None
    if told.effect is None:
        return Headline(missing=told.sentence)
    where = f" ({told.label})" if told.label else ""
    return Headline(
        variant=told.effect.variant,
        ratio=told.effect.ratio,
        note=f"throughput at {told.effect.over} relative to {told.effect.under}{where}",
    )


def _along(factor: Factor, curves: Sequence[ScalingCurve]) -> list[str]:
    """Return a sentence for each of the first curves; one for all together that are inconclusive."""
    still_open = [curve for curve in curves if curve.sentence.startswith(_EFFECT)]
    if len(still_open) <= _FEW_OPEN:
        still_open = []
    told = [curve for curve in curves if curve not in still_open]
    parts = [f"{curve.label}: {curve.sentence}" if curve.label else curve.sentence for curve in told[:_MOST_NAMED]]
    if (left := len(told) - _MOST_NAMED) > 0:
        parts.append(
            f"{format_count(left, 'more curve')} of {factor.title} {'is' if left == 1 else 'are'} in the report"
        )
    if still_open:
        named = "; ".join(curve.label for curve in still_open[:_MOST_NAMED])  # a label may have commas
        more = f"; {left} more" if (left := len(still_open) - _MOST_NAMED) > 0 else ""
        parts.append(f"{_EFFECT} {factor.title} is inconclusive: {named}{more}")
    return parts


def _sides(results: Iterable[VariantResult], sweep: Sweep) -> list[Side]:
    """Return each combination of named levels once, since what becomes of a commit does not depend on clients or rows; where a level alone
    decides it, such as memory, that level."""
    numbers = {factor.name for factor in sweep.factors if factor.unit is not None or factor.is_workload}
    found: list[tuple[Mapping[str, Level], SafetyGrade]] = [
        ({name: level for name, level in result.levels.items() if name not in numbers}, result.safety.grade)
        for result in results
        if not result.is_aa_twin
    ]
    return list(dict.fromkeys(Side(_decides(levels, found) or "every variant", grade) for levels, grade in found))


def _decides(levels: Mapping[str, Level], found: Sequence[tuple[Mapping[str, Level], SafetyGrade]]) -> str:
    """Return the first of these levels with which every variant has the same grade; else all of them."""
    for name, level in levels.items():
        if len({grade for others, grade in found if others.get(name) == level}) == 1:
            return level_label(name, level)
    return levels_label(levels)


@dataclass(frozen=True)
class _LevelComparison:
    """Compared levels against the baseline's, along a fixed numeric factor or at every stratum."""

    variant: str
    baseline: str
    at: str
    is_along_number: bool
    labels: tuple[str, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided at any level."""
        return all(one.verdict == "undecided" and one.by_schedule != "same schedule" for one in self.comparisons)

    @property
    def strongest(self) -> Comparison | None:
        """The decided comparison whose ratio is furthest from 1; None where none is decided."""
        told = [one for one in self.comparisons if decided(one) in ("better", "worse")]
        return max(told, key=lambda one: abs(math.log((one.latency_p99 or one.ratio).value)), default=None)

    @property
    def size(self) -> tuple[bool, float]:
        """What contests are ordered by: decided ones first, then by the ratio furthest from 1."""
        of = [self.strongest] if self.strongest else self.comparisons
        return self.strongest is not None, max(abs(math.log((one.latency_p99 or one.ratio).value)) for one in of)


def _contests(
    by_id: Mapping[str, VariantResult], comparisons: Sequence[Comparison], sweep: Sweep
) -> list[_LevelComparison]:
    """Return the combinations of compared levels, the largest decided effects first."""
    fixed = [factor for factor in sweep.factors if factor.name not in sweep.compared]
    axis = next((factor.name for factor in fixed if factor.unit is not None), None)
    found: dict[tuple[str, str, str], list[tuple[str, Comparison]]] = {}
    for comparison in comparisons:
        levels = by_id[comparison.variant].levels
        sides = [
            levels_label({name: level for name, level in by_id[id_].levels.items() if name in sweep.compared})
            for id_ in (comparison.variant, comparison.baseline)
        ]
        held = {factor.name: levels[factor.name] for factor in fixed if factor.name in levels}
        along = {name: level for name, level in held.items() if axis is None or name == axis}
        at = {name: level for name, level in held.items() if name not in along}
        found.setdefault((sides[0], sides[1], levels_label(at)), []).append((levels_label(along), comparison))
    contests = [
        _LevelComparison(*sides, axis is not None, *(tuple(part) for part in zip(*members, strict=True)))
        for sides, members in found.items()
    ]
    return sorted(contests, key=lambda contest: contest.size, reverse=True)


def _level_comparisons(contests: Sequence[_LevelComparison]) -> list[str]:
    """Return a sentence for each of the first; one for all together that are inconclusive."""
    still_open = [contest for contest in contests if contest.is_open]
    if len(still_open) <= _FEW_OPEN:
        still_open = []
    told = [contest for contest in contests if contest not in still_open]
    left = len(told) - _MOST_NAMED
    more = f"{format_count(left, 'more comparison')} along the levels {'is' if left == 1 else 'are'} in the report"
    return [
        *map(_comparison_sentence, told[:_MOST_NAMED]),
        *([more] if left > 0 else []),
        *([_open_sentence(still_open)] if still_open else []),
    ]


def _open_sentence(contests: Sequence[_LevelComparison]) -> str:
    """Return those in which nothing is decided at any level, together: "inconclusive at every level: memory ran at 0.9x to 2.1x disk"."""
    parts = []
    for contest in contests[:_MOST_NAMED]:
        ratios = [one.ratio.value for one in contest.comparisons]
        low, high = number(min(ratios)), number(max(ratios))
        ran = f"{low}x {contest.baseline}" if low == high else f"{low}x to {high}x {contest.baseline}"
        parts.append(f"{contest.at + ', ' if contest.at else ''}{contest.variant} ran at {ran}")
    if (left := len(contests) - _MOST_NAMED) > 0:
        parts.append(f"{left} more")
    return f"inconclusive at every level: {'; '.join(parts)}"


_SAID: dict[Verdict, str] = {
    "better": "wins",
    "worse": "loses",
    "no difference shown": "shows no difference",
    "undecided": "is inconclusive",
}


def _comparison_sentence(contest: _LevelComparison) -> str:
    """Return "memory wins from 4 clients on: 2.1x disk (95 % CI 1.9 to 2.3) at 4 clients, ...; it is inconclusive up to 2 clients"."""
    at = f"{contest.at}: " if contest.at else ""
    if contest.is_open:
        places = range(len(contest.comparisons))
        return f"{at}inconclusive {_where(places, contest)}: {contest.variant} ran at {_ratios(places, contest)}"
    parts = _schedule_parts(contest)
    for verdict, words in _SAID.items():
        places = [
            place
            for place, one in enumerate(contest.comparisons)
            if one.verdict == verdict and one.by_schedule in (None, "neither keeps up")
        ]
        if not places:
            continue
        missed = all(contest.comparisons[place].by_schedule is not None for place in places)
        text = f"{words} {_where(places, contest)}{', where neither keeps up with its schedule' if missed else ''}"
        if verdict in ("better", "worse") or not parts:
            text += f": {_ratios(places, contest)}"
        parts.append(text)
    return f"{at}{contest.variant} {'; it '.join(parts)}"


def _schedule_parts(contest: _LevelComparison) -> list[str]:
    """Tell, where a schedule decides, which side keeps up with it."""
    places = {
        by: [place for place, one in enumerate(contest.comparisons) if one.by_schedule == by]
        for by in ("same schedule", "keeps the schedule", "misses the schedule", "as asked")
    }
    parts = [_scheduled_part(contest, same)] if (same := places["same schedule"]) else []
    if keeps := places["keeps the schedule"]:
        parts.append(f"keeps up with its schedule {_where(keeps, contest)}, and {contest.baseline} does not")
    if misses := places["misses the schedule"]:
        parts.append(f"does not keep up with its schedule {_where(misses, contest)}, and {contest.baseline} does")
    if asked := places["as asked"]:
        parts.append(f"keeps up with its schedule {_where(asked, contest)}, as {contest.baseline} does with another")
    return parts


def _ratios(places: Sequence[int], contest: _LevelComparison) -> str:
    """Return the smallest and the largest of the ratios at these levels."""
    by_size = sorted(places, key=lambda place: contest.comparisons[place].ratio.value)
    ends = [(place, contest.comparisons[place].ratio) for place in sorted({by_size[0], by_size[-1]})]
    return _at_ends(ends, contest.baseline, contest.labels, is_one=len(places) == 1)


def _at_ends(ends: Sequence[tuple[int, Estimate]], base: str, labels: Sequence[str], *, is_one: bool) -> str:
    """Return ratios at one or two levels, the base said once: "3.0x disk (95 % CI 2.9 to 3.1) at 8 clients, 1.5x (...) at 16 clients"."""
    if is_one:
        return times_of(ends[0][1], base)
    return ", ".join(
        f"{times_of(_briefly(ratio), '' if later else base)} at {labels[place]}"
        for later, (place, ratio) in enumerate(ends)
    )


def _briefly(ratio: Estimate) -> Estimate:
    """Shorten a note: among others, it is enough to say that trials are too few; the table has how many it takes."""
    if ratio.interval is not None or ratio.more_trials is None:
        return ratio
    return ratio.model_copy(update={"note": NOT_ENOUGH})


def _scheduled_part(contest: _LevelComparison, places: Sequence[int]) -> str:
    """Tell, where both keep up with the schedule of an open loop, p99 latency at the first and the last of these levels."""
    ends = [
        (place, ratio)
        for place in sorted({places[0], places[-1]})
        if (ratio := contest.comparisons[place].latency_p99) is not None
    ]
    ratios = _at_ends(ends, possessive(contest.baseline), contest.labels, is_one=len(places) == 1)
    return f"keeps up with the schedule as {contest.baseline} does {_where(places, contest)}: p99 latency {ratios}"


def _where(places: Sequence[int], contest: _LevelComparison) -> str:
    """Return levels in words: "from 4 clients on", "up to 2 clients", "at 1 client and 8 clients"."""
    labels, last = contest.labels, len(contest.labels) - 1
    if contest.is_along_number and len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        if len(places) == len(labels):
            return f"from {labels[0]} to {labels[last]}"
        if places[-1] == last:
            return f"from {labels[places[0]]} on"
        if places[0] == 0:
            return f"up to {labels[places[-1]]}"
    named = [labels[place] for place in places[:_MOST_NAMED]]
    more = [f"{len(places) - _MOST_NAMED} more"] if len(places) > _MOST_NAMED else []
    *front, end = [*named, *more]
    return f"at {', '.join(front)} and {end}" if front else f"at {end}"


_SEVERAL = 3
"""Comparisons from which on the answer names the group of the fastest: with fewer, their ratios say all."""
_MOST_FASTEST = 3
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
    named = [*(by_id[c.variant] for c in top), *fastest[:_MOST_FASTEST]] if mixed else list(by_id.values())
    sides = list(dict.fromkeys(Side(names[one.id], one.safety.grade) for one in named if not one.is_aa_twin))
    text = " ".join([*map(sentence, parts), *commits_of(sides, "the fastest" if mixed else "all of them")])
    if not top:
        return Told(text, Headline(missing=undecided_text(comparisons) or "no comparison shows a difference"))
    return Told(text, effect_of(top[0], by_id, names))


def decided(one: Comparison) -> Verdict:
    """Return the verdict; of latencies where both sides keep up with one schedule."""
    if one.latency_p99 is None:
        return one.verdict
    if one.is_undecided or one.latency_p99.interval is None:
        return "undecided"
    return "better" if one.latency_p99.interval.high < 1 else "worse"


def undecided_text(comparisons: Sequence[Comparison]) -> str:
    """Return how many comparisons are undecided, and why: "of 7 comparisons, 3 inconclusive (2: the interval includes 1; 1: ...)"; ""
    for none."""
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
    """Name only the levels that are not the baseline's, so that the effect is not buried in its name."""
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
    """Return the comparisons that are named, the headline's first, and the first sentence."""
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
    """Name the variants that cannot be distinguished as the fastest."""
    first, *others = labels
    if not others:
        return f"{first} is faster than each of the others"
    if len(labels) == of:
        return f"{first}, the fastest, cannot be distinguished from any other"
    named, left = [first, *others][:_MOST_FASTEST], len(labels) - _MOST_FASTEST
    *front, last = [*named, f"{left} more"] if left > 0 else named
    between, before = ("; ", "; and ") if any("," in label for label in named) else (", ", " and ")
    # Said since a variant may be slower than the baseline by its own interval, and yet share the baseline's group.
    return (
        f"by the stricter test of all pairs, {between.join(front)}{before}{last} cannot be distinguished as the fastest"
    )


def _counted(comparisons: Sequence[Comparison], target: float | None, *, has_winners: bool) -> str | None:
    """Return what the answer does not name, by outcome, with why it is undecided. Once winners are named, only the undecided matter."""
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
    """Tell the p99 latencies of open loops that all keep up with their schedule, the lowest first."""
    ordered = sorted(comparisons, key=lambda one: one.latency_p99.value if one.latency_p99 else 0.0)
    latencies = [(by_id[one.variant].label, one.latency_p99) for one in ordered if one.latency_p99 is not None]
    sides = [wording.Side(one.label, one.safety.grade) for one in by_id.values() if not one.is_aa_twin]
    text = wording.scheduled_sentence(latencies, by_id[ordered[0].baseline].label, sides)
    return Told(text, effect_of(ordered[0], by_id))


def _alone(results: Sequence[VariantResult]) -> str:
    """Tell, where nothing is compared, the only variant that was measured, or why none was."""
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
    """Return damage by power cuts leads the answer; that there was none ends it."""
    tests = [(result.label, result.durability) for result in results if result.durability is not None]
    cuts = power_cut_sentence(tests)
    if cuts is None:
        return answer
    return f"{cuts} {answer}" if any(test.damaged for _, test in tests) else f"{answer} {cuts}"
