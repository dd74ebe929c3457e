"""The sentences of an analysis. Plain words, the effect, its interval, and what becomes of a commit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plinth.analyse.comparison import EQUIVALENCE, in_doubt
from plinth.model.analysis import Comparison, NoiseFloor, VariantResult, Verdict
from plinth.model.estimate import Estimate
from plinth.model.figures import more_command, number, percent, times_of
from plinth.model.grouping import Grouping
from plinth.model.safety import GRADES, SafetyGrade


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name for people and its safety grade."""

    label: str
    grade: SafetyGrade


_SEVERAL = 3
"""Comparisons from which on the answer names the group of the fastest: with fewer, their ratios say all."""
_MOST_NAMED = 3
"""Of the fastest variants; the ranking has all."""
INCONCLUSIVE = "inconclusive"
"""What an undecided comparison is in a sentence."""
NEAR = percent(EQUIVALENCE - 1)
_ALONE: dict[SafetyGrade, str] = {
    "keeps": "what it acknowledges it keeps",
    "unknown": "whether it keeps what it acknowledges is not known",
    "may lose recent commits": "it may lose recent commits",
    "does not keep": "acknowledged commits can be lost in a power failure",
}


def commit_clause(grade: SafetyGrade) -> str:
    """What becomes of an acknowledged commit, of one variant."""
    return _ALONE[grade]


_ABBREVIATIONS = frozenset(
    ["btrfs", "hdd", "lvm", "md", "nfs", "nvme", "raid", "sas", "sata", "ssd", "tmpfs", "wal", "xfs", "zfs", "zram"]
)
"""Names of storages that look wrong with one capital letter."""


def sentence(text: str) -> str:
    """With a capital letter and a full stop; names that are no plain word, such as ssd, ext4 or wal_sync_method=fsync, stay."""
    first = text.split(maxsplit=1)[0].rstrip(",:.")
    is_word = first.isalpha() and first not in _ABBREVIATIONS
    return (text[:1].upper() + text[1:] if is_word else text) + "."


def commit_sentence(labels: Sequence[str], grade: SafetyGrade) -> str:
    """What becomes of acknowledged commits, of variants of one grade: "Memory can lose acknowledged commits in a power failure."."""
    who = " and ".join(labels) if len(labels) < 3 else f"{', '.join(labels[:-1])} and {labels[-1]}"
    if grade == "unknown":
        return sentence(f"whether {who} {'keeps' if len(labels) == 1 else 'keep'} acknowledged commits is not known")
    if grade == "keeps":
        return sentence(f"{who} {'keeps' if len(labels) == 1 else 'keep'} acknowledged commits")
    can = "can lose acknowledged" if grade == "does not keep" else "may lose recent"
    return sentence(f"{who} {can} commits in a power failure")


def commits_of(sides: Sequence[Side]) -> list[str]:
    """A sentence for each grade of those that do not keep their commits; none where all keep them."""
    grades: list[SafetyGrade] = [
        grade for grade in reversed(GRADES) if grade != "keeps" and any(side.grade == grade for side in sides)
    ]
    if len(sides) > 1 and all(side.grade == sides[0].grade for side in sides) and grades:
        if grades[0] == "unknown":
            return ["Whether any of them keeps acknowledged commits is not known."]
        return [commit_sentence(["both" if len(sides) == 2 else "all of them"], grades[0])]
    return [commit_sentence([side.label for side in sides if side.grade == grade], grade) for grade in grades]


def rate(estimate: Estimate) -> str:
    """A throughput with its interval: "1,234 transactions/s (95 % CI 1,200 to 1,260)"."""
    digits = 0 if estimate.value == 0 or estimate.value >= 99.95 else max(2, 1 - math.floor(math.log10(estimate.value)))
    text = f"{estimate.value:,.{digits}f} transactions/s"
    interval = estimate.interval
    return f"{text} (95 % CI {interval.low:,.{digits}f} to {interval.high:,.{digits}f})" if interval else text


