"""The sentences of a sweep: which level is faster from where on, and up to which level throughput rises."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plinth.analyse.scaling import Levels
from plinth.analyse.wording import NEAR, Side, commits_of, possessive, sentence
from plinth.model.analysis import Comparison, VariantResult, Verdict
from plinth.model.estimate import Estimate
from plinth.model.figures import NOT_ENOUGH, number, times_of
from plinth.model.labels import RATE, level_label, levels_label
from plinth.model.level import Level
from plinth.model.safety import SafetyGrade
from plinth.model.sweep import Factor, ScalingCurve, Sweep
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
    """How throughput goes along a curve: "throughput rises to 5.1x 1 client (95 % CI 4.8 to 5.4) at 16 clients; above, nothing
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
    """Whether the last step still gains."""
    last = len(summary.labels) - 1
    step = summary.levels.ratio(last, last - 1)
    if step is not None and step.interval is not None and step.interval.low > 1:
        return " and still rises there"
    return f"; whether more than {summary.labels[last - 1]} still gains is not decided"


def _excludes_one(ratio: Estimate) -> bool:
    return ratio.interval is not None and not ratio.interval.low <= 1 <= ratio.interval.high


def sweep_answer(results: Sequence[VariantResult], comparisons: Sequence[Comparison], sweep: Sweep) -> str:
    """The answer of a sweep: how the compared levels rank along the others, then how throughput goes along the
    numbers; of an open loop first up to which rate the server keeps up."""
    by_id = {result.id: result for result in results}
    compares_names = any(factor.unit is None for factor in sweep.factors if factor.name in sweep.compared)
    compared = _level_comparisons(by_id, comparisons, sweep) if compares_names else []
    numbers = [factor for factor in sweep.factors if factor.unit is not None]
    along = [factor for factor in numbers if factor.name in sweep.compared] or numbers
    found = {factor.name: [curve for curve in sweep.curves if curve.factor == factor.name] for factor in along}
    rates, others = (
        [part for factor in along if (factor.name == RATE) is is_rate for part in _along(factor, found[factor.name])]
        for is_rate in (True, False)
    )
    parts = [*rates, *compared, *others]
    return " ".join([*map(sentence, parts), *commits_of(_sides(by_id.values(), sweep))])


def _along(factor: Factor, curves: Sequence[ScalingCurve]) -> list[str]:
    """A sentence for each of the first curves; one for all together that are inconclusive."""
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
    """Each combination of named levels once, since what becomes of a commit does not depend on clients or rows; where a level alone
    decides it, such as memory, that level."""
    numbers = {factor.name for factor in sweep.factors if factor.unit is not None or factor.is_workload}
    found: list[tuple[Mapping[str, Level], SafetyGrade]] = [
        ({name: level for name, level in result.levels.items() if name not in numbers}, result.safety.grade)
        for result in results
        if not result.is_aa_twin
    ]
    return list(dict.fromkeys(Side(_decides(levels, found) or "every variant", grade) for levels, grade in found))


def _decides(levels: Mapping[str, Level], found: Sequence[tuple[Mapping[str, Level], SafetyGrade]]) -> str:
    """The first of these levels with which every variant has the same grade; else all of them."""
    for name, level in levels.items():
        if len({grade for others, grade in found if others.get(name) == level}) == 1:
            return level_label(name, level)
    return levels_label(levels)


@dataclass(frozen=True)
class _LevelComparison:
    """Compared levels beside the baseline's, along a fixed numeric factor or at every stratum."""

    variant: str
    baseline: str
    at: str
    is_along_number: bool
    labels: tuple[str, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided at any level."""
        return all(one.verdict == "undecided" and one.latency_p99 is None for one in self.comparisons)

    @property
    def largest(self) -> float:
        """The ratio furthest from 1."""
        return max(abs(math.log(one.ratio.value)) for one in self.comparisons)


def _level_comparisons(by_id: dict[str, VariantResult], comparisons: Sequence[Comparison], sweep: Sweep) -> list[str]:
    """A sentence for each combination of compared levels beside the baseline's, the largest effects first."""
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
    contests.sort(key=lambda contest: -contest.largest)
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
    """Those in which nothing is decided at any level, together: "inconclusive at every level: memory ran at 0.9x to 2.1x disk"."""
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
    """ "memory wins from 4 clients on: 2.1x disk (95 % CI 1.9 to 2.3) at 4 clients, ...; it is inconclusive up to 2 clients"."""
    at = f"{contest.at}: " if contest.at else ""
    if contest.is_open:
        places = range(len(contest.comparisons))
        return f"{at}inconclusive {_where(places, contest)}: {contest.variant} ran at {_ratios(places, contest)}"
    scheduled = [place for place, one in enumerate(contest.comparisons) if one.latency_p99 is not None]
    parts = [_scheduled_part(contest, scheduled)] if scheduled else []
    for verdict, words in _SAID.items():
        places = [
            place for place, one in enumerate(contest.comparisons) if one.verdict == verdict and place not in scheduled
        ]
        if not places:
            continue
        text = f"{words} {_where(places, contest)}"
        if verdict in ("better", "worse") or not parts:
            text += f": {_ratios(places, contest)}"
        parts.append(text)
    return f"{at}{contest.variant} {'; it '.join(parts)}"


def _ratios(places: Sequence[int], contest: _LevelComparison) -> str:
    """The smallest and the largest of the ratios at these levels."""
    by_size = sorted(places, key=lambda place: contest.comparisons[place].ratio.value)
    ends = [(place, contest.comparisons[place].ratio) for place in sorted({by_size[0], by_size[-1]})]
    return _at_ends(ends, contest.baseline, contest.labels, is_one=len(places) == 1)


def _at_ends(ends: Sequence[tuple[int, Estimate]], base: str, labels: Sequence[str], *, is_one: bool) -> str:
    """Ratios at one or two levels, the base said once: "3.0x disk (95 % CI 2.9 to 3.1) at 8 clients, 1.5x (...) at 16 clients"."""
    if is_one:
        return times_of(ends[0][1], base)
    return ", ".join(
        f"{times_of(_briefly(ratio), '' if later else base)} at {labels[place]}"
        for later, (place, ratio) in enumerate(ends)
    )


def _briefly(ratio: Estimate) -> Estimate:
    """Among others, that trials are too few is enough to say; the table has how many would do."""
    if ratio.interval is not None or ratio.more_trials is None:
        return ratio
    return ratio.model_copy(update={"note": NOT_ENOUGH})


def _scheduled_part(contest: _LevelComparison, places: Sequence[int]) -> str:
    """Where both keep up with the schedule of an open loop: p99 latency at the first and the last of these levels."""
    ends = [
        (place, ratio)
        for place in sorted({places[0], places[-1]})
        if (ratio := contest.comparisons[place].latency_p99) is not None
    ]
    ratios = _at_ends(ends, possessive(contest.baseline), contest.labels, is_one=len(places) == 1)
    return f"keeps up with the schedule as {contest.baseline} does {_where(places, contest)}: p99 latency {ratios}"


def _where(places: Sequence[int], contest: _LevelComparison) -> str:
    """Levels in words: "from 4 clients on", "up to 2 clients", "at 1 client and 8 clients"."""
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