def comparison_sentence(
    verdict: Verdict,
    ratio: Estimate,
    variant: Side,
    baseline: Side,
    floor: NoiseFloor | None,
    more: int | None,
    target: float | None = None,
) -> str:
    """One comparison: what was found, what would decide it, and what becomes of acknowledged commits; `target` is that of trials
    that end once they have decided."""
    ran = f"{variant.label} ran at {times_of(ratio, baseline.label)}"
    if verdict in ("better", "worse"):
        said = [sentence(ran)]
    elif verdict == "no difference shown":
        said = [sentence(f"no difference shown: {ran}, within {NEAR if target is None else percent(target)}")]
    else:
        said = [sentence(f"inconclusive: {ran}{_open(ratio, floor)}"), *_what_decides(ratio, more, target)]
    return " ".join([*said, *commits_of([variant, baseline])])


def latency_of(ratio: Estimate, baseline: str) -> str:
    """p99 latency beside the baseline's: "0.31x disk's (95 % CI 0.28 to 0.35)"."""
    return times_of(ratio, possessive(baseline))


def possessive(label: str) -> str:
    """ "disk's", "4 clients'"."""
    return f"{label}'{'' if label.endswith('s') else 's'}"


def scheduled_sentence(latencies: Sequence[tuple[str, Estimate]], baseline: str, sides: Sequence[Side]) -> str:
    """The result for open loops that keep up with their schedule, of which only latency differs: labels and p99 over the baseline's."""
    who = "both" if len(latencies) == 1 else "all"
    named = "; ".join(f"{label} {latency_of(ratio, baseline)}" for label, ratio in latencies[:_MOST_NAMED])
    more = f"; {left} more in the report" if (left := len(latencies) - _MOST_NAMED) > 0 else ""
    said = sentence(
        f"{who} keep up with the schedule, so that their throughput is what was asked for; p99 latency: {named}{more}"
    )
    return " ".join([said, *commits_of(sides)])


def single_sentence(result: VariantResult, tps: Estimate) -> str:
    """The answer where there is nothing to compare with."""
    few = f" ({tps.note})" if tps.note else ""
    return (
        f"{sentence(f'{result.label} ran at {rate(tps)}{few}')} {commit_sentence([result.label], result.safety.grade)}"
    )


def ranking_answer(
    results: Sequence[VariantResult],
    comparisons: Sequence[Comparison],
    grouping: Grouping | None = None,
    target: float | None = None,
) -> str:
    """The answer of several comparisons: the best that keeps its commits, the fastest that does not, the rest counted; of more
    than a few variants, which of them cannot be told apart as the fastest."""
    by_id = {result.id: result for result in results}
    baseline = by_id[comparisons[0].baseline]
    winners = sorted((c for c in comparisons if c.verdict == "better"), key=lambda c: -c.ratio.value)
    mixed = len({by_id[id_].safety.grade for c in comparisons for id_ in (c.variant, c.baseline)}) > 1
    if not mixed:
        top = winners[:1]
        parts = [] if top else [f"nothing is shown to be faster than {baseline.label}"]
    else:
        safe = next((c for c in winners if by_id[c.variant].safety.grade == "keeps"), None)
        unsafe = next((c for c in winners if by_id[c.variant].safety.grade != "keeps"), None)
        top = [c for c in (safe, unsafe) if c and (c is safe or safe is None or c.ratio.value > safe.ratio.value)]
        parts = [] if safe else [f"nothing that keeps its commits is shown to be faster than {baseline.label}"]
    parts += [_ran(by_id[c.variant], c.ratio, baseline.label, keeps=mixed) for c in top]
    fastest = [by_id[id_] for id_ in grouping.fastest] if grouping and len(comparisons) >= _SEVERAL else []
    if fastest:
        parts.append(_fastest(fastest, len(comparisons) + 1))
    rest = _counted(comparisons, target, has_winners=bool(winners))
    named = [*(by_id[c.variant] for c in top), *fastest[:_MOST_NAMED]] if mixed else list(by_id.values())
    sides = list(dict.fromkeys(Side(one.label, one.safety.grade) for one in named if not one.is_aa_twin))
    return " ".join([*map(sentence, [*parts, *([rest] if rest else [])]), *commits_of(sides)])


def _fastest(fastest: Sequence[VariantResult], of: int) -> str:
    """Which variants cannot be told apart as the fastest."""
    first, *others = [one.label for one in fastest]
    if not others:
        return f"{first} is faster than each of the others"
    if len(fastest) == of:
        return f"{first}, the fastest, cannot be told apart from any other"
    named, left = [first, *others][:_MOST_NAMED], len(fastest) - _MOST_NAMED
    *front, last = [*named, f"{left} more"] if left > 0 else named
    return f"{', '.join(front)} and {last} cannot be told apart as the fastest"


def _ran(variant: VariantResult, ratio: Estimate, baseline: str, *, keeps: bool) -> str:
    kept = " and keeps its commits" if keeps and variant.safety.grade == "keeps" else ""
    return f"{variant.label} ran at {times_of(ratio, baseline)}{kept}"


def _counted(comparisons: Sequence[Comparison], target: float | None, *, has_winners: bool) -> str | None:
    """The comparisons that the answer does not name, by outcome. Once winners are named, only the undecided
    matter."""
    words: dict[Verdict, str] = {"undecided": INCONCLUSIVE}
    if not has_winners:
        words = {"worse": "slower", "no difference shown": "with no difference shown", **words}
    counts = [(sum(c.verdict == verdict for c in comparisons), word) for verdict, word in words.items()]
    said = outcomes_text(len(comparisons), [(n, word) for n, word in counts if n])
    return f"{said}{_deciding(comparisons, target)}" if said else None


def outcomes_text(comparisons: int, outcomes: Sequence[tuple[int, str]]) -> str:
    """The number of comparisons by outcome: "of 3 comparisons, 1 slower, 2 inconclusive"; "" for no outcomes."""
    if outcomes == [(comparisons, INCONCLUSIVE)]:
        many = {1: "the comparison is", 2: "both comparisons are"}.get(
            comparisons, f"all {comparisons} comparisons are"
        )
        return f"{many} {INCONCLUSIVE}"
    said = ", ".join(f"{n} {word}" for n, word in outcomes)
    return f"of {comparisons} comparison{'s' * (comparisons > 1)}, {said}" if said else ""


def _deciding(comparisons: Sequence[Comparison], target: float | None) -> str:
    """The trials that would decide the undecided comparisons, as far as known."""
    undecided = [c for c in comparisons if c.verdict == "undecided"]
    known = [c.more_trials for c in undecided if c.more_trials is not None]
    if not known:
        return ""
    some = "" if len(known) == len(undecided) else f" of {len(known)} of them"
    return f"; about {_needed(max(known))}{some}{_by_command(max(known), target)}"


def _by_command(more: int, target: float | None) -> str:
    """The command that adds them; none where a target ended the trials: how many may be added depends on why they ended."""
    return f" ({more_command(more)})" if target is None else ""


def _needed(more: int) -> str:
    return f"{more} more trial{'s' if more > 1 else ''} of each would be needed to tell"


def _open(ratio: Estimate, floor: NoiseFloor | None) -> str:
    """Why a ratio is undecided, where its interval does not show it."""
    if floor and in_doubt(ratio, floor):
        return f"; the A/A pair, which is the same, was told apart by {number(floor.smallest_ratio)}x"
    if ratio.interval and not ratio.interval.low <= 1 <= ratio.interval.high:
        return "; clear by itself, but not as one of several comparisons"
    return ""


def _what_decides(ratio: Estimate, more: int | None, target: float | None) -> list[str]:
    if more is not None:
        return [sentence(f"about {_needed(more)}{_by_command(more, target)}")]
    if ratio.interval is None:
        return []
    smaller = "" if target is None else f", or show that none is larger than {percent(target)}"
    return [f"Even a thousand more trials of each would hardly tell{smaller}."]
